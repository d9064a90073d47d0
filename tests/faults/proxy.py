"""A TCP proxy before a server, which makes the network fail to order: request by request, or all at once.

What is to fail is said by rules, each for some commands or scripts (`complete`, `xreadgroup`; none
for all of them). A rule counts how often it has bitten, so that a test can tell whether it did.
"""

import asyncio
import socket
import struct
import threading
from collections import Counter, deque
from collections.abc import Callable
from enum import Enum
from types import TracebackType
from typing import Literal
from urllib.parse import urlsplit

from tests.faults import resp

Side = Literal["request", "reply"]


class Act(Enum):
    """What becomes of a request, or of its reply."""

    DELAY = "comes late"
    DROP = "does not come; the connection is reset. On the reply's side the server has executed the request"
    HOLE = "does not come, nor does anything after it, and the connection stays open"
    TRUNCATE = "comes in part; the connection is reset"
    SLICE = "comes byte by byte"
    REFUSE = "is answered by an error in the server's place"


class Rule:
    """One fault.

    Args:
        act: what happens.
        names: to which commands and scripts; none for all.
        side: on the way to the server or back.
        times: how often at most.
        skip: how many of them pass unharmed first.
        every: it bites each n-th one then.
        seconds: of a delay.
        share: of a truncated frame that comes through.
        error: what a refused request is answered by; the side does not matter then.
        then: called when it bites, in the proxy's thread.
    """

    def __init__(
        self,
        act: Act,
        *names: str,
        side: Side = "reply",
        times: float = float("inf"),
        skip: int = 0,
        every: int = 1,
        seconds: float = 0.0,
        share: float = 0.6,
        error: str = "",
        then: Callable[[], None] | None = None,
    ) -> None:
        self.act, self.side, self.times = act, side, times
        self.seconds, self.share, self.error = seconds, share, error
        self.hits = 0
        self._names = names
        self._skip, self._every, self._then = skip, every, then
        self._met = 0

    def bites(self, name: str) -> bool:
        """Say whether this rule is for a request of this name, now; it counts."""
        if self.hits >= self.times or (self._names and name not in self._names):
            return False
        self._met += 1
        if self._met <= self._skip or (self._met - self._skip) % self._every:
            return False
        self.hits += 1
        if self._then:
            self._then()
        return True


