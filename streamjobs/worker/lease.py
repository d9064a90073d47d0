"""Keep leases, from a thread of its own: a handler that blocks the event loop keeps its job all the same."""

import asyncio
import logging
import threading
from collections.abc import Callable
from functools import partial
from time import monotonic

from streamjobs.client.sync import SyncExecutor
from streamjobs.core.errors import StreamJobsError
from streamjobs.protocol import leases
from streamjobs.protocol.intake import MAX_BATCH_JOBS
from streamjobs.worker.execution import Execution, WorkerQueue
from streamjobs.worker.station import Station

log = logging.getLogger("streamjobs.worker")

LAST_ROUND_S = 0.2
BLOCKED_S = 0.5
"""An event loop that has not moved for this long is named in a warning."""

Verdict = Callable[[Execution, int, str], None]
"""Takes, in the loop, a claim (at this delivery count) that is LOST, CANCELLED or EXPIRED."""


class LeaseKeeper:
    """Renews every claim older than a third of its lease: read ahead, running, decided but not settled."""

    def __init__(
        self,
        station: Station,
        executor: SyncExecutor,
        verdict: Verdict,
        broken: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        """Run in the worker's event loop; `start` begins. `broken`: takes there what ends the thread."""
        self._executor = executor
        self._queues = station.queues
        self._consumer = station.consumer
        self._verdict = verdict
        self._broken = broken
        # A job past its deadline by more than this is given up: its handler does not end.
        self._overdue_s = station.options.ms("grace") / 1000
        self._loop = asyncio.get_running_loop()
        self._stop = threading.Event()
        self._complaints = station.complaints
        self._asked_at: float | None = None
        """When the loop was asked for a sign of life that it has not given."""
        self._default_ms = station.options.ms("lease")
        self._unanswered = 0
        """Rounds since then."""
        self._thread = threading.Thread(target=self._run, name="streamjobs-lease", daemon=True)
        self.renewed = 0

    @property
    def loop_still_s(self) -> float:
        """For how long at least the event loop has not moved while this thread did: where the whole process
        stood still, that is not its fault.
        """
        return self._unanswered * self._every_s()

    def start(self) -> None:
        """Begin; `stop` ends it."""
        self._thread.start()

    def stop(self) -> None:
        """Renew nothing more. A renewal under way to a server that hangs is not waited for: it holds nothing."""
        self._stop.set()
        self._thread.join(LAST_ROUND_S)

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._every_s()):
                self._watch_loop()
                for queue in self._queues:
                    self.round(queue)
        except Exception as error:
            # Without leases its jobs would be taken over one by one, and run beside it.
            self._in_loop(partial(self._broken, error))

    def _every_s(self) -> float:
        return min((queue.lease_ms for queue in self._queues), default=self._default_ms) / 6000

    def round(self, queue: WorkerQueue) -> None:
        """Renew what is due in one queue, and report what is not ours any more."""
        now = monotonic()
        third = queue.lease_ms / 3000
        held = list(queue.held.values())
        due = [one for one in held if now - one.claim.claimed_at > third and not self._overdue(one, now)]
        for at in range(0, len(due), MAX_BATCH_JOBS):
            self._renew(queue, due[at : at + MAX_BATCH_JOBS])
        for one in held:
            # By the local clock, which goes on while the server cannot be reached.
            if monotonic() - one.claim.claimed_at > queue.lease_ms / 1000:
                self._tell(one, one.claim.deliveries, "EXPIRED")

    def _overdue(self, execution: Execution, now: float) -> bool:
        deadline = execution.deadline
        return deadline is not None and not execution.settling and now > deadline + self._overdue_s

    def _renew(self, queue: WorkerQueue, due: list[Execution]) -> None:
        renewals = [
            leases.Renewal(one.claim.entry, one.claim.deliveries, one.local_id, one.meta.held_key) for one in due
        ]
        sent_at = monotonic()
        try:
            words = self._executor.run(leases.renew(queue.keys, self._consumer, renewals))
        except StreamJobsError as error:
            self._complaints.trying_on("leases are not renewed", error)
            return
        for index, one in enumerate(due):
            if index in words:
                self._tell(one, renewals[index].deliveries, words[index])
            else:
                one.claim.claimed_at = sent_at
                self.renewed += 1

    def _tell(self, execution: Execution, deliveries: int, word: str) -> None:
        self._in_loop(lambda: self._verdict(execution, deliveries, word))

    def _in_loop(self, action: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError:
            # The loop is closed; the worker is gone and so is what it held.
            self._stop.set()

    def _watch_loop(self) -> None:
        """Ask the event loop for a sign of life; name the job that keeps it from giving one."""
        if self._asked_at is None:
            self._asked_at = monotonic()
            self._in_loop(self._answer)
            return
        self._unanswered += 1
        if (silent_s := monotonic() - self._asked_at) > BLOCKED_S:
            who = self._running_now()
            self._complaints.say(
                "blocked",
                "the event loop has not moved for %.1f s: %s blocks it; use a plain function, or await",
                silent_s,
                f"{who.kind} (job {who.job_id})" if who else "something",
            )

    def _answer(self) -> None:
        self._asked_at = None
        self._unanswered = 0

    def _running_now(self) -> Execution | None:
        task = asyncio.current_task(self._loop)
        held = [one for queue in self._queues for one in list(queue.held.values())]
        return next((one for one in held if one.task is not None and one.task is task), None)
