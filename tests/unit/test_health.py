"""The verdict: each cause has its reason, nothing else has one, and a burst is no trend."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamjobs.core.server import ServerFacts
from streamjobs.core.thresholds import Health, Thresholds
from streamjobs.operate.health import QueueFacts, Reason, Verdict, judge, judge_server
from streamjobs.operate.metrics import MINUTE_MS, Counters, Tally
from streamjobs.operate.stats import QueueStats

OK, DEGRADED, CRITICAL = Health
USUAL = Thresholds()
AT = 1_800_000_000_000


def queue(**changes: Any) -> QueueStats:
    """Return a queue at work: a worker with four slots, one busy, nothing that waits."""
    base = QueueStats("web", running=1, slots=4, workers=1, lease_ms=15_000)
    return msgspec.structs.replace(base, **changes)


def verdict(thresholds: Thresholds = USUAL, minutes: Sequence[Tally] = (), **changes: Any) -> Verdict:
    return judge(QueueFacts(queue(**changes), minutes), thresholds)


def found(verdict: Verdict) -> list[tuple[str, Health]]:
    return [(reason.about, reason.level) for reason in verdict.reasons]


def minutes(**counts: float) -> list[Tally]:
    """Return five minutes of which each counted the same."""
    return [Tally(60, dict(counts)) for _ in range(5)]


def test_a_queue_at_work_is_ok() -> None:
    assert verdict() == Verdict()
    assert verdict().health is OK
    assert (
        verdict(waiting=100_000, oldest_ready_ms=59_000, scheduled=5, retrying=7, minutes=minutes(done=9)) == Verdict()
    )


def test_an_empty_queue_needs_no_worker() -> None:
    assert verdict(workers=0, slots=0, running=0, scheduled=3, retrying=2) == Verdict()


@pytest.mark.parametrize(("ms", "level"), [(59_999, OK), (60_000, DEGRADED), (299_999, DEGRADED), (300_000, CRITICAL)])
def test_oldest_ready_job(ms: int, level: Health) -> None:
    assert verdict(waiting=1, oldest_ready_ms=ms).health is level


def test_what_the_oldest_job_waits_for() -> None:
    busy = verdict(waiting=9, oldest_ready_ms=1_082_000, running=4).reasons[0]
    one = verdict(waiting=9, oldest_ready_ms=61_000, running=1, slots=1).reasons[0]
    limited = verdict(waiting=900, limited=900, oldest_ready_ms=61_000).reasons[0]

    assert str(busy) == "oldest ready job has waited 18m02s (limit 5m), all 4 slots are busy"
    assert str(one) == "oldest ready job has waited 1m01s (limit 1m), its one slot is busy"
    assert limited.text.endswith(", 900 wait for a rate or a concurrency")
    assert limited.command == "streamjobs queue limit web"


@pytest.mark.parametrize(
    ("state", "backlog"),
    [({}, False), ({"waiting": 1}, True), ({"oldest_ready_ms": 1}, True), ({"running": 1}, True),
     ({"scheduled": 1}, False)],
)  # fmt: skip
def test_no_worker_with_a_backlog_is_critical(state: dict[str, Any], backlog: bool) -> None:
    """Also where only a dead worker's claims are left, or due jobs that nobody promotes."""
    alone: dict[str, Any] = {"workers": 0, "slots": 0, "running": 0}
    result = verdict(**(alone | state))

    assert result.health is (CRITICAL if backlog else OK)
    if backlog:
        assert str(result.reasons[0]) == "no worker is subscribed (streamjobs worker -A APP -Q web)"
        assert "subscribed, 2 workers vanished within 10m" in verdict(vanished=2, **(alone | state)).reasons[0].text


@pytest.mark.parametrize(("workers", "said"), [(1, "its only worker is quiet"), (2, "all 2 workers are quiet")])
def test_workers_without_slots_are_as_good_as_none(workers: int, said: str) -> None:
    result = verdict(workers=workers, slots=0, running=0, waiting=3)

    assert found(result) == [("quiet", CRITICAL)]
    assert result.reasons[0].text == said
    assert verdict(slots=0, running=0) == Verdict()


