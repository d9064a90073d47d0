"""Find the queues that fit a worker's patterns, also those that come later."""

from collections.abc import Awaitable, Callable

from streamjobs.core.subscription import Subscription, weight_of
from streamjobs.protocol import views
from streamjobs.protocol.keys import QueueKeys
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.station import Station

EVERY_S = 5.0


class Discovery:
    """Looks for new queues; a service whose tick is one look."""

    name = "discovery"

    def __init__(
        self, station: Station, patterns: list[Subscription], join: Callable[[WorkerQueue], Awaitable[None]]
    ) -> None:
        """`join`: makes a queue ready to work on."""
        self._station = station
        self._patterns = patterns
        self._join = join
        self.found: Callable[[], Awaitable[None]] | None = None
        """Called when there are more queues than before."""

    async def tick(self) -> float:
        """Look once, and tell of what was found."""
        if await self.look() and self.found:
            await self.found()
        return EVERY_S

    async def look(self) -> bool:
        """Take in the queues that are new and fit; say whether there were any."""
        if not self._patterns:
            return False
        station = self._station
        names = await station.executor.run(views.queue_names(station.namespace))
        before = len(station.queues)
        for name in sorted(set(names) - {queue.keys.queue for queue in station.queues}):
            if weight := weight_of(name, self._patterns):
                queue = WorkerQueue(QueueKeys(station.namespace, name), station.options.ms("lease"), weight=weight)
                await self._join(queue)
                station.queues.append(queue)
        return len(station.queues) > before
