"""What a worker does once a minute: announce its queues and what is said of them, forget consumers and limits gone."""

from collections.abc import Mapping
from typing import Any

from streamjobs.core import codec
from streamjobs.core.errors import StreamJobsError
from streamjobs.core.limits import Bound, kind_of
from streamjobs.core.registry import Handler
from streamjobs.core.thresholds import Thresholds
from streamjobs.protocol import intake, lanes, leases, upkeep
from streamjobs.protocol.calls import Command
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.station import Station

EVERY_S = 60.0
GONE_AFTER_MS = 600_000
"""A live worker shows itself every few seconds."""


class Upkeep:
    """Keeps the set of queues and the list of consumers true."""

    name = "upkeep"

    def __init__(
        self,
        station: Station,
        handlers: Mapping[str, Handler],
        bounds: Mapping[str, Bound],
        thresholds: Mapping[str, Thresholds],
    ) -> None:
        self._handlers = handlers
        self._bounds = bounds
        self._thresholds = thresholds
        self._executor = station.executor
        self._namespace = station.namespace
        self._queues = station.queues
        self._clock = station.clock

    async def tick(self) -> float:
        """Do one round."""
        if names := [queue.keys.queue for queue in self._queues]:
            await self._executor.run(intake.announce(self._namespace, names))
        for queue in self._queues:
            if (bound := self._bounds.get(queue.keys.queue)) and bound.max_waiting:
                await self._executor.run(intake.declare_max_waiting(queue.keys, bound.max_waiting))
            if thresholds := self._thresholds.get(queue.keys.queue):
                text = codec.encode_json(thresholds.differing()).decode()
                await self._executor.run(intake.declare_thresholds(queue.keys, text))
            await self._forget(queue)
            await self._drop_limits(queue)
        return EVERY_S

    async def _drop_limits(self, queue: WorkerQueue) -> None:
        """Forget limits of our kinds that the code has no more: who waits for them goes on when they are looked at."""
        values = {base for handler in self._handlers.values() for base in queue.plan(handler).values}
        stored = await self._executor.run(lanes.stored(queue.keys))
        gone = [base for base in stored if base not in values and kind_of(base) in self._handlers]
        if gone:
            await self._executor.run(lanes.forget(queue.keys, gone))

    async def _forget(self, queue: WorkerQueue) -> None:
        requests: list[Command[Any]] = [upkeep.workers(queue.keys), upkeep.consumers(queue.keys)]
        seen, consumers = await self._executor.run_all(requests)
        gone = set()
        if isinstance(seen, dict):
            gone |= {name for name, (at_ms, _) in seen.items() if at_ms < self._clock.now_ms() - GONE_AFTER_MS}
        if not isinstance(consumers, StreamJobsError):
            gone |= {name for name, (idle_ms, _) in consumers.items() if idle_ms > GONE_AFTER_MS}
        if gone:
            await self._executor.run(leases.retire(queue.keys, sorted(gone)))
