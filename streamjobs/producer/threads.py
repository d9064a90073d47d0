"""The producer for plain code: threads that enqueue at once share calls as coroutines do.

One thread sends what has gathered, for all, until its own job has arrived; then another one does. So
a lone caller pays one round trip, and a hundred share a few.
"""

import threading
from collections.abc import Iterable
from typing import Generic, TypeVar

from streamjobs.client.forks import watch
from streamjobs.client.sync import SyncExecutor
from streamjobs.client.talk import talk
from streamjobs.core import tracing
from streamjobs.core.errors import StreamJobsError
from streamjobs.core.job import Job
from streamjobs.producer.batching import Lane, Shipment
from streamjobs.producer.cargo import Cargo
from streamjobs.producer.sending import Sender
from streamjobs.producer.spans import SendSpan

H = TypeVar("H")


class SyncProducer(Generic[H]):
    """Sends jobs from any number of threads."""

    def __init__(self, executor: SyncExecutor, sender: Sender[H]) -> None:
        """`sender`: this producer's own; no other may have it."""
        self._executor = executor
        self._sender = sender
        self.after_fork()
        watch(self)

    def after_fork(self) -> None:
        """Make new gates: the thread that holds one of the parent's is not there in the child."""
        self._gates: dict[Lane, _Gate] = {}

    def enqueue(self, job: Job) -> H:
        """Send one job; return its handle. Raises as `AsyncProducer.enqueue` does; `retry()` is plain."""
        if tracer := tracing.tracer():
            with SendSpan(tracer) as span:
                handle = self._enqueue(span.carry(job))
                span.sent(job, handle)
                return handle
        return self._enqueue(job)

    def _enqueue(self, job: Job) -> H:
        lane = self._sender.lane(job)
        shipment = self._sender.shipment([job])
        self._ship(lane, shipment)
        self._sender.count(shipment)
        return self._sender.result(lane, shipment, 0)

    def enqueue_many(self, jobs: Iterable[Job]) -> list[H | StreamJobsError]:
        """Send any number of jobs in bounded batches; return a handle or the error of each, in order."""
        if tracer := tracing.tracer():
            with SendSpan(tracer) as span:
                results = self._enqueue_many(map(span.carry, jobs))
                span.sent_many(results)
                return results
        return self._enqueue_many(jobs)

    def _enqueue_many(self, jobs: Iterable[Job]) -> list[H | StreamJobsError]:
        cargo = Cargo(self._sender, jobs)
        for lane, shipment in cargo.shipments():
            self._ship(lane, shipment)
            cargo.unload(lane, shipment)
        return cargo.results

    def _ship(self, lane: Lane, shipment: Shipment) -> None:
        self._hand_over(lane, shipment)
        rest, tries = shipment, 0
        while self._sender.waits(lane, rest):
            tries += 1
            again = talk(self._executor, self._sender.wait_for_room([rest], tries))
            if not again:
                return
            [rest] = again
            self._hand_over(lane, rest)

    def _hand_over(self, lane: Lane, shipment: Shipment) -> None:
        lane.add(shipment)
        gate = self._gates.get(lane) or self._gates.setdefault(lane, _Gate())
        if gate.enter(shipment):
            try:
                talk(self._executor, self._sender.send_waiting(lane, shipment))
            except BaseException:
                # What was not sent by then is not to be sent by whoever comes next.
                shipment.abandoned = True
                raise
            finally:
                gate.leave()


class _Gate:
    """Lets one thread at a time send in a lane; the others wait until their jobs have arrived."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken = False

    def enter(self, shipment: Shipment) -> bool:
        """Wait; return True when it is this thread's turn to send, False when its shipment has arrived."""
        with self._changed:
            try:
                self._changed.wait_for(lambda: shipment.outcome is not None or not self._taken)
            except BaseException:
                shipment.abandoned = True
                raise
            if shipment.outcome is not None:
                return False
            self._taken = True
            return True

    def leave(self) -> None:
        """Let the others see what has arrived, and one of them send."""
        with self._changed:
            self._taken = False
            self._changed.notify_all()