class Proxy:
    """Forwards to a server, from a thread of its own; a context manager.

    `away`: connections are accepted and closed at once. Between `hold()` and `release()` nothing
    passes, and no connection is closed: a partition that heals.
    """

    def __init__(self, server_url: str) -> None:
        self._target = urlsplit(server_url)
        self.rules: list[Rule] = []
        self.away = False
        self.seen: Counter[str] = Counter()
        """Requests that came here, by name."""
        self.connections = 0
        """Connections that came here, those while `away` included."""
        self._port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="proxy")

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    def add(self, rule: Rule) -> Rule:
        """Follow this rule from now on, after the earlier ones: the first that bites a request has it."""
        self.rules = [*self.rules, rule]
        return rule

    def heal(self) -> None:
        """Follow no rule any more, and let everything through. What fell into a hole stays there."""
        self.rules, self.away = [], False
        self.release()

    def go_away(self) -> None:
        """Close every new connection."""
        self.away = True

    def cut(self) -> None:
        """Reset every open connection."""
        for talk in tuple(self._talks):
            self._loop.call_soon_threadsafe(talk.reset)

    def hold(self, *sides: Side) -> None:
        """Keep back what comes on these sides, or on both, from now on."""
        for side in sides or self._open:
            self._loop.call_soon_threadsafe(self._open[side].clear)

    def release(self) -> None:
        """Let what was kept back, and all that follows, through."""
        for event in self._open.values():
            self._loop.call_soon_threadsafe(event.set)

    def __enter__(self) -> "Proxy":
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._open: dict[Side, asyncio.Event] = {"request": asyncio.Event(), "reply": asyncio.Event()}
        for event in self._open.values():
            event.set()
        self._talks: set[_Talk] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        # A connection that was accepted just now takes a few turns of the loop until its talk has begun, and
        # asyncio forgets its socket if the server is closed meanwhile: first no new ones, then those turns.
        asyncio.get_running_loop().remove_reader(server.sockets[0].fileno())
        for _ in range(20):
            await asyncio.sleep(0)
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Closed connections say so in the next turn.
        await asyncio.sleep(0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            if not self.away:
                await self._talk(reader, writer)
        except (OSError, asyncio.CancelledError):
            # The client, the server or the test has ended the talk.
            pass
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = self._target
        if target.scheme == "unix":
            upstream = await asyncio.open_unix_connection(target.path)
        else:
            upstream = await asyncio.open_connection(target.hostname, target.port)
        talk = _Talk(self, writer, upstream[1])
        self._talks.add(talk)
        pumps = [asyncio.ensure_future(talk.up(reader)), asyncio.ensure_future(talk.down(upstream[0]))]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._talks.discard(talk)
            upstream[1].close()
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    def rule_for(self, name: str) -> Rule | None:
        """Return the rule that bites this request, which has come just now."""
        self.seen[name] += 1
        return next((rule for rule in self.rules if rule.bites(name)), None)

    async def passing(self, side: Side) -> None:
        """Wait while this side is held."""
        await self._open[side].wait()


class _Talk:
    """One connection, and the one to the server that belongs to it."""

    def __init__(self, proxy: Proxy, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._client, self._server = client, server
        self._expected: deque[Rule | None] = deque()
        self._subscribed = False
        self._deaf: set[Side] = set()

    def reset(self) -> None:
        """End it as a crash of a machine does: with a reset in the place of an orderly end."""
        line: socket.socket = self._client.get_extra_info("socket")
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._client.transport.abort()

    async def up(self, reader: asyncio.StreamReader) -> None:
        """Forward requests until the client ends."""
        buffer = bytearray()
        while data := await reader.read(1 << 20):
            buffer += data
            for frame in resp.take_frames(buffer):
                name = resp.name_of(frame)
                # From here on replies do not answer requests one by one.
                self._subscribed = self._subscribed or name == "subscribe"
                rule = self._proxy.rule_for(name)
                self._expected.append(rule)
                if not await self._forward("request", frame, rule, self._server):
                    return

    async def down(self, reader: asyncio.StreamReader) -> None:
        """Forward replies until the server ends."""
        buffer = bytearray()
        while data := await reader.read(1 << 20):
            buffer += data
            for frame in resp.take_frames(buffer):
                rule = None if self._subscribed or not self._expected else self._expected.popleft()
                if not await self._forward("reply", frame, rule, self._client):
                    return

    async def _forward(self, side: Side, frame: bytes, rule: Rule | None, to: asyncio.StreamWriter) -> bool:
        """Send one frame on, or what becomes of it; return False when the talk is over."""
        await self._proxy.passing(side)
        act = rule.act if rule and rule.side == side else None
        if rule and rule.act is Act.REFUSE:
            # The server gets something harmless instead, so that every reply has its place.
            frame = b"PING\r\n" if side == "request" else b"-%s\r\n" % rule.error.encode()
        if rule and act is Act.DELAY:
            await asyncio.sleep(rule.seconds)
        if rule and act is Act.TRUNCATE:
            to.write(frame[: max(1, int(len(frame) * rule.share))])
            await to.drain()
        if act in (Act.DROP, Act.TRUNCATE):
            # Closed in order after a part of a frame, it would be the same to the reader: it ends too early.
            self.reset() if act is Act.DROP else self._client.close()
            return False
        if act is Act.HOLE:
            self._deaf.add(side)
        if side not in self._deaf:
            for piece in (frame[i : i + 1] for i in range(len(frame))) if act is Act.SLICE else (frame,):
                to.write(piece)
                await to.drain()
        return True
