"""What follows from each outcome. `decide` is pure: the whole table fits here."""

from itertools import count
from typing import get_args

import pytest

from streamjobs.core import job
from streamjobs.core.decide import PARKED_FOR_MS, crashed, decide, park_delay_ms
from streamjobs.core.job import Bury, Meta, Raised, Snooze
from streamjobs.core.retry import Exponential, Fixed, Retry
from streamjobs.core.states import DeadReason

POLICY = Retry(max_attempts=3, backoff=Exponential(base=1, cap=64, jitter="none"))
FRESH = Meta()
ONCE_FAILED = Meta(failures=1)
LAST_TRY = Meta(failures=2)
AT_MS, AT = 1_764_412_345_678, "2025-11-29T10:32:25.678+00:00"

TABLE: list[tuple[job.Outcome, Meta, job.Decision]] = [
    (job.Returned(), FRESH, job.Complete()),
    (job.Returned({"n": 1}), LAST_TRY, job.Complete({"n": 1})),
    (Raised("E: x", "bug"), FRESH, job.Retry(2000, "E: x", "bug")),
    (Raised("E: x", "bug"), ONCE_FAILED, job.Retry(4000, "E: x", "bug")),
    (Raised("E: x", "bug"), LAST_TRY, Bury(DeadReason.EXHAUSTED, "E: x", "bug")),
    (Raised("E: x", "other", after_ms=70_000), FRESH, job.Retry(70_000, "E: x", "other")),
    (Raised("E: x", "other", after_ms=0), FRESH, job.Retry(0, "E: x", "other")),
    (Raised("E: x", "other", after_ms=1), LAST_TRY, Bury(DeadReason.EXHAUSTED, "E: x", "other")),
    (Raised("E: x", "bug", permanent=True), FRESH, Bury(DeadReason.PERMANENT, "E: x", "bug")),
    (Raised("E: x", "bug", permanent=True, uncharged=True), FRESH, Bury(DeadReason.PERMANENT, "E: x", "bug")),
    (Raised("R", "rate_limited", uncharged=True, after_ms=2000), LAST_TRY, Snooze(2000, "rate_waits")),
    (Raised("R", "rate_limited", uncharged=True), FRESH, Snooze(2000, "rate_waits")),
    (Raised("R", "rate_limited", uncharged=True), Meta(rate_waits=2), Snooze(8000, "rate_waits")),
    (job.TimedOut(1500), FRESH, job.Retry(2000, "TimeoutError: still running after 1.5 s", "timeout")),
    (job.TimedOut(1500), LAST_TRY, Bury(DeadReason.EXHAUSTED, "TimeoutError: still running after 1.5 s", "timeout")),
    (job.Snoozed(5000), LAST_TRY, Snooze(5000)),
    (job.Cancelled("why"), FRESH, job.Cancel("why")),
    (job.Interrupted(), LAST_TRY, job.Release()),
    (job.Crashed("died"), LAST_TRY, job.Retry(2000, "died", "crash", "process_crashes")),
    (job.Crashed("died"), Meta(process_crashes=1, crashes=2), job.Retry(4000, "died", "crash", "process_crashes")),
    (job.Crashed("died"), Meta(process_crashes=2), Bury(DeadReason.CRASH_LIMIT, "died", "crash")),
    (job.Expired(AT_MS), FRESH, Bury(DeadReason.EXPIRED, f"not started by {AT}", "expired", charged=False)),
    (job.Expired(AT_MS), Meta(drop_expired=True), job.Cancel(f"expired: not started by {AT}")),
    (job.Unknown(), FRESH, Snooze(1000, "parks")),
    (job.Unknown(), Meta(parks=3, failures=2), Snooze(8000, "parks")),
    (job.Undecodable("no JSON"), FRESH, Bury(DeadReason.UNDECODABLE, "no JSON", "validation")),
]


@pytest.mark.parametrize(("outcome", "meta", "decision"), TABLE)
def test_an_outcome_has_its_decision(outcome: job.Outcome, meta: Meta, decision: job.Decision) -> None:
    assert decide(outcome, meta, POLICY, 0.5) == decision


def test_the_table_has_every_outcome_and_every_decision() -> None:
    assert {type(row[0]) for row in TABLE} == set(get_args(job.Outcome))
    assert {type(row[2]) for row in TABLE} == set(get_args(job.Decision))


@pytest.mark.parametrize("most", [1, 2, 3, 8])
def test_case_C4_a_job_that_always_fails_starts_exactly_max_attempts_times(most: int) -> None:
    policy, meta = Retry(max_attempts=most, backoff=Fixed(0)), Meta()
    starts = 1
    while isinstance(decision := decide(Raised("E: x", "bug"), meta, policy, 0.5), job.Retry):
        meta = Meta(failures=meta.failures + 1)
        starts += 1

    assert isinstance(decision, Bury)
    assert (starts, decision.reason) == (most, DeadReason.EXHAUSTED)


def test_snoozes_waits_and_parks_do_not_bring_death_nearer() -> None:
    meta = Meta(failures=1, snoozes=1000, rate_waits=1000, crashes=2)

    assert isinstance(decide(Raised("E", "bug"), meta, POLICY, 0.5), job.Retry)


def test_the_draw_is_used() -> None:
    policy = Retry(backoff=Exponential(jitter="full"))

    low, high = (decide(Raised("E", "bug"), FRESH, policy, draw) for draw in (0.0, 0.999))

    assert isinstance(low, job.Retry)
    assert isinstance(high, job.Retry)
    assert low.delay_ms < 10 < 1990 < high.delay_ms


def test_an_unknown_kind_is_parked_for_a_day_and_then_dead() -> None:
    waited = 0
    for parks in count():
        decision = decide(job.Unknown(), Meta(parks=parks), POLICY, 0.5)
        if not isinstance(decision, Snooze):
            break
        assert decision == Snooze(park_delay_ms(parks), "parks")
        waited += decision.delay_ms

    assert decision == Bury(DeadReason.UNKNOWN_KIND, "no worker knew this kind for 24 h", "bug", charged=False)
    assert PARKED_FOR_MS <= waited <= PARKED_FOR_MS + 60_000
    assert isinstance(decide(job.Unknown(), Meta(parks=10**9), POLICY, 0.5), Bury)


def test_a_crash_limit_charges_no_attempt() -> None:
    assert crashed("why") == Bury(DeadReason.CRASH_LIMIT, "why", "crash", charged=False)
