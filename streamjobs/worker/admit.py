"""Ask the server whether claims of limited kinds may start: all that want to at once in one call."""

import asyncio
import logging

from streamjobs.protocol import lanes
from streamjobs.protocol.calls import Call
from streamjobs.worker.execution import Execution, WorkerQueue
from streamjobs.worker.insist import insist
from streamjobs.worker.station import Station

log = logging.getLogger("streamjobs.worker")


class Admission:
    """Asks `admit` for claims that have lanes. One without limits costs nothing here."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self.stopping = False

    async def ask(self, queue: WorkerQueue, executions: list[Execution], marked: list[bool]) -> list[str]:
        """Return GO, PARKED or LOST for each; `marked` says whose start is to be recorded with it.

        In as many tries as it takes: a repetition lets the same start, and finds what it has parked LOST.

        Raises:
            StreamJobsError: the server cannot be asked; nothing of this may start.
        """

        def presume() -> None:
            # Nobody knows whether they are marked: what gives them back takes the mark back too.
            for execution, mark in zip(executions, marked, strict=True):
                execution.marked = execution.marked or mark

        asked = [execution.claim.deliveries for execution in executions]
        call = self._call(queue, executions, marked)
        try:
            admission = await insist(self._station, queue, call, stopping=lambda: self.stopping, unsure=presume)
        except asyncio.CancelledError:
            presume()
            raise
        queue.crowd = admission.crowd
        for execution, deliveries, word, mark in zip(executions, asked, admission.words, marked, strict=True):
            execution.admitted = deliveries if word == lanes.GO else 0
            execution.marked = execution.marked or (mark and word == lanes.GO)
        return admission.words

    def _call(self, queue: WorkerQueue, executions: list[Execution], marked: list[bool]) -> Call[lanes.Admission]:
        values: dict[str, str] = {}
        entrants = []
        for execution, mark in zip(executions, marked, strict=True):
            assert execution.handler is not None
            values |= queue.plan(execution.handler).values
            claim = execution.claim
            entrants.append(
                lanes.Entrant(
                    claim.entry,
                    claim.deliveries,
                    lanes.order(execution.local_id),
                    execution.lanes,
                    -1 if execution.first else int(mark),
                    claim.starts,
                )
            )
        return lanes.admit(queue.keys, self._station.consumer, values, entrants)
