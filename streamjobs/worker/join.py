"""How a worker begins: it reaches the server, sees that it is fit, makes the groups, and settles on leases."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from streamjobs.client.target import Target
from streamjobs.core.errors import OutcomeUnknown
from streamjobs.core.limits import Limit
from streamjobs.core.subscription import Subscription
from streamjobs.protocol import leases
from streamjobs.worker.background import end
from streamjobs.worker.check import check
from streamjobs.worker.discovery import Discovery
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.service import HEALABLE, Backoff, until
from streamjobs.worker.station import Station

log = logging.getLogger("streamjobs.worker")

Steps: TypeAlias = deque[Callable[[], Awaitable[object]]]


class Joiner:
    """Joins a worker's queues: those that it is given by name, and those that are found later."""

    def __init__(
        self,
        station: Station,
        target: Target,
        patterns: Sequence[Subscription],
        limits: Mapping[str, tuple[Limit, ...]],
    ) -> None:
        """
        Args:
            station: whose queues.
            target: where its connections lead.
            patterns: which queues are to be found.
            limits: those of whole queues, as the code has them.
        """
        self._station = station
        self._target = target
        self._limits = limits
        self.discovery = Discovery(station, patterns, self._join_queue)

    async def join(self, stopping: asyncio.Event) -> bool:
        """Join all queues that are there, however long it takes; False when stopped before.

        Raises:
            Rejected, Refused: see `Worker.run`.
        """
        backoff = Backoff(self._station.random)
        stopped = asyncio.create_task(stopping.wait())
        ahead = self._steps()
        try:
            while not stopped.done():
                joining = asyncio.ensure_future(_take(ahead))
                await asyncio.wait([joining, stopped], return_when=asyncio.FIRST_COMPLETED)
                try:
                    if joining.done():
                        joining.result()
                        return True
                except HEALABLE as error:
                    self._station.complaints.trying_on("cannot start yet", error)
                    # The next connection may lead to another server.
                    await self._station.executor.aclose()
                    if not isinstance(error, OutcomeUnknown):
                        ahead = self._steps()
                    await until(stopping, backoff.pause_s())
                finally:
                    await end([joining])
            return False
        finally:
            await end([stopped])

    def _steps(self) -> Steps:
        queues = self._station.queues
        return deque([self._check, *(partial(self._join_queue, queue) for queue in queues), self.discovery.look])

    async def _check(self) -> None:
        station = self._station
        keys = [queue.keys for queue in station.queues]
        await check(station.executor, self._target, keys, allow_eviction=station.options.allow_eviction)

    async def _join_queue(self, queue: WorkerQueue) -> None:
        queue.limits = self._limits.get(queue.keys.queue, ())
        joined = await self._station.executor.run(leases.join(queue.keys, queue.lease_ms))
        self._station.clock.sync(joined.now_ms)
        if joined.lease_ms != queue.lease_ms:
            wanted, queue.lease_ms = queue.lease_ms, joined.lease_ms
            log.warning(
                "queue %s has a lease of %g s, not %g s: taking the queue's",
                queue.keys.queue,
                joined.lease_ms / 1000,
                wanted / 1000,
            )


async def _take(ahead: Steps) -> None:
    """Take the steps that are ahead; one that failed is taken again, and none before it: where a reply in seven is
    lost, all of them in a row might never succeed.
    """
    while ahead:
        await ahead[0]()
        ahead.popleft()
