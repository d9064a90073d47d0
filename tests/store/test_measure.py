"""measure, and what is counted of arrivals: the minute's numbers that stats show."""

from streamjobs.core.histogram import bucket
from streamjobs.protocol import metrics
from tests.store.support import CLOCK, Store, delayed, ending, job

MINUTE, HOUR = CLOCK // 60_000, CLOCK // 3_600_000


def measured(store: Store, key: str) -> dict[str, int]:
    return {field: int(value) for field, value in store.hash(key).items()}


def test_times_are_kept_for_the_minute_and_for_the_hour(store: Store) -> None:
    rows = [("mail", "ran", 2), ("mail", "run_us", 2400), ("mail", f"run.{bucket(1200)}", 2), ("größe", "ran", 1)]
    store.run(metrics.measure(store.keys, rows, str(CLOCK)))
    store.run(metrics.measure(store.keys, rows[:3], str(CLOCK)))
    store.run(metrics.measure(store.keys, rows[:1], str(CLOCK + 60_000)))

    first = {"ran:mail": 4, "run_us:mail": 4800, f"run.{bucket(1200)}:mail": 4, "ran:größe": 1}
    assert measured(store, store.keys.times(MINUTE)) == first
    assert measured(store, store.keys.times(MINUTE + 1)) == {"ran:mail": 2}
    assert measured(store, store.keys.times_of_hour(HOUR)) == {**first, "ran:mail": 6}


def test_times_live_as_long_as_a_window_may_reach_back(store: Store) -> None:
    store.run(metrics.measure(store.keys, [("mail", "ran", 1)], str(CLOCK)))

    assert 7_100_000 < store.command("PTTL", store.keys.times(MINUTE)) <= 7_200_000
    assert 93_500_000 < store.command("PTTL", store.keys.times_of_hour(HOUR)) <= 93_600_000
    assert store.totals() == {}


def test_a_delayed_job_arrives_when_it_is_promoted(store: Store) -> None:
    """The backlog grows by enqueued - delayed + promoted: so a flood for tomorrow is none today."""
    store.enqueue(job(), job(kind="web"), clock=str(CLOCK))
    store.schedule(*(delayed(n, delay_ms=1000 * n) for n in range(3)), clock=str(CLOCK))
    assert store.minute() == {"enqueued:mail": 4, "enqueued:web": 1, "delayed:mail": 3}

    assert store.promote(clock=str(CLOCK + 1000)).moved == 2

    assert store.minute()["promoted:mail"] == 2
    assert (store.totals()["enqueued"], store.totals()["promoted"]) == (5, 2)


def test_a_follower_that_is_delayed_counts_as_such(store: Store) -> None:
    store.make_group()
    store.enqueue(job(1, dedupe_key="k", dedupe_mode="l"), clock=str(CLOCK))
    [claim] = store.claim()
    store.start(claim)
    store.schedule(delayed(2, delay_ms=60_000, dedupe_key="k", dedupe_mode="l"), clock=str(CLOCK))

    store.complete_full(ending(claim, dedupe_key="k", newer=0), clock=str(CLOCK))

    assert (store.minute()["enqueued:mail"], store.minute()["delayed:mail"]) == (2, 1)


def test_kinds_without_end_do_not_fill_the_memory(store: Store) -> None:
    """Threat T13: kinds come from whoever may enqueue. What was known stays apart."""
    store.add(1, "first")
    for start in range(0, 6000, 500):
        store.enqueue(*(job(n, f"kind{n}") for n in range(start, start + 500)), clock=str(CLOCK))
    store.enqueue(job(0, "kind7"), clock=str(CLOCK))

    minute = store.minute()
    assert len(minute) == 5001
    assert minute["enqueued:kind7"] == 2
    assert minute["enqueued:_other"] == 1000
    assert store.totals()["enqueued"] == 6002


def test_a_minutes_hash_expires(store: Store) -> None:
    store.enqueue(job(), clock=str(CLOCK))
    store.enqueue(job(kind="web"), clock=str(CLOCK))

    assert 93_500_000 < store.command("PTTL", store.keys.minute(MINUTE)) <= 93_600_000
