"""Listen to channels: one connection per channel and event loop, however many listen.

A thousand callers that wait for results of one queue share one subscription.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from streamjobs.client import faults
from streamjobs.client.lines import CONNECT_SECONDS, AsyncLine
from streamjobs.core.errors import StreamJobsError


class _Channel:
    """One subscription, and the queue of each listener; None in a queue says that the line broke."""

    def __init__(self) -> None:
        self.settled = asyncio.Event()
        self.failure: Exception | None = None
        self.queues: set[asyncio.Queue[bytes | None]] = set()

    def fail(self, error: Exception) -> None:
        self.failure = error
        self.settled.set()
        for queue in self.queues:
            queue.put_nowait(None)


class Channels:
    """The subscriptions of one event loop."""

    def __init__(self, where: str, open_line: Callable[[], Awaitable[AsyncLine]]) -> None:
        self._where = where
        self._open_line = open_line
        self._channels: dict[str, tuple[_Channel, asyncio.Task[None]]] = {}

    @asynccontextmanager
    async def listen(self, name: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """See `AsyncExecutor.listen`."""
        if name not in self._channels:
            channel = _Channel()
            self._channels[name] = channel, asyncio.create_task(self._feed(name, channel))
        channel, task = self._channels[name]
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        channel.queues.add(queue)
        try:
            await channel.settled.wait()
            yield self._messages(channel, queue)
        finally:
            channel.queues.discard(queue)
            if not channel.queues:
                self._forget(name, channel)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _messages(self, channel: _Channel, queue: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
        while (message := await queue.get()) is not None:
            yield message
        assert channel.failure is not None
        raise faults.unconnected(channel.failure, self._where)

    async def _feed(self, name: str, channel: _Channel) -> None:
        try:
            line = await self._open_line()
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await line.send_packed_command([faults.pack("SUBSCRIBE", name)])
                    await line.read_response(disconnect_on_error=False)
                channel.settled.set()
                while True:
                    [_, _, payload] = await line.read_response(disconnect_on_error=False)
                    for queue in channel.queues:
                        queue.put_nowait(payload)
            finally:
                await line.disconnect(nowait=True)
        except (StreamJobsError, *faults.ASYNC_FAILURES) as error:
            # Whoever listens from now on subscribes anew.
            self._forget(name, channel)
            channel.fail(error)

    def _forget(self, name: str, channel: _Channel) -> None:
        if name in self._channels and self._channels[name][0] is channel:
            del self._channels[name]
