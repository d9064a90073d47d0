"""Say that handlers are about to begin, where the dedupe mode of their jobs asks for it.

A key that is held until its job has started must be free before the handler reads anything: then
whoever was refused knows that the run which follows sees what it had written. And a job that takes
newer arguments must get them in the step from which on those that come are for its follower.
"""

import logging
from collections.abc import Sequence
from itertools import groupby

from streamjobs.core.errors import StreamJobsError
from streamjobs.core.text import plural
from streamjobs.protocol import leases
from streamjobs.worker.execution import Execution, WorkerQueue
from streamjobs.worker.insist import insist
from streamjobs.worker.settle import Settler
from streamjobs.worker.station import Station

log = logging.getLogger("streamjobs.worker")

MOST = 100
"""Claims in one call: the arguments that come back can be 256 KiB each."""


class Announcer:
    """Tells the server of starts, and takes the arguments that it answers with."""

    def __init__(self, station: Station, settler: Settler) -> None:
        self._station = station
        self._settler = settler
        self.stopping = False
        """Nothing more is to start: what is under way is given back."""

    async def announce(self, executions: Sequence[Execution]) -> list[Execution]:
        """Return those of these claims that are to start now; the others are settled or not ours any more."""
        begun: list[Execution] = []
        for _, group in groupby(executions, key=lambda one: id(one.queue)):
            rest = list(group)
            while rest:
                begun += await self._announce(rest[0].queue, rest[:MOST])
                rest = rest[MOST:]
        return begun

    async def _announce(self, queue: WorkerQueue, executions: list[Execution]) -> list[Execution]:
        executions = [one for one in executions if queue.holds(one)]
        try:
            answers = await self._say(queue, executions) if executions else []
        except StreamJobsError as error:
            log.warning("cannot start %s: %s", plural(len(executions), "job"), error)
            for one in executions:
                self._settler.release(one)
            return []
        return [one for one, answer in zip(executions, answers, strict=True) if self._takes(one, answer)]

    async def _say(self, queue: WorkerQueue, executions: list[Execution]) -> "list[leases.Begun | None]":
        """Make the call, in as many tries as it takes: a repetition does no more than the first."""
        starts = [
            leases.Start(
                one.claim.entry, one.claim.deliveries, one.local_id, "" if one.meta.latest else one.meta.dedupe_key
            )
            for one in executions
        ]
        call = leases.start(queue.keys, self._station.consumer, starts)
        return await insist(self._station, queue, call, stopping=lambda: self.stopping)

    def _takes(self, execution: Execution, begun: leases.Begun | None) -> bool:
        """Say whether a claim starts here and now, with what the server answered."""
        if begun is None:
            execution.queue.drop(execution)
            return False
        if not execution.queue.holds(execution):
            return False
        if self.stopping:
            self._settler.release(execution)
            return False
        execution.newer = begun.newer
        if begun.body is not None:
            execution.claim.body, execution.arguments = begun.body, None
        return True
