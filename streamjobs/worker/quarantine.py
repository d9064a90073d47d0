"""Fetch for the quarantine child: nothing but suspects, one at a time.

They lie among what was given back, where the other children of the group leave them without a ring; a
sweep finds them. What else a sweep finds goes back at once, with a ring. So a suspect depends on no
message: should this child be gone, any worker's sweep still finds it.
"""

from collections.abc import Callable
from time import monotonic

from streamjobs.client.aio import AsyncExecutor
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.fetch import NO_QUEUE_S, Fetcher
from streamjobs.worker.run import Runner
from streamjobs.worker.start import Starter
from streamjobs.worker.station import Station

IDLE_S = 60.0
"""After so long without a suspect the child ends; the next suspect has another one started."""


class Quarantine(Fetcher):
    """The loop that sweeps; a service whose tick is one look at each queue."""

    rests = False
    """What others leave to it is silent from the first."""

    def __init__(
        self,
        station: Station,
        reader: AsyncExecutor,
        starter: Starter,
        runner: Runner,
        stop: Callable[[], None],
        idle_s: float = IDLE_S,
    ) -> None:
        """`stop`: ends this worker in peace."""
        super().__init__(station, reader, starter, runner)
        self._stop = stop
        self._idle_s = idle_s
        self._found = 0
        self._found_at = monotonic()

    @property
    def fresh(self) -> list[WorkerQueue]:
        """None: others read what is fresh."""
        return []

    async def tick(self) -> float:
        """Claim what is silent, as far as there is a slot for it; return the seconds until the next sweep."""
        if self._starter.free() <= 0:
            self._starter.room.clear()
            await self._starter.room.wait()
        if self._runner.stuck:
            # Beside a handler that does not end nothing runs alone. A new process will be free of it.
            self._stop()
            return 0
        for queue in self._queues:
            if monotonic() >= queue.next_sweep:
                await self._sweep(queue)
        now = monotonic()
        if self.reclaimed > self._found:
            self._found, self._found_at = self.reclaimed, now
        elif now - self._found_at > self._idle_s and self._starter.idle:
            self._stop()
        return max(0.0, min((queue.next_sweep for queue in self._queues), default=now + NO_QUEUE_S) - now)
