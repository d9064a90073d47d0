"""reschedule: another time for jobs that are scheduled, and a bell for whoever sleeps too long now."""

import pytest

from streamjobs.protocol import upkeep
from streamjobs.protocol.intake import DEDUPE_TTL_MS
from streamjobs.protocol.upkeep import Reschedule
from tests.store.support import CLOCK, Store, delayed, job_of, later

HOUR_MS = 3_600_000


def reschedule(store: Store, *items: Reschedule, at: int = CLOCK) -> list[str]:
    return store.run(upkeep.reschedule(store.keys, items, str(at)))


def rings(store: Store) -> int:
    """Return how many rings wait, and take them."""
    count = int(store.command("LLEN", store.keys.bell))
    store.command("DEL", store.keys.bell)
    return count


def test_gives_delayed_and_retried_jobs_another_time_in_their_own_set(store: Store) -> None:
    [one, two] = store.schedule(delayed(1, delay_ms=HOUR_MS), delayed(2, delay_ms=HOUR_MS), clock=str(CLOCK))
    [claim] = store.started(1)
    store.retry(later(claim, HOUR_MS), clock=str(CLOCK))
    retried = job_of(claim)

    items = [Reschedule(one, 5000), Reschedule(two, at_ms=CLOCK + 9000, delay_ms=1), Reschedule(retried, 2 * HOUR_MS)]
    assert reschedule(store, *items) == ["OK", "OK", "OK"]

    assert store.due(store.keys.scheduled) == {one: CLOCK + 5000, two: CLOCK + 9000}
    assert store.due(store.keys.retries) == {retried: CLOCK + 2 * HOUR_MS}


def test_at_once_is_no_delay_at_all(store: Store) -> None:
    [one] = store.schedule(delayed(1, delay_ms=HOUR_MS), clock=str(CLOCK))

    assert reschedule(store, Reschedule(one)) == ["OK"]

    assert store.due(store.keys.scheduled) == {one: CLOCK}
    assert store.promote(clock=str(CLOCK)).moved == 1
    assert [job_of(claim) for claim in store.claim()] == [one]


def test_an_instant_that_has_passed_is_now(store: Store) -> None:
    [one] = store.schedule(delayed(1, delay_ms=HOUR_MS), clock=str(CLOCK))

    reschedule(store, Reschedule(one, at_ms=5))

    assert store.due(store.keys.scheduled) == {one: CLOCK}


def test_jobs_that_are_not_scheduled_stay_as_they_are(store: Store) -> None:
    [waiting] = store.add(1)
    [moved] = store.schedule(delayed(1, at_ms=1))
    store.promote()
    before = store.entries()

    assert reschedule(store, Reschedule(waiting), Reschedule(moved), Reschedule("d1-1")) == ["GONE"] * 3

    assert store.entries() == before
    assert store.due(store.keys.scheduled) == store.due(store.keys.retries) == {}
    assert "rescheduled" not in store.totals()


def test_member_without_body_is_left_to_the_promotion(store: Store) -> None:
    store.command("ZADD", store.keys.scheduled, 5, "d1-1")

    assert reschedule(store, Reschedule("d1-1", 1000)) == ["GONE"]
    assert store.due(store.keys.scheduled) == {"d1-1": 5}


@pytest.mark.parametrize(
    ("delay_ms", "heard"), [(1000, 1), (4999, 1), (5000, 0), (2 * HOUR_MS, 0)], ids=lambda value: str(value)
)
def test_rings_when_something_is_due_before_all_that_sleepers_know_of(store: Store, delay_ms: int, heard: int) -> None:
    jobs = [delayed(1, delay_ms=5000), delayed(2, delay_ms=HOUR_MS)]
    [_, late] = store.schedule(*jobs, clock=str(CLOCK))
    rings(store)

    reschedule(store, Reschedule(late, delay_ms))

    assert rings(store) == heard


def test_rings_not_when_the_first_becomes_later(store: Store) -> None:
    [one] = store.schedule(delayed(1, delay_ms=5000), clock=str(CLOCK))
    rings(store)

    reschedule(store, Reschedule(one, HOUR_MS))

    assert rings(store) == 0


def test_dedupe_key_lives_as_long_beyond_the_new_time(store: Store) -> None:
    [one] = store.schedule(delayed(1, delay_ms=1000, dedupe_key="k"), clock=str(CLOCK))
    [other] = store.schedule(delayed(2, delay_ms=1000), clock=str(CLOCK))

    reschedule(store, Reschedule(one, 30 * 24 * HOUR_MS, dedupe_key="k"), Reschedule(other, 1, dedupe_key="k"))

    left = int(store.command("PTTL", store.keys.dedupe("k"))) - 30 * 24 * HOUR_MS
    assert DEDUPE_TTL_MS - 10_000 < left <= DEDUPE_TTL_MS


def test_far_times_are_exact(store: Store) -> None:
    year_9998 = 253_370_764_799_999
    [one, two] = store.schedule(
        delayed(1, at_ms=year_9998, dedupe_key="k"), delayed(2, delay_ms=10 * 366 * 24 * HOUR_MS), clock=str(CLOCK)
    )
    assert store.due(store.keys.scheduled) == {two: CLOCK + 10 * 366 * 24 * HOUR_MS, one: year_9998}
    assert store.promote(clock=str(CLOCK)).next_ms == 10 * 366 * 24 * HOUR_MS

    reschedule(store, Reschedule(two, at_ms=year_9998), Reschedule(one, at_ms=year_9998, dedupe_key="k"))

    assert store.due(store.keys.scheduled) == {one: year_9998, two: year_9998}
    assert store.promote(clock=str(year_9998 - 1)).moved == 0
    assert store.promote(clock=str(year_9998)).moved == 2


def test_counts_per_kind_what_it_changed(store: Store) -> None:
    ids = store.schedule(delayed(1, delay_ms=9), delayed(2, delay_ms=9, kind="web"), clock=str(CLOCK))

    reschedule(store, *(Reschedule(one, 5) for one in [*ids, "d1-1"]))

    assert store.totals()["rescheduled"] == 2
    assert {"rescheduled:mail": 1, "rescheduled:web": 1}.items() <= store.minute().items()


def test_what_the_job_carries_stays_byte_by_byte(store: Store) -> None:
    [one] = store.schedule(delayed(1, delay_ms=9, headers={"a": "ö"}), clock=str(CLOCK))
    before = store.command("HGET", store.keys.bodies, one)

    reschedule(store, Reschedule(one, 5))

    assert store.command("HGET", store.keys.bodies, one) == before
