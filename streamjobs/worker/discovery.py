"""Find the queues that fit a worker's patterns, also those that come later."""

import logging
from collections.abc import Awaitable, Callable, Sequence

from streamjobs.client.talk import atalk
from streamjobs.core.errors import Rejected
from streamjobs.core.server import Level
from streamjobs.core.subscription import Subscription, weight_of
from streamjobs.protocol import views
from streamjobs.protocol.keys import QueueKeys
from streamjobs.worker.check import understood
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.station import Station

log = logging.getLogger("streamjobs.worker")

EVERY_S = 5.0


class Discovery:
    """Looks for new queues; a service whose tick is one look."""

    name = "discovery"

    def __init__(
        self, station: Station, patterns: Sequence[Subscription], join: Callable[[WorkerQueue], Awaitable[None]]
    ) -> None:
        """`join`: makes a queue ready to work on."""
        self._station = station
        self._patterns = patterns
        self._join = join
        self._strange: set[str] = set()
        """Queues of later versions, which are left to those, and such as the server refuses."""
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
            weight = weight_of(name, self._patterns)
            keys = QueueKeys(station.namespace, name)
            if weight and await self._understands(keys):
                queue = WorkerQueue(keys, station.options.ms("lease"), weight=weight)
                try:
                    await self._join(queue)
                except Rejected as error:
                    # Nobody named it: what is wrong with one must not end the work on all others.
                    self._leave(name, f"queue {name}: {error}")
                else:
                    station.queues.append(queue)
        return len(station.queues) > before

    async def _understands(self, keys: QueueKeys) -> bool:
        finding = await atalk(self._station.executor, understood([keys]))
        if finding.level is not Level.FAIL:
            return True
        self._leave(keys.queue, finding)
        return False

    def _leave(self, queue: str, why: object) -> None:
        """Say once why a queue is not served; it is looked at again each time."""
        if queue not in self._strange:
            self._strange.add(queue)
            log.warning("not served: %s", why)