def test_paused_is_said_first_where_it_is_the_cause() -> None:
    """The example of the documentation."""
    result = verdict(paused=True, waiting=87, oldest_ready_ms=1_082_000, workers=0, slots=0, running=0)

    assert [reason.text for reason in result.reasons] == [
        "paused",
        "no worker is subscribed",
        "oldest ready job has waited 18m02s (limit 5m)",
    ]
    assert result.reasons[0].command == "streamjobs queue resume web"
    assert found(verdict(paused=True)) == [("paused", DEGRADED)]


def test_dead_jobs_and_that_they_become_more() -> None:
    assert str(verdict(dead=3).reasons[0]) == "3 dead jobs (streamjobs dead groups -Q web)"
    assert verdict(dead=1).reasons[0].text == "1 dead job"
    assert verdict(dead=1041, minutes=minutes(dead=8, done=900)).reasons[0].text == "1,041 dead jobs, 40 died within 5m"
    assert verdict(Thresholds(dead=(5, 1000)), dead=3) == Verdict()
    assert verdict(Thresholds(dead=(5, 1000)), dead=1000).health is CRITICAL


@pytest.mark.parametrize(
    ("failed", "done", "level"),
    [(24, 76, OK), (25, 75, DEGRADED), (75, 25, CRITICAL), (3, 0, OK), (0, 100, OK), (4, 0, CRITICAL)],
)
def test_failure_rate(failed: float, done: float, level: Health) -> None:
    """Of a handful of runs it says nothing."""
    assert verdict(minutes=minutes(retried=failed, done=done)).health is level


def test_failure_rate_names_the_most_frequent_class() -> None:
    steps = minutes(retried=10, done=10, **{"error.http_5xx": 7, "error.bug": 3})

    assert str(verdict(minutes=steps).reasons[0]) == (
        "50% of 100 runs failed within 5m (limit 25%), most by http_5xx (streamjobs stats web --by kind)"
    )


def test_crash_loops() -> None:
    assert verdict(vanished=2) == Verdict()
    assert str(verdict(vanished=3).reasons[0]) == "3 workers vanished within 10m"
    assert verdict(vanished=10).health is CRITICAL
    poisoned = verdict(vanished=4, minutes=minutes(**{"dead.crash_limit": 0.4})).reasons[0]
    assert poisoned.text == "4 workers vanished within 10m; 2 jobs died within 5m of having killed workers"
    assert poisoned.command == "streamjobs dead list -Q web --reason crash_limit"
    alone = verdict(minutes=minutes(**{"dead.crash_limit": 0.2})).reasons[0]
    assert (alone.level, alone.text) == (DEGRADED, "1 job died within 5m of having killed workers")


def test_leases_lost() -> None:
    assert verdict(minutes=minutes(lost=1)) == Verdict()
    assert verdict(minutes=minutes(lost=24)).reasons[0].text == (
        "120 jobs ended too late within 5m: a worker stands still for longer than its lease (15s)"
    )


def test_full_queue() -> None:
    assert verdict(waiting=9, max_waiting=10) == Verdict()
    assert str(verdict(waiting=10_000, max_waiting=10_000).reasons[0]) == (
        "full: 10,000 of 10,000 wait, more are refused (streamjobs queue limit web)"
    )


def test_waiting_counts_only_where_it_is_told_to() -> None:
    assert verdict(waiting=10**9) == Verdict()
    assert verdict(Thresholds(waiting=(10, 20)), waiting=12_418).reasons[0].text == "12,418 jobs waiting (limit 20)"


# Falling behind.


def flow(*rates: tuple[float, float]) -> list[Tally]:
    """Return minutes, the oldest first, with so many jobs per second that came and went."""
    return [Tally(60, {"enqueued": came * 60, "done": left * 60}) for came, left in rates]


def test_falling_behind_says_how_fast_and_when_the_limit_is_passed() -> None:
    result = verdict(waiting=12_000, oldest_ready_ms=30_000, minutes=flow(*[(120, 80)] * 5))

    assert found(result) == [("falling_behind", DEGRADED)]
    # (60 - 30) / (1 - 80/120) s.
    assert result.reasons[0].text == (
        "falling behind: 120/s come, 80/s go; its oldest job will have waited 1m in 1m30s"
    )


