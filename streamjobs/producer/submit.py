"""The producer for many threads: hand over a job, go on at once, and hear what came of it by a future."""

import atexit
import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from time import monotonic
from types import TracebackType
from typing import Generic, Self, TypeVar

from streamjobs.client.forks import watch
from streamjobs.client.sync import SyncExecutor
from streamjobs.core import tracing
from streamjobs.core.errors import NotSent, UsageError
from streamjobs.core.job import Job
from streamjobs.producer.courier import Courier, Parcel
from streamjobs.producer.sending import ANSWER_S, Sender
from streamjobs.producer.spans import SendSpan

H = TypeVar("H")

_log = logging.getLogger("streamjobs.producer")


class Producer(Generic[H]):
    """Sends jobs for any number of threads; a context manager, made by `app.producer()`.

    Leaving its block, or `close`, waits for all jobs; so does the end of a process that forgot it. One
    thread does the sending, and one more for each level of durability beyond `memory` that is used: what
    waits for a disk does not hold up the rest. After a fork the child's buffer is empty; what was
    handed over before is its parent's to send.
    """

    def __init__(
        self, executor: SyncExecutor, make_sender: Callable[[float], Sender[H]], timeout_s: float, max_waiting: int
    ) -> None:
        """`make_sender`: makes a sender of its own for each thread, given the time that each job has."""
        self._executor = executor
        self._make_sender = make_sender
        self._timeout_s = timeout_s
        self._max_waiting = max_waiting
        self._closed = False
        self.after_fork()
        watch(self)
        atexit.register(self.close)

    def after_fork(self) -> None:
        """Begin with an empty buffer: threads and locks of the parent are of no use in the child."""
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._full = False
        """Whether a submit must wait: from when the buffer is full until half of it is free again."""
        self._couriers: dict[str, Courier[H]] = {}
        self._pending: set[Parcel] = set()

    def submit(self, job: Job, *, block: bool = True, timeout: float | None = None) -> Future[H]:
        """Hand over a job, made by `Kind.call`; return a future of its handle.

        The future ends with the handle, or with the error that `enqueue_sync` would raise: `QueueFull`,
        `NotSent`, `OutcomeUnknown` (whose `retry()` is plain), `Rejected`. Its job's time, the app's
        `enqueue_timeout`, counts from here. Cancelled before it was sent, the job is taken out; later it
        cannot be cancelled. Its callbacks run in the sending thread, so they should be short.

        Args:
            job: what to enqueue.
            block: whether to wait while the buffer is full. A callback never waits.
            timeout: how many seconds at most; None for as long as it takes.

        Raises:
            NotSent: the buffer was full, and for `timeout` seconds; nothing was enqueued.
            UsageError: this is no job, or the producer is closed.
        """
        if not isinstance(job, Job):
            raise UsageError(f"submit: expected a job made by call(), not {job!r:.80}")
        if tracer := tracing.tracer():
            with SendSpan(tracer) as span:
                carried = span.carry(job)
                future = self._submit(carried, block, timeout)
                span.sent(carried)
                return future
        return self._submit(job, block, timeout)

    def _submit(self, job: Job, block: bool, timeout: float | None) -> Future[H]:
        with self._lock:
            if self._full or self._closed:
                self._wait_for_room(block, timeout)
            courier = self._couriers.get(job.durability)
            if courier is None:
                courier = self._couriers[job.durability] = self._courier()
            parcel = Parcel(job, monotonic() + self._timeout_s, courier)
            courier.buffer.append(parcel)
            self._pending.add(parcel)
            if len(self._pending) >= self._max_waiting:
                self._full = True
            if courier.idle:
                courier.changed.notify()
        return parcel

    def _wait_for_room(self, block: bool, timeout: float | None) -> None:
        """Wait with the lock held."""
        if block and not self._is_own_thread():
            self._room.wait_for(lambda: not self._full or self._closed, timeout)
        if self._closed:
            raise UsageError("submit: this producer is closed, nothing was enqueued; make another one")
        if self._full and not self._is_own_thread():
            raise NotSent(f"nothing was enqueued: {self._max_waiting} jobs wait to be sent already (max_waiting)")

    def _is_own_thread(self) -> bool:
        return threading.current_thread() in [courier.thread for courier in self._couriers.values()]

    def _courier(self) -> Courier[H]:
        return Courier(self._executor, self._make_sender(self._timeout_s), self._timeout_s, self._lock, self._ended)

    def _ended(self, parcels: Iterable[Parcel]) -> None:
        with self._lock:
            self._pending.difference_update(parcels)
            if self._full and len(self._pending) <= self._max_waiting // 2:
                self._full = False
                self._room.notify_all()

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all jobs handed over by now have ended; say whether they have within so many seconds.

        Raises:
            UsageError: called from the callback of a future, which itself holds up the sending.
        """
        self._check_thread()
        with self._lock:
            pending = set(self._pending)
        return not wait(pending, timeout).not_done

    def _check_thread(self) -> None:
        if self._is_own_thread():
            raise UsageError("flush and close: not from the callback of a future, which runs in the sending thread")

    def close(self, timeout: float | None = None) -> None:
        """Flush, for `timeout` seconds at most, and end the sending; harmless when repeated.

        What was not sent by then ends as `NotSent`, and where an answer is missing, as `OutcomeUnknown`;
        for what is under way it takes a few seconds more. None: for the time that each job has.
        """
        self._check_thread()
        with self._lock:
            self._closed = True
            self._room.notify_all()
        try:
            self.flush(self._timeout_s + ANSWER_S if timeout is None else timeout)
        finally:
            with self._lock:
                left = list(self._pending)
            for courier in list(self._couriers.values()):
                courier.stop()
            for courier in list(self._couriers.values()):
                courier.thread.join()
            atexit.unregister(self.close)
        failed = [error for one in left if not one.cancelled() and (error := one.exception(0))]
        if failed:
            _log.warning("of %d jobs it is not known that they were enqueued: %s", len(failed), failed[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
