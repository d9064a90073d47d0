"""I5: limits hold by what ran, whoever dies, freezes or comes late, and nobody waits for ever."""

import random
import signal
import time
from collections import Counter
from itertools import pairwise
from typing import Any

from tests.faults.actors import MANY_CRASHES
from tests.faults.field import FAST, Actor, Field
from tests.faults.rules import Limits, Pace

KEYS = 5
KILLS = 8
LIMITED: dict[str, Any] = {
    "limits": {kind: Limits(max_crashes=MANY_CRASHES) for kind in ("keyed", "rated")},
    "places": {"key": 1, "keyed": 4},
    "paces": {"rated": Pace(100, 10)},
    "lease_s": FAST["lease"],
    "sweep_s": FAST["sweep"],
    "slack_s": 2.0,
}
"""What the checker is to know of the limits, by the names that runs give them."""


def test_I5_a_killed_holders_place_is_free_after_its_lease(field: Field) -> None:
    field.enqueue("keyed", 0, args=(7, 30.0, 0.5))
    victim = field.serving()
    field.happens("S", 0)
    field.enqueue("keyed", 1, args=(7,))
    field.serving()
    victim.kill9()
    killed_at = time.monotonic()

    field.until(lambda: field.count("S", 0) == 2, "I15: what a dead process ran is started again, in its old place")
    assert time.monotonic() - killed_at >= 0.3 * FAST["lease"]
    # It is the older one's turn again; the next waits on.
    assert field.count("S", 1) == 0
    field.judge(**LIMITED)


def test_I5_a_zombie_that_ends_late_frees_nothing(field: Field) -> None:
    field.enqueue("keyed", 0, args=(7, 1.0))
    zombie = field.serving()
    field.happens("S", 0)
    zombie.send(signal.SIGSTOP)
    # Frozen beyond its lease, it counts no more.
    field.until(lambda: field.queue.pending()[0][2] > FAST["lease"] * 1000, "its lease has ended")
    field.enqueue("keyed", *range(1, 6), args=(7, 0.2))
    field.serving()
    field.happens("S", 0, times=2)
    zombie.send(signal.SIGCONT)

    field.judge(**LIMITED)


def test_limits_hold_while_workers_are_killed_at_random(field: Field) -> None:
    draw = random.Random(field.seed)
    workers, killed = [field.serving() for _ in range(4)], []
    for n in range(200):
        field.enqueue("keyed", n, args=(n % KEYS, draw.choice([0.0, 0.01, 0.15])))
    field.enqueue("rated", *range(1000, 1400))
    for _ in range(KILLS):
        time.sleep(0.3 * draw.random())
        field.until(lambda: running(field, workers), "jobs run")
        victim = draw.choice(running(field, workers) or workers)
        victim.kill9()
        killed.append(victim)
        workers[workers.index(victim)] = field.worker()
    field.drained(within_s=60.0)

    field.judge(**LIMITED)
    assert len(running(field, killed)) >= KILLS / 2, "most of those killed were at work"
    assert field.queue.command("ZCARD", field.queue.keys.line) == 0


def running(field: Field, workers: list[Actor]) -> list[Actor]:
    """Return those workers that have begun more runs than they have ended."""
    count: Counter[int] = Counter()
    for entry in field.journal():
        count[entry.pid] += {"S": 1, "E": -1, "F": -1, "C": -1}.get(entry.word, 0)
    return [worker for worker in workers if count[worker.pid] > 0]


def test_C9_a_rate_limited_job_runs_again_no_sooner_than_it_says_and_is_not_charged(field: Field) -> None:
    field.enqueue("rate_limited", 0, args=(10, 2.0))
    field.serving()
    field.drained(within_s=60.0)

    starts = [int(entry.detail) for entry in field.journal() if entry.word == "T"]
    assert len(starts) == 11
    assert all(later - earlier >= 1_990_000 for earlier, later in pairwise(starts))
    assert field.count("E") == 1
    assert field.attempts() == {1}
    assert field.queue.counts()["dead"] == 0
    assert field.counted("error.rate_limited:rate_limited") == 10
