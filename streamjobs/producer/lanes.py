"""What both producers share: the lanes of one sender, by queue, and how bulks are cut into shipments."""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from streamjobs.client.forks import watch
from streamjobs.core.errors import OutcomeUnknown, StreamJobsError, UsageError
from streamjobs.core.job import Job
from streamjobs.producer.batching import Lane, Shipment, Shipped
from streamjobs.protocol import intake
from streamjobs.protocol.keys import QueueKeys

H = TypeVar("H")

MakeHandle = Callable[[QueueKeys, Job, str, bool], H]
"""Makes what callers get for one job: of its keys, itself, its local id, and whether it is another's."""


class Lanes(Generic[H]):
    """The lanes of one sender, made when first used. A forked child begins with none."""

    def __init__(self, namespace: str, make_handle: MakeHandle[H]) -> None:
        self._namespace = namespace
        self._make_handle = make_handle
        self.after_fork()
        watch(self)

    def after_fork(self) -> None:
        """Begin anew: the parent's batches are the parent's to send."""
        self._lanes: dict[tuple[str, bool], Lane] = {}
        self._queues: dict[str, QueueKeys] = {}
        self.unannounced: set[str] = set()

    def lane(self, job: Job) -> Lane:
        """Return the lane that this job takes."""
        later = job.delay_ms > 0 or job.at_ms > 0
        lane = self._lanes.get((job.queue, later))
        if lane is None:
            if job.queue not in self._queues:
                self._queues[job.queue] = QueueKeys(self._namespace, job.queue)
                self.unannounced.add(job.queue)
            lane = self._lanes.setdefault((job.queue, later), Lane(self._queues[job.queue], later=later))
        return lane

    def handle(self, lane: Lane, shipment: Shipment, index: int) -> H:
        """Return the handle of one job of a shipment that arrived."""
        assert isinstance(shipment.outcome, Shipped)
        ids, held = shipment.outcome.ids, shipment.outcome.held
        return self._make_handle(lane.keys, shipment.jobs[index], ids[index], index in held)


def outcome_error(shipment: Shipment, retry: Callable[[int], object], index: int) -> StreamJobsError | None:
    """Return the error for one job of a shipment, with its own way to find out; None when it arrived."""
    outcome = shipment.outcome
    if isinstance(outcome, OutcomeUnknown):
        return OutcomeUnknown(str(outcome), retry=lambda: retry(index))
    return outcome if isinstance(outcome, StreamJobsError) else None


class Cargo(Generic[H]):
    """A bulk on its way: its jobs cut into shipments per lane, its results in the order of its jobs."""

    def __init__(self, lanes: Lanes[H], jobs: Iterable[Job], deadline: Callable[[], float]) -> None:
        self._lanes = lanes
        self._jobs = jobs
        self._deadline = deadline
        self.results: list[H | StreamJobsError] = []
        self._places: dict[int, list[int]] = {}

    def shipments(self) -> Iterator[tuple[Lane, Shipment]]:
        """Yield shipments of at most 500 jobs and 1 MiB, each as soon as it is full.

        What is no job gets its error as its result; the others go on. When the iterable raises, what it
        gave before is still yielded.
        """
        part: list[Job] = []
        places: list[int] = []
        current: Lane | None = None
        size = 0
        open_parts: dict[Lane, tuple[list[Job], list[int]]] = {}
        results, lane_of = self.results, self._lanes.lane
        try:
            for job in self._jobs:
                place = len(results)
                results.append(_UNSETTLED)
                if not isinstance(job, Job):
                    results[place] = UsageError(
                        f"item {place}: expected a job made by call(), not {job!r:.80}"
                    )
                    continue
                lane = lane_of(job)
                if lane is not current:
                    current = lane
                    part, places = open_parts.setdefault(lane, ([], []))
                    size = sum(len(one.body) for one in part)
                part.append(job)
                places.append(place)
                size += len(job.body)
                if len(part) >= intake.MAX_BATCH_JOBS or size >= intake.MAX_BATCH_BYTES // 2:
                    del open_parts[lane]
                    current = None
                    yield lane, self._ship(part, places)
        except GeneratorExit:
            open_parts.clear()
            raise
        finally:
            for lane, (part, places) in open_parts.items():
                yield lane, self._ship(part, places)

    def _ship(self, jobs: list[Job], places: list[int]) -> Shipment:
        shipment = Shipment(jobs, self._deadline())
        self._places[id(shipment)] = places
        return shipment

    def unload(self, lane: Lane, shipment: Shipment, retry: Callable[[int], object]) -> None:
        """Put the results of a shipment into their places."""
        places = self._places.pop(id(shipment))
        if isinstance(shipment.outcome, Shipped):
            for index, place in enumerate(places):
                self.results[place] = self._lanes.handle(lane, shipment, index)
        else:
            for index, place in enumerate(places):
                self.results[place] = outcome_error(shipment, retry, index) or _UNSETTLED


_UNSETTLED = StreamJobsError("this job has not been sent")
