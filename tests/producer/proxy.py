"""A TCP proxy before a server, which cuts connections to order: the fault between request and reply."""

import asyncio
import threading
from types import TracebackType

from streamjobs.protocol import scripts


class Proxy:
    """Forwards to a server's unix socket, from a thread of its own; a context manager.

    `cuts`: of so many of the next batches of jobs, the server executes the request and the reply is
    lost with its connection. `away`: connections are accepted and closed at once. Between `hold()` and
    `release()` no reply comes through.
    """

    def __init__(self, server_url: str) -> None:
        self._path = server_url.removeprefix("unix://")
        self._marks = [scripts.load(name).sha.encode() for name in ("enqueue", "schedule")]
        self.cuts = 0
        self.away_after_cut = False
        self.away = False
        self.batches = 0
        """Batches of jobs that went to the server, cut ones included."""
        self._port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="proxy")

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    def __enter__(self) -> "Proxy":
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def hold(self) -> None:
        """Keep replies back from now on."""
        self._loop.call_soon_threadsafe(self._released.clear)

    def release(self) -> None:
        """Let replies through again."""
        self._loop.call_soon_threadsafe(self._released.set)

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._released = asyncio.Event()
        self._released.set()
        self._talks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        # A talk that has not begun could not close its connection.
        await asyncio.sleep(0)
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)
        # Closed connections say so in the next turn.
        await asyncio.sleep(0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        assert talk is not None
        self._talks.add(talk)
        try:
            if not self.away:
                await self._forward(reader, writer)
        except (OSError, asyncio.CancelledError):
            # The client or the test has ended the talk.
            pass
        finally:
            writer.close()
            self._talks.discard(talk)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_unix_connection(self._path)
        doomed = asyncio.Event()
        pumps = [
            asyncio.ensure_future(self._up(reader, server_writer, doomed)),
            asyncio.ensure_future(self._down(server_reader, writer, doomed)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            server_writer.close()
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: asyncio.Event) -> None:
        while data := await reader.read(1 << 20):
            if any(mark in data for mark in self._marks):
                self.batches += 1
                if self.cuts > 0:
                    self.cuts -= 1
                    doomed.set()
            writer.write(data)

    async def _down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: asyncio.Event) -> None:
        while data := await reader.read(1 << 20):
            if doomed.is_set():
                # The reply is here: so the server has executed the request, and nobody learns of it.
                self.away = self.away or self.away_after_cut
                return
            await self._released.wait()
            writer.write(data)
