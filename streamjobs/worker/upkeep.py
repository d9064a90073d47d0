"""What a worker does once a minute: announce queues and what its code says of them, forget consumers and limits that
are gone, and delete dead jobs where no more are to be kept.
"""

import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from streamjobs.core import codec
from streamjobs.core.errors import StreamJobsError
from streamjobs.core.limits import Bound, keep_dead_text, kind_of
from streamjobs.core.registry import Handler
from streamjobs.core.thresholds import Thresholds
from streamjobs.protocol import config, intake, lanes, leases, letters, secrets, upkeep, views
from streamjobs.protocol.calls import Command
from streamjobs.protocol.workers import KEEP_MS
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.station import Station

log = logging.getLogger("streamjobs.worker")

EVERY_S = 60.0
TRIM_STEPS = 20
"""Calls in one round, of 500 dead jobs each."""
TRIM_AGAIN_S = 1.0
"""Where there are more to delete than one round does, so that others come between."""


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
        self._secrets = {kind: one.options.redact for kind, one in handlers.items() if one.options.redact}
        self._executor = station.executor
        self._namespace = station.namespace
        self._queues = station.queues
        self._clock = station.clock

    async def tick(self) -> float:
        """Do one round."""
        if names := [queue.keys.queue for queue in self._queues]:
            await self._executor.run(intake.announce(self._namespace, names))
        more = False
        for queue in self._queues:
            await self._declare(queue)
            await self._forget(queue)
            await self._drop_limits(queue)
            more = await self._trim(queue) or more
        return TRIM_AGAIN_S if more else EVERY_S

    async def _declare(self, queue: WorkerQueue) -> None:
        """Say what the code has: it holds for all."""
        bound = self._bounds.get(queue.keys.queue, Bound())
        if bound.max_waiting:
            await self._executor.run(config.declare(queue.keys, config.MAX_WAITING, bound.max_waiting))
        if bound.keep_dead:
            await self._executor.run(config.declare(queue.keys, config.KEEP_DEAD, keep_dead_text(bound.keep_dead)))
        if thresholds := self._thresholds.get(queue.keys.queue):
            text = codec.encode_json(thresholds.differing()).decode()
            await self._executor.run(config.declare_thresholds(queue.keys, text))
        if self._secrets:
            await self._executor.run(secrets.declare(queue.keys, self._secrets))

    async def _trim(self, queue: WorkerQueue) -> bool:
        """Delete the oldest dead jobs where no more are to be kept, and say so; return whether there are more."""
        deleted, kept = 0, ""
        try:
            for _ in range(TRIM_STEPS):
                trimmed = await self._executor.run(letters.trim(queue.keys))
                deleted, kept = deleted + trimmed.deleted, trimmed.kept
                if not trimmed.more:
                    return False
            return True
        finally:
            if deleted:
                name, most = queue.keys.queue, kept if kept.isdigit() else timedelta(milliseconds=int(kept[:-2]))
                log.warning(
                    "queue %s: the %d oldest dead jobs were deleted: keep_dead is %s", name, deleted, most,
                    extra={"queue": name},
                )  # fmt: skip

    async def _drop_limits(self, queue: WorkerQueue) -> None:
        """Forget limits of our kinds that the code has no more: who waits for them goes on when they are looked at."""
        values = {base for handler in self._handlers.values() for base in queue.plan(handler).values}
        stored = await self._executor.run(views.table(queue.keys.limits))
        gone = [base for base in stored if base not in values and kind_of(base) in self._handlers]
        if gone:
            await self._executor.run(lanes.forget(queue.keys, gone))

    async def _forget(self, queue: WorkerQueue) -> None:
        requests: list[Command[Any]] = [upkeep.workers(queue.keys), upkeep.consumers(queue.keys)]
        seen, consumers = await self._executor.run_all(requests)
        gone = set()
        if isinstance(seen, dict):
            gone |= {name for name, (at_ms, _) in seen.items() if at_ms < self._clock.now_ms() - KEEP_MS}
        if not isinstance(consumers, StreamJobsError):
            gone |= {name for name, (idle_ms, _) in consumers.items() if idle_ms > KEEP_MS}
        for retire in leases.retire_all(queue.keys, sorted(gone)):
            await self._executor.run(retire)