def test_the_limit_to_come_is_the_next_one() -> None:
    def text(ms: int) -> str:
        reasons = verdict(waiting=99_000, oldest_ready_ms=ms, minutes=flow(*[(120, 80)] * 5)).reasons
        return next(reason.text for reason in reasons if reason.about == "falling_behind")

    assert text(100_000).endswith("; its oldest job will have waited 5m in 10m00s")
    assert text(400_000) == "falling behind: 120/s come, 80/s go"


def test_nothing_completed_at_all_is_falling_behind() -> None:
    assert found(verdict(waiting=900, oldest_ready_ms=20_000, minutes=flow(*[(3, 0)] * 5))) == [
        ("falling_behind", DEGRADED)
    ]


@pytest.mark.parametrize(
    ("rates", "waiting", "behind"),
    [
        ([(120, 80)] * 5, 12_000, True),
        # It has begun a minute ago: wait and see.
        ([(0, 0)] * 3 + [(120, 80)] * 2, 4_800, False),
        ([(80, 80)] + [(120, 80)] * 4, 9_600, True),
        # It is over.
        ([(120, 80)] * 4 + [(80, 120)], 7_200, False),
        # One minute was quiet.
        ([(120, 80), (120, 80), (70, 80), (120, 80), (120, 80)], 9_000, True),
        # What came has been cancelled, or lies elsewhere: nothing waits.
        ([(120, 80)] * 5, 100, False),
        # A trickle.
        ([(0.03, 0.01)] * 5, 6, False),
        # So slow that the limit is a day away.
        ([(2000, 1999)] * 5, 300, False),
        ([(80, 120)] * 5, 12_000, False),
        ([(100, 100)] * 5, 12_000, False),
    ],
)
def test_only_a_steady_growth_is_falling_behind(rates: list[tuple[float, float]], waiting: int, behind: bool) -> None:
    result = verdict(waiting=waiting, oldest_ready_ms=20_000, minutes=flow(*rates))

    assert ("falling_behind" in [reason.about for reason in result.reasons]) is behind


@pytest.mark.parametrize("state", [{"paused": True}, {"workers": 0, "slots": 0}, {"slots": 0}])
def test_who_cannot_keep_up_is_not_said_to_fall_behind(state: dict[str, Any]) -> None:
    result = verdict(waiting=12_000, oldest_ready_ms=20_000, minutes=flow(*[(120, 80)] * 5), **state)

    assert "falling_behind" not in [reason.about for reason in result.reasons]


def test_a_flood_for_tomorrow_is_not_falling_behind() -> None:
    steps = [Tally(60, {"enqueued": 60_000, "delayed": 60_000, "done": 60, "promoted": 60})] * 5

    assert verdict(waiting=5000, scheduled=300_000, oldest_ready_ms=2000, minutes=steps) == Verdict()


