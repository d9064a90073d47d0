"""Windows: rates that do not jump with the minute, percentiles that are true, and a bounded number of requests."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamjobs.client.talk import Talk, talk
from streamjobs.core.histogram import bucket
from streamjobs.operate import metrics
from streamjobs.operate.metrics import HOUR_MS, MINUTE_MS, WINDOWS, Counters, KindStats, Spread, Tally
from streamjobs.protocol.metrics import measure
from tests.store.support import Store, death, delayed, job, later

AT = 1_800_000_000_000
"""A whole hour."""


def counted(counts: dict[int, int], now_ms: int) -> Counters:
    """Return counters in which jobs of a kind were enqueued in these minutes, counted from now."""
    minute = now_ms // MINUTE_MS
    return Counters(now_ms, {minute - ago: {"mail": {"enqueued": n}} for ago, n in counts.items()})


@pytest.mark.parametrize("elapsed_ms", [0, 1, 500, 15_000, 30_000, 59_999])
@pytest.mark.parametrize("window", ["1m", "5m", "1h"])
def test_a_steady_rate_is_that_rate_at_any_moment_of_the_minute(elapsed_ms: int, window: str) -> None:
    per_s = 120
    counts = dict.fromkeys(range(1, 70), 60 * per_s) | {0: per_s * elapsed_ms // 1000}

    tally = counted(counts, AT + elapsed_ms).tally(WINDOWS[window].ms)

    assert tally.seconds == WINDOWS[window].ms / 1000
    assert tally.in_per_s == pytest.approx(per_s, rel=0.001)


def test_what_was_just_counted_shows_at_once() -> None:
    """In the first ms of a minute too."""
    for elapsed_ms in (0, 1, 1000):
        assert counted({0: 30}, AT + elapsed_ms).tally(MINUTE_MS).in_per_s == 0.5


def test_what_is_older_than_the_window_does_not_count() -> None:
    counters = counted({6: 100, 5: 60}, AT + 15_000)

    assert counters.tally(5 * MINUTE_MS).of("enqueued") == pytest.approx(45)
    assert counters.tally(MINUTE_MS).of("enqueued") == 0


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=8), st.integers(0, 59_999))
def test_steps_add_up_to_the_whole(counts: list[int], elapsed_ms: int) -> None:
    counters = counted(dict(enumerate(counts)), AT + elapsed_ms)

    steps = counters.series(MINUTE_MS, 10)

    assert sum(step.of("enqueued") for step in steps) == pytest.approx(sum(counts))
    assert counters.tally(10 * MINUTE_MS).of("enqueued") == pytest.approx(sum(counts))


def test_the_growth_of_what_is_ready() -> None:
    """A flood for tomorrow is none today; what comes due, or back from the dead, is."""
    tally = Tally(10, {"enqueued": 1000, "delayed": 900, "promoted": 50, "replayed": 10, "done": 60, "retried": 40})

    assert (tally.in_per_s, tally.out_per_s) == (100, 6)
    assert (tally.ready_per_s, tally.left_per_s) == (16, 10)


def test_failures() -> None:
    tally = Tally(60, {"done": 60, "retried": 15, "dead": 5, "error.timeout": 3, "error.bug": 17, "error.crash": 3})

    assert tally.failure_rate == 0.25
    assert list(tally.errors) == ["bug", "crash", "timeout"]
    assert Tally(60).failure_rate is None


def read(store: Store, window: str, now_ms: int) -> list[KindStats]:
    def conversation() -> Talk[list[KindStats]]:
        [counters] = yield from metrics.read_counters([store.keys], now_ms, WINDOWS[window].ms)
        kinds = yield from metrics.read_kinds(store.keys, counters, now_ms, WINDOWS[window])
        return kinds

    return talk(store.executor, conversation())


def rows(kind: str, run_us: Sequence[int], wait_ms: Sequence[int]) -> list[tuple[str, str, int]]:
    found = [(kind, "ran", len(run_us)), (kind, "run_us", sum(run_us)), (kind, "wait_ms", sum(wait_ms))]
    found += [(kind, f"run.{bucket(value)}", 1) for value in run_us]
    return found + [(kind, f"wait.{bucket(value)}", 1) for value in wait_ms]


@pytest.mark.parametrize("window", list(WINDOWS))
def test_percentiles_by_kind(store: Store, window: str) -> None:
    run_us = [*range(1000, 101_000, 1000)]
    store.run(measure(store.keys, rows("mail", run_us, range(100)), str(AT + 30_000)))
    store.run(measure(store.keys, rows("web", [5], [0]), str(AT + 30_000)))

    [mail, web] = sorted(read(store, window, AT + 31_000), key=lambda one: one.kind)

    assert mail.run.mean == pytest.approx(50.5)
    assert mail.wait.mean == pytest.approx(49.5)
    for spread, least in ((mail.run, 1), (mail.wait, 0)):
        for found, exact in ((spread.p50, 49 + least), (spread.p95, 94 + least), (spread.p99, 98 + least)):
            assert found == pytest.approx(exact, rel=1 / 16)
    assert (web.run, web.wait) == (Spread(0.005, 0.005, 0.005, 0.005), Spread(0, 0, 0, 0))


def test_times_of_yesterday_are_found_by_their_hour(store: Store) -> None:
    """Those of single minutes are gone after two hours."""
    store.run(measure(store.keys, rows("mail", [2000], [1]), str(AT - 20 * HOUR_MS)))
    store.command("DEL", store.keys.times((AT - 20 * HOUR_MS) // MINUTE_MS))

    [mail] = read(store, "24h", AT)

    assert mail.run.p50 == pytest.approx(2, rel=1 / 16)
    assert read(store, "1h", AT) == []


def test_error_classes_and_counts_by_kind(store: Store) -> None:
    store.make_group()
    claims = store.started(2)
    store.retry(later(claims[0]), clock=str(AT))
    store.bury(death(claims[1]), clock=str(AT))
    store.enqueue(job(kind="web"), clock=str(AT))
    store.schedule(delayed(kind="web", delay_ms=9), clock=str(AT))

    mail, web = read(store, "5m", AT)

    assert (mail.kind, mail.tally.failed, mail.tally.failure_rate) == ("mail", 2, 1)
    assert (web.kind, web.tally.of("enqueued"), web.tally.failure_rate) == ("web", 2, None)


@pytest.mark.parametrize(("window", "hashes"), [("1m", 21), ("5m", 21), ("1h", 61), ("24h", 1441)])
def test_requests_are_as_many_as_minutes_and_in_bounded_chunks(store: Store, window: str, hashes: int) -> None:
    rounds = []
    conversation = metrics.read_counters([store.keys, store.keys], AT, WINDOWS[window].reach_ms)
    requests = next(conversation)
    try:
        while True:
            assert isinstance(requests, list)
            rounds.append(len(requests))
            requests = conversation.send(store.executor.run_all(requests))
    except StopIteration:
        pass

    assert sum(rounds) == 2 * hashes
    assert max(rounds) <= 300


def test_what_is_no_counter_hides_nothing(store: Store) -> None:
    minute = AT // MINUTE_MS
    store.command("HSET", store.keys.minute(minute), "done:mail", "abc", "dead:mail", "2")
    store.command("SET", store.keys.minute(minute - 1), "x", "PX", 60_000)

    [counters] = talk(store.executor, metrics.read_counters([store.keys], AT + 30_000, 5 * MINUTE_MS))

    store.command("DEL", store.keys.minute(minute))
    assert counters.tally(5 * MINUTE_MS).counts == {"done": 0, "dead": 2}
