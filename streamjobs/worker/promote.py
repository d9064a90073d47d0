"""Promote what is due, and sleep by the bell until the next is: one worker on time, the others rarely."""

import asyncio
from time import monotonic

from streamjobs.client.aio import AsyncExecutor
from streamjobs.core.failpoints import failpoint
from streamjobs.protocol import upkeep
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.fetch import NO_QUEUE_S, Fetcher
from streamjobs.worker.service import until
from streamjobs.worker.station import Station

LONGEST_S = 5.0
"""Nobody sleeps longer: should the promoter die, the next to wake takes its place."""
BELL_S = 30.0
"""One wait on the server for a bell; due times are kept by the own clock meanwhile."""
FULL_S = 0.02
"""How long the promoter waits for the stream to be worked off, where more is due than fits."""
AHEAD_S = 0.5
"""Due jobs worth this long, at the rate measured here, may wait in the stream: fresh ones get behind them."""


class Promoter:
    """Promotes for all queues of a worker, and listens to their bells."""

    name = "promote"

    def __init__(self, station: Station, sleeper: AsyncExecutor, fetcher: Fetcher) -> None:
        """`sleeper`: the executor that waits for bells."""
        self._station = station
        self._sleeper = sleeper
        self._fetcher = fetcher
        self._deaf = False
        self._changed = asyncio.Event()
        self._due: dict[WorkerQueue, float] = {}
        self._heard: set[WorkerQueue] = set()
        self._ahead = 0
        """Jobs that ended here within `AHEAD_S`."""
        self._measured_at, self._measured = monotonic(), 0
        self._listening: asyncio.Task[str | None] | None = None
        """Waits on the server for a bell, over any number of ticks."""

    async def tick(self) -> float:
        """Promote where something is due, then sleep until the next is, or a bell rings."""
        self._changed.clear()
        for queue in self._station.queues:
            if queue in self._heard or self._due.get(queue, 0.0) <= monotonic():
                await self._promote(queue)
        if not self._due:
            return NO_QUEUE_S
        seconds = min(self._due.values()) - monotonic()
        if seconds > 0:
            await self._sleep(seconds)
        return 0

    async def wake(self) -> bool:
        """End the sleep on the server; say whether that worked, or nobody was asleep."""
        return self._listening is None or await self._sleeper.unblock(via=self._station.executor)

    async def look_around(self) -> None:
        """Attend to queues that have come: a sleep on the server hears only the bells of those that were there."""
        if not await self.wake():
            # What rings while it is broken off is lost: as if each had rung.
            await self.close()
            self._hear(*self._station.queues)
        self._changed.set()
        await self._fetcher.nudge()

    async def close(self) -> None:
        """Listen no more."""
        if (listening := self._listening) is not None:
            self._listening = None
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def turn_deaf(self) -> None:
        """Leave the bell to others, for what it says to come and take is not for this worker; and show that it has no
        slots. It promotes all the same, and so shows itself.
        """
        self._deaf = True
        await self.wake()
        await self.close()
        self._look_up()

    def listen(self) -> None:
        """Listen to the bell again."""
        self._deaf = False
        self._look_up()

    def _look_up(self) -> None:
        """Promote at once, which shows the change to others."""
        self._due.clear()
        self._changed.set()

    async def _promote(self, queue: WorkerQueue) -> None:
        note = "0" if self._deaf else str(self._station.options.concurrency)
        call = upkeep.promote(
            queue.keys, self._station.consumer, rung=queue in self._heard, note=note, room=self._room()
        )
        done = await self._station.executor.run(call)
        failpoint("worker.after_promote")
        self._heard.discard(queue)
        self._station.clock.sync(done.now_ms)
        if done.woken:
            queue.rung = True
            await self._fetcher.nudge()
        if done.next_ms == 0 and (done.moved or done.woken):
            # Whoever finds room for due jobs goes on, so that one promoter is enough or the others help.
            seconds = 0.0
        elif done.next_ms == 0 and done.leads:
            seconds = FULL_S
        elif done.leads and done.next_ms > 0:
            seconds = min(LONGEST_S, done.next_ms / 1000)
        else:
            seconds = LONGEST_S * (0.8 + 0.2 * self._station.random.random())
        self._due[queue] = monotonic() + seconds

    def _room(self) -> int:
        """Return how many jobs may wait in the stream while due ones are let in."""
        elapsed = monotonic() - self._measured_at
        if elapsed > AHEAD_S:
            self._ahead = round((self._fetcher.finished - self._measured) * AHEAD_S / elapsed)
            self._measured_at, self._measured = monotonic(), self._fetcher.finished
        return self._station.options.concurrency + self._ahead

    async def _sleep(self, seconds: float) -> None:
        """Sleep until a bell rings or the time has passed: by the own clock, since a server ends waits of its clients
        only every 100 ms.
        """
        if self._deaf:
            await until(self._changed, seconds)
            return
        if self._listening is None:
            wait = upkeep.wait_for_bell([queue.keys.bell for queue in self._station.queues], BELL_S)
            self._listening = asyncio.create_task(self._sleeper.run(wait), name="streamjobs-bell")
        listening = self._listening
        await asyncio.wait([listening], timeout=seconds)
        if not listening.done() or listening.cancelled():
            return
        self._listening = None
        bell = listening.result()
        if rung := [queue for queue in self._station.queues if queue.keys.bell == bell]:
            self._hear(*rung)
            await self._fetcher.nudge()

    def _hear(self, *queues: WorkerQueue) -> None:
        """Take note that the bells of these queues have rung."""
        self._heard.update(queues)
        for queue in queues:
            queue.rung = True