@given(st.integers(1, 100_000), st.integers(1, 5000), st.integers(0, 59), st.integers(1, 60 * 9))
def test_a_burst_of_three_seconds_is_never_falling_behind(size: int, per_s: int, second: int, later_s: int) -> None:
    """Whatever its size, whenever in a minute it comes and however slowly it is worked off: it does not go on.

    Its oldest job may be old, and that is said; but nothing outpaces anything.
    """
    counted: dict[int, dict[str, int]] = {}
    backlog = 0
    begin_s = AT // 1000 + second
    for at_s in range(begin_s, begin_s + later_s):
        came = size // 3 if at_s < begin_s + 3 else 0
        went = min(per_s, backlog + came)
        backlog += came - went
        minute = counted.setdefault(at_s // 60, {"enqueued": 0, "done": 0})
        minute["enqueued"] += came
        minute["done"] += went
    counters = Counters((begin_s + later_s) * 1000, {number: {"mail": fields} for number, fields in counted.items()})

    result = verdict(waiting=backlog, oldest_ready_ms=later_s * 1000, minutes=counters.series(MINUTE_MS, 5))

    assert "falling_behind" not in [reason.about for reason in result.reasons]


@given(st.integers(10, 5000), st.floats(0.05, 0.9), st.integers(0, 59), st.integers(301, 900))
def test_steady_overload_is_always_falling_behind(per_s: int, kept: float, second: int, since_s: int) -> None:
    """From five minutes on, at any second of the minute, until the limit has said it already."""
    begin_s = AT // 1000 + second
    now_s = begin_s + since_s
    counted: dict[int, dict[str, int]] = {}
    for at_s in range(begin_s, now_s):
        minute = counted.setdefault(at_s // 60, {"enqueued": 0, "done": 0})
        minute["enqueued"] += per_s
        minute["done"] += int(per_s * kept)
    waiting = since_s * (per_s - int(per_s * kept))
    counters = Counters(now_s * 1000, {number: {"mail": fields} for number, fields in counted.items()})

    result = verdict(waiting=waiting, oldest_ready_ms=1000, minutes=counters.series(MINUTE_MS, 5))

    assert "falling_behind" in [reason.about for reason in result.reasons]


# All together.


def test_the_worst_comes_first_and_is_the_verdict() -> None:
    """Over all combinations: the verdict is the worst reason, and their order is by how bad they are."""
    states = {
        "paused": (False, True),
        "workers": (0, 2),
        "slots": (0, 8),
        "running": (0, 8),
        "waiting": (0, 500),
        "oldest_ready_ms": (0, 61_000, 301_000),
        "dead": (0, 3),
        "vanished": (0, 3, 10),
        "max_waiting": (None, 500),
    }
    for values in product(*states.values()):
        result = verdict(minutes=minutes(retried=3, done=6, lost=4), **dict(zip(states, values, strict=True)))
        levels = [reason.level for reason in result.reasons]
        assert levels == sorted(levels, reverse=True)
        assert result.health is max(levels)
        assert OK not in levels
        assert len({reason.about for reason in result.reasons}) == len(levels)
        assert all(str(reason).isprintable() for reason in result.reasons)


# The server.


def server(**changes: Any) -> ServerFacts:
    base = ServerFacts("valkey", "9.1.2", "master", "noeviction", 1_000_000, 4_000_000)
    return msgspec.structs.replace(base, **changes)


def of_server(facts: ServerFacts, latency_s: float = 0.001) -> list[Reason]:
    return list(judge_server(facts, latency_s, USUAL).reasons)


def test_a_server_that_does_as_it_should() -> None:
    assert of_server(server()) == []
    assert of_server(ServerFacts()) == []


def test_a_server_that_deletes_jobs() -> None:
    [evicts] = of_server(server(eviction="allkeys-lru"))
    [would] = of_server(server(eviction="volatile-lru", limit_bytes=0))

    assert (evicts.level, evicts.about) == (CRITICAL, "eviction")
    assert "set maxmemory-policy noeviction there" in evicts.text
    assert would.level is DEGRADED


def test_memory_near_full() -> None:
    assert [reason.level for reason in of_server(server(used_bytes=3_400_000))] == [DEGRADED]
    [full] = of_server(server(used_bytes=3_920_000))
    assert (full.level, full.text) == (
        CRITICAL,
        "98% of its memory is used (3.7M of 3.8M); when it is full, enqueues fail",
    )
    assert of_server(server(used_bytes=10**12, limit_bytes=0)) == []


def test_latency() -> None:
    [slow] = of_server(server(), 0.31)
    assert (slow.level, slow.text) == (DEGRADED, "it takes 310ms for an answer (limit 250ms)")
    assert [reason.level for reason in of_server(server(), 2.5)] == [CRITICAL]


def test_kinds_that_no_worker_knows() -> None:
    steps = [Tally(60, {}) for _ in range(4)] + [Tally(60, {"snoozed.parks": 3.0})]

    [reason] = verdict(minutes=steps, scheduled=3).reasons

    assert (reason.about, reason.level) == ("unknown_kinds", DEGRADED)
    assert str(reason) == (
        "jobs of kinds that no worker here knows: put off 3 times in a minute"
        " (streamjobs job list -Q web --state scheduled)"
    )
    # They were parked, and are no more.
    assert verdict(minutes=[steps[-1], *steps[:4]], scheduled=3) == Verdict()


def test_jobs_that_died_before_they_ran_are_no_failed_runs() -> None:
    counts = {"done": 30.0, "dead": 41.0, "dead.expired": 20.0, "dead.undecodable": 20.0, "error.expired": 20.0}
    tally = Tally(60, counts)

    assert (tally.failed, tally.ended, tally.failure_rate) == (1, 31, 1 / 31)
    assert found(verdict(minutes=[tally] * 5)) == []
