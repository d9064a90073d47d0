"""Keep the deadlines of all running jobs with one sweep, and give back what waits in vain for a slot."""

from time import monotonic

from streamjobs.core.execution import Ending
from streamjobs.worker.queues import WorkerQueue
from streamjobs.worker.run import Runner
from streamjobs.worker.start import Starter


class Deadlines:
    """Ends handlers at their deadline; abandons those still alive `grace` seconds after it."""

    name = "deadlines"

    def __init__(
        self, queues: list[WorkerQueue], runner: Runner, starter: Starter, grace_s: float, every_s: float = 0.1
    ) -> None:
        self._queues = queues
        self._runner = runner
        self._starter = starter
        self._grace_s = grace_s
        self._every_s = every_s

    async def tick(self) -> float:
        """Look at every running job once."""
        now = monotonic()
        for queue in self._queues:
            for held in list(queue.held.values()):
                execution = held.execution
                if execution is None or execution.deadline is None or held.claim.settling:
                    continue
                if now < execution.deadline or execution.task is None:
                    continue
                if execution.ending is Ending.NONE:
                    execution.ending = Ending.DEADLINE
                    if execution.handler.is_async:
                        execution.task.cancel()
                elif execution.ending is Ending.DEADLINE and now >= execution.deadline + self._grace_s:
                    self._runner.abandon(queue, held, execution)
        self._starter.release_stale(now)
        return self._every_s
