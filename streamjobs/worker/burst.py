"""End a worker that was asked to end when nothing waits, runs or retries."""

from collections.abc import Callable

from streamjobs.protocol import upkeep
from streamjobs.worker.fetch import Fetcher
from streamjobs.worker.settle import Settler
from streamjobs.worker.start import Starter
from streamjobs.worker.station import Station


class Burst:
    """Asks now and then whether anything is left; jobs scheduled for later, or of a paused queue, do not count."""

    name = "burst"

    def __init__(
        self, station: Station, fetcher: Fetcher, starter: Starter, settler: Settler, stop: Callable[[], None]
    ) -> None:
        self._station = station
        self._fetcher = fetcher
        self._starter = starter
        self._settler = settler
        self._stop = stop

    async def tick(self) -> float:
        """Stop the worker if all is done."""
        if self._fetcher.idle and self._starter.idle and self._settler.idle:
            now_ms = self._station.clock.now_ms()
            requests = [one for queue in self._station.queues for one in upkeep.undone(queue.keys, now_ms)]
            counts = await self._station.executor.run_all(requests)
            each = len(counts) // max(1, len(self._station.queues))
            parts = [counts[at : at + each] for at in range(0, len(counts), each or 1)]
            if all(paused == 1 or all(count == 0 for count in left) for *left, paused in parts):
                self._stop()
        return 0.05
