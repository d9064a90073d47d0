"""Keep leases, from a thread of its own: a handler that blocks the event loop keeps its job all the same."""

import asyncio
import logging
import threading
from collections.abc import Callable
from time import monotonic

from streamjobs.client import Connections
from streamjobs.core.errors import StreamJobsError
from streamjobs.core.execution import Execution
from streamjobs.protocol import leases
from streamjobs.worker.queues import Held, WorkerQueue
from streamjobs.worker.service import Complaints

log = logging.getLogger("streamjobs.worker")

MOST = 500
BLOCKED_S = 1.0
"""An event loop that has not moved for this long is named in a warning."""

Verdict = Callable[[WorkerQueue, Held, int, str], None]
"""Takes, in the loop, a claim (at this delivery count) that is LOST, CANCELLED or EXPIRED."""


class LeaseKeeper:
    """Renews every claim older than a third of its lease: read ahead, running, decided but not settled."""

    def __init__(
        self,
        connections: Connections,
        queues: list[WorkerQueue],
        consumer: str,
        verdict: Verdict,
        overdue_s: float,
    ) -> None:
        """`overdue_s`: seconds after its deadline for which a job is still renewed."""
        self._executor = connections.sync()
        self._queues = queues
        self._consumer = consumer
        self._verdict = verdict
        self._overdue_s = overdue_s
        self._loop = asyncio.get_running_loop()
        self._stop = threading.Event()
        self._complaints = Complaints()
        self._beat_at = monotonic()
        self._every_s = min(queue.lease_ms for queue in queues) / 6000
        self._thread = threading.Thread(target=self._run, name="streamjobs-lease", daemon=True)
        self.renewed = 0

    def start(self) -> None:
        """Begin; `stop` ends it."""
        self._thread.start()

    def stop(self) -> None:
        """Renew nothing more."""
        self._stop.set()

    async def stopped(self) -> None:
        """Wait until the thread has ended."""
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            self._watch_loop()
            for queue in self._queues:
                self.round(queue)

    def round(self, queue: WorkerQueue) -> None:
        """Renew what is due in one queue, and report what is not ours any more."""
        now = monotonic()
        third = queue.lease_ms / 3000
        held = list(queue.held.values())
        due = [one for one in held if now - one.claim.claimed_at > third and not self._overdue(one, now)]
        for at in range(0, len(due), MOST):
            self._renew(queue, due[at : at + MOST])
        for one in held:
            if queue.expired(one.claim, monotonic()):
                self._tell(queue, one, one.claim.deliveries, "EXPIRED")

    def _overdue(self, held: Held, now: float) -> bool:
        execution = held.execution
        if execution is None or execution.deadline is None:
            return False
        return not held.claim.settling and now > execution.deadline + self._overdue_s

    def _renew(self, queue: WorkerQueue, due: list[Held]) -> None:
        renewals = [_renewal(one) for one in due]
        sent_at = monotonic()
        try:
            words = self._executor.run(leases.renew(queue.keys, self._consumer, renewals))
        except StreamJobsError as error:
            self._complaints.say(type(error).__name__, "leases are not renewed: %s; trying on", error)
            return
        for index, one in enumerate(due):
            if index in words:
                self._tell(queue, one, renewals[index].deliveries, words[index])
            else:
                one.claim.claimed_at = sent_at
                self.renewed += 1

    def _tell(self, queue: WorkerQueue, held: Held, deliveries: int, word: str) -> None:
        self._in_loop(lambda: self._verdict(queue, held, deliveries, word))

    def _in_loop(self, action: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError:
            # The loop is closed; the worker is gone and so is what it held.
            self._stop.set()

    def _watch_loop(self) -> None:
        """Name the job that keeps the event loop from moving."""
        silent_s = monotonic() - self._beat_at
        if silent_s > BLOCKED_S:
            who = self._running_now()
            self._complaints.say(
                "blocked",
                "the event loop has not moved for %.1f s: %s blocks it; use a plain function, or await",
                silent_s,
                f"{who.handler.kind} (job {who.job_id})" if who else "something",
            )
        self._in_loop(self._beat)

    def _beat(self) -> None:
        self._beat_at = monotonic()

    def _running_now(self) -> Execution | None:
        task = asyncio.current_task(self._loop)
        for queue in self._queues:
            for held in list(queue.held.values()):
                if held.execution is not None and held.execution.task is task:
                    return held.execution
        return None


def _renewal(held: Held) -> leases.Renewal:
    claim, execution = held.claim, held.execution
    if execution is None:
        return leases.Renewal(claim.entry, claim.deliveries, "")
    return leases.Renewal(claim.entry, claim.deliveries, execution.local_id, execution.meta.dedupe_key)
