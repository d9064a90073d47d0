"""Promote what is due, and sleep by the bell until the next is: one worker on time, the others rarely."""

import asyncio
from time import monotonic

from streamjobs.client.aio import AsyncExecutor
from streamjobs.core.failpoints import failpoint
from streamjobs.protocol import upkeep
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.fetch import Fetcher
from streamjobs.worker.station import Station

LONGEST_S = 5.0
"""Nobody sleeps longer: should the promoter die, the next to wake takes its place."""


class Promoter:
    """Promotes for all queues of a worker, and listens to their bells."""

    name = "promote"

    def __init__(self, station: Station, sleeper: AsyncExecutor, fetcher: Fetcher) -> None:
        """`sleeper`: the executor that waits for bells."""
        self._station = station
        self._sleeper = sleeper
        self._fetcher = fetcher
        self._note = str(station.options.concurrency)
        self._due = dict.fromkeys(station.queues, 0.0)
        self._heard: set[WorkerQueue] = set()
        self._listening: asyncio.Task[str | None] | None = None
        """Waits on the server for a bell, over any number of ticks."""

    async def tick(self) -> float:
        """Promote where something is due, then sleep until the next is, or a bell rings."""
        for queue in self._station.queues:
            if queue in self._heard or self._due[queue] <= monotonic():
                await self._promote(queue)
        seconds = min(self._due.values()) - monotonic()
        if seconds > 0:
            await self._sleep(seconds)
        return 0

    async def wake(self) -> bool:
        """End the sleep on the server; say whether that worked, or nobody was asleep."""
        return self._listening is None or await self._sleeper.unblock(via=self._station.executor)

    async def close(self) -> None:
        """Listen no more."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)

    async def _promote(self, queue: WorkerQueue) -> None:
        call = upkeep.promote(queue.keys, self._station.consumer, rung=queue in self._heard, note=self._note)
        done = await self._station.executor.run(call)
        failpoint("worker.after_promote")
        self._heard.discard(queue)
        self._station.clock.sync(done.now_ms)
        if done.woken:
            queue.rung = True
            await self._fetcher.nudge()
        if done.next_ms == 0:
            seconds = 0.0
        elif done.leads and done.next_ms > 0:
            seconds = min(LONGEST_S, done.next_ms / 1000)
        else:
            seconds = LONGEST_S * (0.8 + 0.2 * self._station.random.random())
        self._due[queue] = monotonic() + seconds

    async def _sleep(self, seconds: float) -> None:
        """Sleep until a bell rings or the time has passed: by the own clock, since a server ends waits of its clients
        only every 100 ms.
        """
        if self._listening is None:
            wait = upkeep.wait_for_bell([queue.keys.bell for queue in self._station.queues], LONGEST_S)
            self._listening = asyncio.create_task(self._sleeper.run(wait), name="streamjobs-bell")
        await asyncio.wait([self._listening], timeout=seconds)
        if not self._listening.done():
            return
        listening, self._listening = self._listening, None
        bell = listening.result()
        for queue in self._station.queues:
            if queue.keys.bell == bell:
                self._heard.add(queue)
                queue.rung = True
                await self._fetcher.nudge()
