"""Counts of an app: they only grow, and only what is known becomes a label."""

import threading
from collections import Counter
from collections.abc import Iterable

from streamjobs.core.meter import EDGES_S, Labels, Meter, Times


class Done:
    """A worker that has counted something."""

    reclaimed, leases_lost, slots, loop_lag_s = 1, 2, 3, 0.5

    def __init__(self, **errors: int) -> None:
        self.errors = Counter(errors)

    def running(self) -> Iterable[Labels]:
        return [("q", "k")]


def test_times_fall_into_the_bucket_whose_edge_they_do_not_exceed() -> None:
    times = Times()
    times.add([600.0, 0.0, 0.0051, 600.1])
    times.add([0.005, 1e9])
    times.add([])

    assert (times.counts[0], times.counts[1], times.counts[-2], times.counts[-1]) == (2, 1, 1, 2)
    assert (sum(times.counts), len(times.counts)) == (6, len(EDGES_S) + 1)


def test_what_is_not_known_is_other() -> None:
    meter = Meter()
    meter.kinds, meter.queues = {"k"}, {"q"}

    assert [meter.labels(*one) for one in (("q", "k"), ("q", "x"), ("x", "k"))] == [
        ("q", "k"), ("q", "_other"), ("_other", "k"),
    ]  # fmt: skip
    assert meter.row("q", "x") is meter.row("q", "y") is not meter.row("q", "k")
    meter.enqueue("x", "y", "accepted")
    assert meter.enqueued == {("_other", "_other", "accepted"): 1}


def test_what_a_worker_counted_stays_when_it_has_ended() -> None:
    meter, first, second = Meter(), Done(CONNECT=1), Done(CONNECT=2, OOM=1)
    with meter.counting(first):
        with meter.counting(second):
            during = meter.reclaimed, meter.leases_lost, meter.errors
        assert (meter.reclaimed, meter.leases_lost, meter.errors) == during

    assert (meter.reclaimed, meter.leases_lost, meter.errors) == during == (2, 4, {"CONNECT": 3, "OOM": 1})
    assert meter.shifts == []


def test_threads_lose_no_count() -> None:
    meter = Meter()
    threads = [
        threading.Thread(target=lambda: [meter.enqueue("q", "k", "accepted") for _ in range(5000)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert meter.enqueued == {("_other", "_other", "accepted"): 20_000}


def test_a_forked_child_begins_at_nothing() -> None:
    meter = Meter()
    meter.on, meter.kinds = True, {"k"}
    meter.enqueue("q", "k", "accepted")
    meter.row("q", "k").outcomes["done"] += 1

    meter.after_fork()

    assert (meter.enqueued, meter.rows, meter.on, meter.kinds) == ({}, {}, True, {"k"})
