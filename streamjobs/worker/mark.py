"""Record that a claim is about to start that may have killed a process before."""

import asyncio
import logging

from streamjobs.core.errors import StreamJobsError
from streamjobs.protocol import leases
from streamjobs.worker.execution import Execution
from streamjobs.worker.insist import insist
from streamjobs.worker.settle import Settler
from streamjobs.worker.station import Station

log = logging.getLogger("streamjobs.worker")


class Marker:
    """Marks starts on the server, one by one."""

    def __init__(self, station: Station, settler: Settler) -> None:
        self._station = station
        self._settler = settler
        self.stopping = False
        """Nothing more is to start: what is under way is given back."""

    async def mark(self, execution: Execution) -> bool:
        """Record the start that is about to happen; False when the claim is not to start here."""
        queue = execution.queue
        if not execution.first:
            try:
                words = await self._say_started(execution)
            except asyncio.CancelledError:
                # It may have been marked and does not start: what gives it back takes the mark back too.
                execution.marked = True
                raise
            except StreamJobsError as error:
                log.warning("cannot mark job %s: %s", execution.job_id, error, extra=execution.log_fields)
                self._settler.release(execution)
                return False
            if words or not queue.holds(execution):
                queue.drop(execution)
                return False
            execution.marked = True
        if self.stopping:
            self._settler.release(execution)
            return False
        return True

    async def _say_started(self, execution: Execution) -> leases.Words:
        """Mark a claim, in as many tries as it takes: the server takes a repetition for the same start."""

        def unsure() -> None:
            # Where it stays unknown, the mark is taken back: rather one start more than an innocent dead.
            execution.marked = True

        queue = execution.queue
        call = leases.suspect(queue.keys, self._station.consumer, [execution.claim])
        return await insist(self._station, queue, call, stopping=lambda: self.stopping, unsure=unsure)
