"""Bulks: any number of jobs, cut into shipments per lane, with results in the order of the jobs."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from streamjobs.core.errors import StreamJobsError, UsageError
from streamjobs.core.job import Job
from streamjobs.producer.batching import Lane, Shipment, Shipped
from streamjobs.producer.sending import Sender
from streamjobs.protocol import intake

H = TypeVar("H")


class Cargo(Generic[H]):
    """A bulk on its way: its jobs cut into shipments per lane, its results in the order of its jobs."""

    def __init__(self, sender: Sender[H], jobs: Iterable[Job]) -> None:
        self._sender = sender
        self._jobs = jobs
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
        results, lane_of = self.results, self._sender.lane
        try:
            for job in self._jobs:
                place = len(results)
                results.append(_UNSETTLED)
                if not isinstance(job, Job):
                    results[place] = UsageError(f"item {place}: expected a job made by call(), not {job!r:.80}")
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
        shipment = self._sender.shipment(jobs)
        self._places[id(shipment)] = places
        return shipment

    def unload(self, lane: Lane, shipment: Shipment) -> None:
        """Put the results of a shipment into their places."""
        places = self._places.pop(id(shipment))
        self._sender.count(shipment)
        if isinstance(shipment.outcome, Shipped) and not shipment.outcome.full:
            for index, place in enumerate(places):
                self.results[place] = self._sender.handle(lane, shipment, index)
        else:
            for index, place in enumerate(places):
                error = self._sender.error(lane, shipment, index)
                if error is None:
                    reached = isinstance(shipment.last(index)[0].outcome, Shipped)
                    self.results[place] = self._sender.handle(lane, shipment, index) if reached else _UNSETTLED
                else:
                    self.results[place] = error


_UNSETTLED = StreamJobsError("this job has not been sent")
