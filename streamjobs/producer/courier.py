"""One thread that sends what any number of threads have handed over, and ends their futures.

What has gathered goes with the next call, as everywhere: no timer, no tuning. Each lane has at most one
*trip*, a conversation with the jobs that it carries, and the thread takes a step of whichever is due. So a
queue that is full, or a pause before another try, does not hold up the jobs of other queues.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from time import monotonic
from typing import Any, Generic, TypeVar

import msgspec

from streamjobs.client.sync import SyncExecutor
from streamjobs.client.talk import Pause, Talk
from streamjobs.core.errors import NotSent
from streamjobs.core.job import Job
from streamjobs.producer.batching import Lane, Shipment, Shipped
from streamjobs.producer.cargo import Cargo
from streamjobs.producer.sending import Sender
from streamjobs.protocol.intake import MAX_BATCH_JOBS

H = TypeVar("H")

Load = tuple[Cargo[Any], list[Shipment], "list[Parcel]"]
"""Jobs that share a deadline, as a bulk."""

NEAR = 0.01
"""Jobs whose deadlines differ by less than this part of their time share the earliest one."""

_log = logging.getLogger("streamjobs.producer")


class Parcel(Future[Any]):
    """A job that is handed over, and the future of its handle."""

    def __init__(self, job: Job, deadline: float, courier: "Courier[Any]") -> None:
        """`deadline`: by when it must be sent, in monotonic seconds."""
        super().__init__()
        # One for all: a condition each, alive with ten thousand others, is most of what the collector looks at.
        self._condition = courier.endings
        self._courier = courier
        self.job = job
        self.deadline = deadline

    def result(self, timeout: float | None = None) -> Any:
        """See `concurrent.futures.Future`."""
        self._await(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """See `concurrent.futures.Future`."""
        self._await(timeout)
        return super().exception(0)

    def _await(self, timeout: float | None) -> None:
        with self._condition:
            # The others' ends wake it too.
            self._condition.wait_for(self.done, timeout)

    def cancel(self) -> bool:
        """Take the job out, if it was not sent yet, so that it takes up no room; say whether it is out."""
        if cancelled := super().cancel():
            self._courier.look_for_cancelled()
        return cancelled


class _Trip(msgspec.Struct, eq=False):
    """The jobs of one lane that are under way, at most one batch."""

    lane: Lane
    loads: list[Load]
    conversation: Talk[None]
    step: Any = None
    """What the conversation waits for; None before it has begun."""
    due: float = 0.0


class Courier(Generic[H]):
    """Sends the parcels that are put into `buffer`, in a thread of its own.

    The lock guards `buffer` and `idle`. Who puts something in while `idle` is true notifies `changed`.
    """

    def __init__(
        self,
        executor: SyncExecutor,
        sender: Sender[H],
        timeout_s: float,
        lock: threading.Lock,
        ended: Callable[[Iterable[Parcel]], None],
    ) -> None:
        """Start the thread.

        Args:
            executor: runs the requests.
            sender: this courier's own.
            timeout_s: the time that each job has to be sent.
            lock: shared with whoever fills the buffer.
            ended: called with parcels just before their futures end.
        """
        self.buffer: deque[Parcel] = deque()
        self.changed = threading.Condition(lock)
        self.idle = False
        self.endings = threading.Condition()
        """Notified whenever a future ends."""
        self._executor = executor
        self._sender = sender
        self._near_s = timeout_s * NEAR
        self._ended = ended
        self._cancelled = self._stopping = False
        self._waiting: dict[Lane, deque[Parcel]] = {}
        self._trips: dict[Lane, _Trip] = {}
        self.thread = threading.Thread(target=self._run, name="streamjobs-submit", daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """Let the thread end soon: what it has not sent by now is not sent any more.

        It still waits for the answer to what it has just sent, and asks once more where one was lost.
        """
        with self.changed:
            self._stopping = True
            self.changed.notify()

    def look_for_cancelled(self) -> None:
        """Take out the jobs whose futures were cancelled."""
        with self.changed:
            self._cancelled = True
            self.changed.notify()

    def _run(self) -> None:
        while self._gather():
            for lane in [lane for lane in self._waiting if lane not in self._trips]:
                self._depart(lane)
            now = monotonic()
            for trip in [trip for trip in self._trips.values() if trip.due <= now]:
                self._step(trip)

    def _gather(self) -> bool:
        """Wait until there is something to do, and take in what has come; False when all is over."""
        with self.changed:
            while not (self.buffer or self._cancelled or self._stopping) and (left_s := self._left_s()) != 0:
                self.idle = True
                self.changed.wait(left_s)
                self.idle = False
            came, self.buffer = self.buffer, deque()
            look, self._cancelled = self._cancelled, False
            stopping = self._stopping
        for parcel in came:
            try:
                self._waiting.setdefault(self._sender.lane(parcel.job), deque()).append(parcel)
            except Exception as error:
                # A job that was not made by call().
                self._refuse(self._started([parcel]), error)
        if look:
            self._drop_cancelled()
        if stopping:
            self._hurry()
        return bool(self._waiting or self._trips or not stopping)

    def _left_s(self) -> float | None:
        """Return in how many seconds there is something to do, 0 for now; None where only others can tell."""
        if not self._trips or self._waiting.keys() - self._trips.keys():
            return 0 if self._waiting else None
        return max(0, min(trip.due for trip in self._trips.values()) - monotonic())

    def _drop_cancelled(self) -> None:
        for lane, parcels in list(self._waiting.items()):
            kept: deque[Parcel] = deque()
            gone: list[Parcel] = []
            for parcel in parcels:
                (gone if parcel.cancelled() else kept).append(parcel)
            self._waiting[lane] = kept
            if not kept:
                del self._waiting[lane]
            self._started(gone)

    def _started(self, parcels: Iterable[Parcel]) -> list[Parcel]:
        """Return those that were not cancelled; from now on they cannot be. The others have ended."""
        started: list[Parcel] = []
        gone: list[Parcel] = []
        for parcel in parcels:
            (started if parcel.set_running_or_notify_cancel() else gone).append(parcel)
        if gone:
            self._ended(gone)
        return started

    def _hurry(self) -> None:
        """Let every deadline be over."""
        for parcel in self._started(parcel for parcels in self._waiting.values() for parcel in parcels):
            why = f"not sent to {parcel.job.queue}, nothing was enqueued: its producer was closed"
            self._refuse([parcel], NotSent(why))
        self._waiting.clear()
        for trip in self._trips.values():
            trip.due = 0.0
            for shipment in _last(trip):
                shipment.deadline = 0.0
                if shipment.sending is not None:
                    shipment.sending.deadline = 0.0

    def _depart(self, lane: Lane) -> None:
        """Begin a trip with what waits for a lane."""
        waiting = self._waiting[lane]
        parcels = self._started([waiting.popleft() for _ in range(min(len(waiting), MAX_BATCH_JOBS))])
        if not waiting:
            del self._waiting[lane]
        if parcels:
            try:
                loads = list(self._load(parcels))
            except Exception as error:
                return self._refuse(parcels, error)
            conversation = self._sender.carry(lane, [one for _, shipments, _ in loads for one in shipments])
            self._trips[lane] = _Trip(lane, loads, conversation)
        return None

    def _load(self, parcels: list[Parcel]) -> Iterator[Load]:
        while parcels:
            deadline, end = parcels[0].deadline, len(parcels)
            if parcels[-1].deadline - deadline > self._near_s:
                end = next(n for n, parcel in enumerate(parcels) if parcel.deadline - deadline > self._near_s)
            part, parcels = parcels[:end], parcels[end:]
            cargo = Cargo(self._sender, [parcel.job for parcel in part])
            shipments = [shipment for _, shipment in cargo.shipments()]
            for shipment in shipments:
                shipment.deadline = deadline
            yield cargo, shipments, part

    def _step(self, trip: _Trip) -> None:
        try:
            step = trip.step
            # Its requests are all `Leniently`: no reply is for us to judge.
            replies = None if step is None else [] if isinstance(step, Pause) else self._executor.run_all(step)
            step = trip.step = trip.conversation.send(replies)  # type: ignore[arg-type]
            trip.due = 0.0
            if isinstance(step, Pause):
                trip.due = monotonic() + step.seconds
                self._tell(trip)
        except StopIteration:
            self._arrive(trip)
        except BaseException as error:
            # Whatever it is, nobody may be left waiting.
            _log.exception("sending to %s failed", trip.lane.keys.queue)
            trip.conversation.close()
            for shipment in _last(trip):
                if shipment.outcome is None:
                    shipment.settle(NotSent(f"not sent to {trip.lane.keys.queue}, nothing was enqueued: {error!r}"))
            self._arrive(trip)

    def _tell(self, trip: _Trip) -> None:
        """End the futures of jobs that are there already, while others of their batch wait for room."""
        for _, shipments, parcels in trip.loads:
            rest = iter(parcels)
            for shipment in shipments:
                for index, parcel in zip(range(len(shipment.jobs)), rest):  # noqa: B905 - the rest is for the next
                    last, place = shipment.last(index)
                    there = isinstance(last.outcome, Shipped) and place not in last.outcome.full
                    if there and not parcel.done():
                        self._end([parcel], [self._sender.handle(trip.lane, shipment, index)])

    def _arrive(self, trip: _Trip) -> None:
        del self._trips[trip.lane]
        for cargo, shipments, parcels in trip.loads:
            for shipment in shipments:
                cargo.unload(trip.lane, shipment)
            self._end(parcels, cargo.results)

    def _refuse(self, parcels: Sequence[Parcel], error: Exception) -> None:
        self._end(parcels, [error] * len(parcels))

    def _end(self, parcels: Sequence[Parcel], results: Sequence[H | Exception]) -> None:
        self._ended(parcels)
        for parcel, result in zip(parcels, results, strict=True):
            try:
                if isinstance(result, Exception):
                    parcel.set_exception(result)
                elif not parcel.done():
                    parcel.set_result(result)
            except BaseException:
                # A callback that ends the process, as it thinks, ends no more than itself here.
                _log.exception("a callback of a future failed")


def _last(trip: _Trip) -> Iterator[Shipment]:
    """Yield the shipments with which the jobs of a trip went last."""
    for _, shipments, _ in trip.loads:
        for shipment in shipments:
            while shipment.rest is not None:
                shipment, _ = shipment.rest
            yield shipment
