"""Run requests over asyncio connections."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import redis

from streamjobs.client import faults, forks
from streamjobs.client.channels import Channels
from streamjobs.client.lines import CONNECT_SECONDS, MOST_LINES, AsyncLine
from streamjobs.core.errors import StreamJobsError
from streamjobs.protocol.calls import Command, Request, Word

T = TypeVar("T")


class _Lines:
    """The connections that belong to one event loop."""

    def __init__(self, channels: Channels) -> None:
        self.channels = channels
        self.idle: list[AsyncLine] = []
        self.busy: set[AsyncLine] = set()
        self.waits: set[asyncio.Timeout] = set()
        """The patience of each round under way."""
        self.room = asyncio.Semaphore(MOST_LINES)


_inherited: list[dict[asyncio.AbstractEventLoop, _Lines]] = []
"""Connections of a parent process, kept unused. If one were collected while a loop runs in the child, the
driver would close it, and so take its socket out of the epoll that a fork shares: the parent would wait
on it for ever."""


class AsyncExecutor:
    """Runs requests, each on a connection of its own while it is under way. Usable from any event loop;
    connections belong to the loop that opened them.

    A connection that broke, or whose call was cancelled, is dropped, and the next request opens another
    one. After a fork the child opens its own and leaves its parent's alone.
    """

    def __init__(
        self,
        where: str,
        dial: Callable[[], Awaitable[AsyncLine]],
        *,
        timeout_s: float,
        blocking: bool = False,
    ) -> None:
        """`timeout_s`: how long a call waits for its replies. `blocking`: keep what `unblock` needs."""
        self._where = where
        self._dial = dial
        self._timeout_s = timeout_s
        self._blocking = blocking
        self._ids: WeakKeyDictionary[AsyncLine, int] = WeakKeyDictionary()
        self._loops: dict[asyncio.AbstractEventLoop, _Lines] = {}
        self._closings = 0
        forks.watch(self)

    def after_fork(self) -> None:
        """Forget the parent's connections, without closing them."""
        _inherited.append(self._loops)
        self._loops = {}

    async def run(self, request: Request[T]) -> T:
        """Run one request and return its decoded reply.

        Raises:
            Unavailable: it was not executed; trying again may help.
            OutcomeUnknown: it was sent and its reply did not come.
            Rejected: the server refuses it for good.
        """
        [outcome] = await self.run_all([request])
        if isinstance(outcome, StreamJobsError):
            raise outcome
        return outcome

    async def run_all(self, requests: Sequence[Request[T]]) -> list[T | StreamJobsError]:
        """Run the requests in one round trip; return for each its decoded reply or its error.

        A request whose script the server did not know runs after the others, not in its place, and what follows
        it (see `Command`) behind it again. Who
        cancels this call cannot know whether they were executed.
        """
        if not requests:
            return []
        packed = [faults.packed(request) for request in requests]
        lines = self._lines()
        async with lines.room:
            try:
                line = await self._take(lines)
            except (StreamJobsError, *faults.ASYNC_FAILURES) as error:
                return [faults.unconnected(error, self._where) for _ in requests]
            closings = self._closings
            lines.busy.add(line)
            try:
                replies = await self._round(lines, line, packed)
                troubled = faults.troubled(replies)
                if troubled and (missing := faults.unloaded(requests, replies)):
                    second = await self._round(lines, line, faults.reload(requests, missing))
                    replies = faults.reloaded(requests, replies, missing, second)
            finally:
                lines.busy.discard(line)
            if troubled and faults.demoted(replies):
                await self.aclose()
            if closings != self._closings:
                await line.disconnect(nowait=True)
            elif not (troubled and faults.broken(replies)):
                lines.idle.append(line)
        return faults.outcomes(requests, replies, self._where)

    async def unblock(self, via: "AsyncExecutor") -> bool:
        """End this executor's blocking requests as if their time were over; say whether one was ended.

        It reaches only what the server is blocked on at this moment, so a reader checks whether to stop
        before each read as well. False, never an error, where the server does not let us.
        """
        ids = [self._ids[line] for line in self._lines().busy if line in self._ids]
        ended = await via.run_all([Command(("CLIENT", "UNBLOCK", one), int) for one in ids])
        return 1 in ended

    @asynccontextmanager
    async def listen(self, channel: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Subscribe to a channel; the iterator yields its messages, for ever.

        On entering, the subscription is in place: what is published from then on is seen. All who
        listen to one channel in one event loop share a connection.

        Raises:
            Unavailable: the subscription could not be made, or (from the iterator) its connection broke.
            Rejected: the server refuses it for good.
        """
        async with self._lines().channels.listen(channel) as messages:
            yield messages

    async def aclose(self) -> None:
        """Close this loop's idle connections, and the busy ones when their requests end. A later request
        opens a new one.
        """
        self._closings += 1
        idle = self._lines().idle
        while idle:
            await idle.pop().disconnect()

    async def reopen(self) -> None:
        """Close every connection of this loop at once: the replies that are waited for count as lost. A later
        request opens a new one.
        """
        for patience in self._lines().waits:
            if not patience.expired():
                patience.reschedule(0)
        await self.aclose()

    def _lines(self) -> _Lines:
        loop = asyncio.get_running_loop()
        lines = self._loops.get(loop)
        if lines is None:
            for ended in [one for one in list(self._loops) if one.is_closed()]:
                self._loops.pop(ended, None)
            lines = self._loops[loop] = _Lines(Channels(self._where, self._open))
        return lines

    async def _take(self, lines: _Lines) -> AsyncLine:
        while lines.idle:
            line = lines.idle.pop()
            if await _usable(line):
                return line
            await line.disconnect(nowait=True)
        return await self._open()

    async def _open(self) -> AsyncLine:
        line = await self._dial()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await line.connect()
                faults.welcome(await _ask(line, *faults.GREETING))
                if self._blocking and isinstance(number := await _ask(line, "CLIENT", "ID"), int):
                    self._ids[line] = number
        except BaseException:
            await line.disconnect(nowait=True)
            raise
        return line

    async def _round(self, lines: _Lines, line: AsyncLine, packed: list[bytes]) -> list[Any]:
        replies: list[Any] = []
        patience = asyncio.timeout(self._timeout_s)
        lines.waits.add(patience)
        try:
            async with patience:
                await line.send_packed_command([b"".join(packed)])
                while len(replies) < len(packed):
                    replies.append(await _read(line))
        except faults.ASYNC_FAILURES as error:
            await line.disconnect(nowait=True)
            replies += [faults.Lost(error)] * (len(packed) - len(replies))
        except BaseException:
            await line.disconnect(nowait=True)
            raise
        finally:
            lines.waits.discard(patience)
        return replies


async def _ask(line: AsyncLine, *words: Word) -> Any:
    await line.send_packed_command([faults.pack(*words)])
    return await _read(line)


async def _read(line: AsyncLine) -> Any:
    try:
        return await line.read_response(disconnect_on_error=False)
    except redis.RedisError as error:
        if faults.text(error) is None:
            raise
        return error


async def _usable(line: AsyncLine) -> bool:
    """Say whether an idle connection is still in step; finding out now makes the failure a definite one."""
    try:
        return not await line.can_read()
    except faults.ASYNC_FAILURES:
        return False
