"""The producer for plain code: threads that enqueue at once share calls as coroutines do.

Whoever holds the lane's lock sends what has gathered, for all: so a lone caller pays one round
trip, and a hundred share a few.
"""

import threading
from collections.abc import Iterable
from functools import partial
from random import Random
from time import monotonic, sleep
from typing import Generic, TypeVar

from streamjobs.client import Connections
from streamjobs.client.forks import watch
from streamjobs.core.errors import StreamJobsError
from streamjobs.core.failpoints import failpoint
from streamjobs.core.job import Job
from streamjobs.producer.batching import Lane, Sending, Shipment
from streamjobs.producer.lanes import Cargo, Lanes, MakeHandle, outcome_error
from streamjobs.protocol import intake

H = TypeVar("H")


class SyncProducer(Generic[H]):
    """Sends jobs from any number of threads."""

    def __init__(
        self, connections: Connections, namespace: str, make_handle: MakeHandle[H], timeout_s: float
    ) -> None:
        """`timeout_s`: how long a job may wait to be sent, and an answer be awaited."""
        self._executor = connections.sync()
        self._namespace = namespace
        self._timeout_s = timeout_s
        self._lanes = Lanes(namespace, make_handle)
        self._random = Random()
        self.after_fork()
        watch(self)

    def after_fork(self) -> None:
        """Make new locks: the thread that holds one of the parent's is not there in the child."""
        self._locks: dict[Lane, threading.Lock] = {}
        self._making = threading.Lock()

    def enqueue(self, job: Job) -> H:
        """Send one job; return its handle. Raises as `AsyncProducer.enqueue` does; `retry()` is plain."""
        lane = self._lane(job)
        shipment = Shipment([job], monotonic() + self._timeout_s)
        self._ship(lane, shipment)
        if error := outcome_error(shipment, partial(self._again, lane, shipment), 0):
            raise error
        return self._lanes.handle(lane, shipment, 0)

    def enqueue_many(self, jobs: Iterable[Job]) -> list[H | StreamJobsError]:
        """Send any number of jobs in bounded batches; return a handle or the error of each, in order."""
        with self._making:
            cargo = Cargo(self._lanes, jobs, lambda: monotonic() + self._timeout_s)
        for lane, shipment in cargo.shipments():
            self._ship(lane, shipment)
            cargo.unload(lane, shipment, partial(self._again, lane, shipment))
        return cargo.results

    def _lane(self, job: Job) -> Lane:
        with self._making:
            return self._lanes.lane(job)

    def _ship(self, lane: Lane, shipment: Shipment) -> None:
        with self._making:
            lock = self._locks.setdefault(lane, threading.Lock())
        lane.add(shipment)
        with lock:
            self._announce()
            while shipment.outcome is None:
                sending = lane.next_batch(monotonic())
                if sending is not None:
                    self._send(lane, sending)

    def _announce(self) -> None:
        names, self._lanes.unannounced = self._lanes.unannounced, set()
        if names:
            try:
                self._executor.run(intake.announce(self._namespace, sorted(names)))
            except StreamJobsError:
                # The jobs themselves will tell; a worker announces its queues too.
                self._lanes.unannounced |= names

    def _send(self, lane: Lane, sending: Sending) -> None:
        while True:
            try:
                failpoint("producer.before_send")
                accepted = self._executor.run(sending.call)
                failpoint("producer.after_reply")
            except (StreamJobsError, intake.BatchRefused) as error:
                again = lane.failed(sending, error, monotonic())
                sleep(lane.pause_s(self._random.random()))
                if not again:
                    return
            except BaseException as error:
                lane.lose(sending, repr(error))
                raise
            else:
                lane.arrived(sending, accepted)
                return

    def _again(self, lane: Lane, shipment: Shipment, index: int) -> H:
        sending = shipment.sending
        assert sending is not None
        if isinstance(shipment.outcome, StreamJobsError):
            try:
                sending.settle(self._executor.run(sending.again(monotonic())))
            except StreamJobsError as error:
                raise outcome_error(shipment, partial(self._again, lane, shipment), index) or error from error
        return self._lanes.handle(lane, shipment, index)
