"""I5: limits hold by what ran, whoever dies, freezes or comes late, and nobody waits for ever."""

import random
import signal
import time
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

from tests.faults.field import FAST, Field

KEYS = 5
LATE_US = 300_000
"""How long a start may come after the server has allowed it, on a busy machine; starts may so come together."""


def most_at_once(field: Field, key_of: Mapping[int, object]) -> Counter[object]:
    """Return how many runs of each key there ever were at once; a killed process's runs end with it."""
    running: dict[tuple[int, int], object] = {}
    most: Counter[object] = Counter()
    for entry in field.journal():
        if entry.word == "S":
            running[entry.n, entry.pid] = key_of[entry.n]
        elif entry.word == "K":
            running = {run: key for run, key in running.items() if run[1] != int(entry.detail)}
        elif entry.word in "EFC":
            running.pop((entry.n, entry.pid), None)
        now = Counter(running.values())
        for key, count in now.items():
            most[key] = max(most[key], count)
        most["all"] = max(most["all"], now.total())
    return most


def test_I5_a_killed_holders_place_is_free_after_its_lease(field: Field) -> None:
    field.enqueue("keyed", 0, args=(7, 30.0))
    victim = field.serving()
    field.happens("S", 0)
    field.enqueue("keyed", 1, args=(7,))
    field.serving()
    victim.kill9()
    victim.ended()
    field.note("K", 0, victim.pid)
    killed_at = time.monotonic()

    field.happens("S", 0, times=2)
    assert time.monotonic() - killed_at >= 0.3 * FAST["lease"]
    # It is the older one's turn again; the next waits on.
    assert field.count("S", 1) == 0
    assert most_at_once(field, {0: 7, 1: 7})[7] == 1


def test_I5_a_zombie_that_ends_late_frees_nothing(field: Field) -> None:
    field.enqueue("keyed", 0, args=(7, 1.0))
    zombie = field.serving()
    field.happens("S", 0)
    zombie.send(signal.SIGSTOP)
    # Frozen beyond its lease, it counts no more.
    field.until(lambda: field.queue.pending()[0][2] > FAST["lease"] * 1000, "its lease has ended")
    field.note("K", 0, zombie.pid)
    field.enqueue("keyed", *range(1, 6), args=(7, 0.2))
    field.serving()
    field.happens("S", 0, times=2)
    zombie.send(signal.SIGCONT)

    field.drained()
    assert most_at_once(field, dict.fromkeys(range(6), 7))[7] == 1


def test_limits_hold_while_workers_are_killed_at_random(field: Field) -> None:
    draw = random.Random(field.seed)
    jobs = 160
    for n in range(jobs):
        field.enqueue("keyed", n, args=(n % KEYS, draw.choice([0.0, 0.005, 0.03])))
    field.enqueue("rated", *range(1000, 1200))
    workers = [field.serving() for _ in range(4)]
    for _ in range(8):
        time.sleep(0.3 + 0.3 * draw.random())
        victim = workers.pop(draw.randrange(4))
        victim.kill9()
        victim.ended()
        field.note("K", 0, victim.pid)
        workers.append(field.serving())
    field.drained(within_s=60.0)

    most = most_at_once(field, {n: n % KEYS for n in range(jobs)} | dict.fromkeys(range(1000, 1200), "rated"))
    assert {most[key] for key in range(KEYS)} == {1}
    ended = {entry.n for entry in field.journal() if entry.word == "E"}
    assert ended == {*range(jobs), *range(1000, 1200)}
    keys = field.queue.keys
    assert field.queue.command("ZCARD", keys.line) == 0
    assert_rate(field, 100, 10)


def assert_rate(field: Field, per_s: int, burst: int) -> None:
    """Never more than rate * time + burst starts."""
    starts = sorted(int(entry.detail) for entry in field.journal() if entry.word == "T")
    for first, began in enumerate(starts):
        for last in range(first + burst, len(starts)):
            allowed = burst + per_s * (starts[last] - began + LATE_US) / 1_000_000
            assert last - first + 1 <= allowed + 1, (first, last, starts[first : last + 1])


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
