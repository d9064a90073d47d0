"""Keep the deadlines of all running jobs with one sweep, and give back what waits in vain for a slot."""

from time import monotonic

from streamjobs.worker.clock import BEAT_S
from streamjobs.worker.execution import Ending, Execution
from streamjobs.worker.run import Runner
from streamjobs.worker.start import Starter
from streamjobs.worker.station import Station


class Deadlines:
    """Ends handlers at their deadline; abandons those still alive `grace` seconds after it."""

    name = "deadlines"

    def __init__(self, station: Station, runner: Runner, starter: Starter) -> None:
        self._queues = station.queues
        self._pulse = station.pulse
        self._grace_s = station.options.ms("grace") / 1000
        self._runner = runner
        self._starter = starter

    async def tick(self) -> float:
        """Look at every running job once."""
        self._pulse.beat()
        now = monotonic()
        for queue in self._queues:
            for execution in list(queue.held.values()):
                if execution.runs and execution.deadline is not None and now >= execution.deadline:
                    self._overdue(execution, now - execution.deadline)
        self._starter.release_stale(now)
        return BEAT_S

    def _overdue(self, execution: Execution, late_s: float) -> None:
        if execution.ending is Ending.NONE:
            execution.ending = Ending.DEADLINE
            execution.cancel()
        elif late_s >= self._grace_s:
            # Also where it was cancelled, or lost, before: its slot is ours all the same.
            self._runner.abandon(execution)
