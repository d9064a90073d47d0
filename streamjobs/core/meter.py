"""What the producers and workers of one app have done in this process: plain counts, for monitors to read."""

import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from streamjobs.core.exposition import OTHER

Labels = tuple[str, str]
"""Queue and kind."""

EDGES_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0)
"""Upper edges of the buckets of all times; beyond the last one, the default timeout, is one more."""


class Times:
    """A histogram of seconds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(EDGES_S) + 1)
        self.sum_s = 0.0

    def add(self, some_s: list[float]) -> None:
        """Count some times, and leave them in order."""
        some_s.sort()
        below = 0
        for at, edge in enumerate(EDGES_S):
            up_to = bisect_right(some_s, edge, below)
            self.counts[at] += up_to - below
            below = up_to
        self.counts[-1] += len(some_s) - below
        self.sum_s += sum(some_s)


class Row:
    """What became of the jobs of one kind in one queue."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.runs = Times()
        self.waits = Times()


class Shift(Protocol):
    """One worker at work: the counts that it keeps anyhow, and what it does now."""

    @property
    def reclaimed(self) -> int: ...
    @property
    def leases_lost(self) -> int: ...
    @property
    def errors(self) -> Counter[str]: ...
    @property
    def slots(self) -> int: ...
    @property
    def loop_lag_s(self) -> float: ...
    def running(self) -> Iterable[Labels]: ...


class Meter:
    """The counts of one app. They only grow; a worker's own are kept when it has ended."""

    def __init__(self) -> None:
        self.on = False
        """Whether somebody reads them: until then nothing that costs each job is counted."""
        self.kinds: set[str] = set()
        self.queues: set[str] = set()
        """Those that may be labels: registered, or given to a worker by name."""
        self.after_fork()

    def after_fork(self) -> None:
        """Begin at nothing: what the parent has done is the parent's to tell."""
        self.rows: dict[Labels, Row] = {}
        self.shifts: list[Shift] = []
        self._enqueued: Counter[tuple[str, str, str]] = Counter()
        self._reclaimed = self._leases_lost = 0
        self._errors: Counter[str] = Counter()
        # Plain code enqueues in any number of threads.
        self._lock = threading.Lock()

    def labels(self, queue: str, kind: str) -> Labels:
        """Return queue and kind as labels: what is known, and `_other` for all else."""
        return queue if queue in self.queues else OTHER, kind if kind in self.kinds else OTHER

    def row(self, queue: str, kind: str) -> Row:
        """Return where the jobs of a kind in a queue are counted."""
        row = self.rows.get((queue, kind))
        if row is None:
            row = self.rows.setdefault(self.labels(queue, kind), Row())
        return row

    def enqueue(self, queue: str, kind: str, outcome: str) -> None:
        """Count what came of one enqueue."""
        with self._lock:
            self._enqueued[*self.labels(queue, kind), outcome] += 1

    @property
    def enqueued(self) -> dict[tuple[str, str, str], int]:
        """Enqueues by queue, kind and outcome."""
        with self._lock:
            return dict(self._enqueued)

    @property
    def reclaimed(self) -> int:
        """Claims that were taken over from workers that had fallen silent."""
        return self._reclaimed + sum(shift.reclaimed for shift in self.shifts)

    @property
    def leases_lost(self) -> int:
        """Claims that another worker took over, or ended, before this process settled them."""
        return self._leases_lost + sum(shift.leases_lost for shift in self.shifts)

    @property
    def errors(self) -> Counter[str]:
        """Requests that failed and were tried again, by the class of their error."""
        return sum((shift.errors for shift in self.shifts), self._errors.copy())

    @contextmanager
    def counting(self, shift: Shift) -> Iterator[None]:
        """Count a worker in while the block runs, and keep what it has counted."""
        self.shifts.append(shift)
        try:
            yield
        finally:
            self.shifts.remove(shift)
            self._reclaimed += shift.reclaimed
            self._leases_lost += shift.leases_lost
            self._errors += shift.errors
