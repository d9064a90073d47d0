"""When crons are due, and what follows from slots that were missed."""

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamjobs.core.cron import LATE_MS, MOST_CAUGHT_UP, Calendar, Cron, Every, parse_schedule, rfc3339
from streamjobs.core.errors import InvalidOption
from streamjobs.core.job import Job, Meta
from tests.unit.minutes import BEGIN, END, WHOLE, ZONES, Reference, spans

HOUR_MS = 3_600_000
NOON = 1_800_014_400_000
"""2027-01-15 12:00 UTC."""
JOB = Job("mail", b"{}", "q")


def ms(text: str, tz: str = "UTC") -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(tz)).timestamp()) * 1000


def between(calendar: Calendar, begin: int, end: int) -> list[int]:
    """Return the slots of [begin, end)."""
    return list(takewhile(lambda slot: slot < end, calendar.after(begin - 1)))


def shown(calendar: Calendar, begin: str, end: str) -> list[str]:
    """Return the slots between two instants as the clock on the wall shows them."""
    zone = ZoneInfo(calendar.tz)
    slots = between(calendar, ms(begin), ms(end))
    return [datetime.fromtimestamp(slot / 1000, zone).strftime("%d %H:%M %z") for slot in slots]


def test_case_D3_a_time_that_does_not_exist_comes_once_at_the_next_instant_that_does() -> None:
    nightly = Calendar("30 2 * * *", "Europe/Berlin")

    assert shown(nightly, "2026-03-28", "2026-03-31") == ["28 02:30 +0100", "29 03:00 +0200", "30 02:30 +0200"]


def test_case_D3_a_time_that_comes_twice_runs_once() -> None:
    nightly = Calendar("30 2 * * *", "Europe/Berlin")

    assert shown(nightly, "2026-10-24", "2026-10-27") == ["24 02:30 +0200", "25 02:30 +0200", "26 02:30 +0100"]
    # Also for who looks when the first of the two has passed.
    assert rfc3339(next(nightly.after(ms("2026-10-25T01:10")))) == "2026-10-26T01:30:00.000Z"


@pytest.mark.parametrize("expr", ["*/15 * * * *", "0,15,30,45 * * * *", "*/15 0-23 * * *"])
@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
def test_an_interval_keeps_its_real_length_when_clocks_are_set(expr: str, day: str) -> None:
    slots = between(Calendar(expr, "Europe/Berlin"), ms(day), ms(day) + 24 * HOUR_MS)

    assert slots == list(range(ms(day), ms(day) + 24 * HOUR_MS, 15 * 60_000))


def test_times_that_fall_on_the_same_instant_are_one_slot() -> None:
    several = Calendar("0,30 2,3 * * *", "Europe/Berlin")

    assert shown(several, "2026-03-29", "2026-03-30") == ["29 03:00 +0200", "29 03:30 +0200"]


ranges = {"minute": range(60), "hour": [0, 1, 2, 3, 4, 22, 23], "day": range(1, 32), "month": range(1, 13),
          "weekday": range(8)}  # fmt: skip


def field(name: str) -> st.SearchStrategy[str]:
    one = st.sampled_from(ranges[name]).map(str)
    steps = st.sampled_from(["*", "*/2", "*/5", "*/7", "*/15"])
    return st.one_of(one, steps, st.lists(one, min_size=2, max_size=3).map(",".join))


expressions = st.builds(
    lambda *fields: " ".join(fields),
    field("minute"),
    field("hour"),
    st.just("*") | field("day"),
    st.just("*") | field("month"),
    st.just("*") | field("weekday"),
)
FIXED = ["30 2 * * *", "0 0 * * *", "15 0,1,2,3 * * *", "0 0 1 * *", "45 23 * * 6", "1-59/29 1-3 * * *"]
FLOWING = ["* * * * *", "*/15 * * * *", "30 * * * *", "*/20 2 * * *", "15 */2 * * *", "*/30 0 * * 5,6,0"]


def agree(expr: str, tz: str, begin: datetime, end: datetime) -> None:
    calendar, first, last = Calendar(expr, tz), _ms(begin), _ms(end)
    expected = [_ms(slot) for slot in Reference(expr).slots(begin, end, ZoneInfo(tz))]

    assert between(calendar, first, last) == expected
    backwards = takewhile(lambda slot: slot >= first, calendar.until(last - 1))
    assert list(backwards)[::-1] == expected


def _ms(instant: datetime) -> int:
    return int(instant.timestamp()) * 1000


@pytest.mark.parametrize("tz", ZONES)
def test_slots_are_those_of_the_reference_around_every_change_of_five_years(tz: str) -> None:
    for begin, end in spans(tz):
        for expr in [*FIXED, *FLOWING] if WHOLE else [*FIXED[:3], *FLOWING[1::2]]:
            agree(expr, tz, begin, end)


@settings(max_examples=300 if WHOLE else 60)
@given(expr=expressions, tz=st.sampled_from(ZONES), data=st.data())
def test_slots_of_any_expression_are_those_of_the_reference(expr: str, tz: str, data: st.DataObject) -> None:
    changes = st.sampled_from(spans(tz)).map(lambda span: span[0] + timedelta(hours=-3))
    anywhere = st.integers(0, (END - BEGIN).days - 3).map(lambda days: BEGIN + timedelta(days=days))
    begin = data.draw(anywhere if WHOLE else st.one_of(changes, anywhere))
    try:
        Calendar(expr, tz)
    except InvalidOption:
        # The 30th of February.
        return
    agree(expr, tz, begin, begin + timedelta(hours=50))


@pytest.mark.parametrize("expr", ["*/30 23 * * *", "30 23 * * *", "*/20 * * * *", "0 0 * * *"])
def test_a_minute_after_midnight_clocks_went_back_to_the_day_before(expr: str) -> None:
    agree(expr, "America/St_Johns", datetime(2010, 11, 6, tzinfo=UTC), datetime(2010, 11, 9, tzinfo=UTC))


@pytest.mark.parametrize("expr", ["*/30 23 * * *", "30 23 30 12 *", "*/20 * * * *", "0 0 * * *"])
def test_a_day_that_was_left_out(expr: str) -> None:
    agree(expr, "Pacific/Apia", datetime(2011, 12, 29, tzinfo=UTC), datetime(2012, 1, 1, tzinfo=UTC))


def test_slots_of_an_interval_are_the_same_whoever_looks_when() -> None:
    assert list(islice(Every(90).after(NOON), 2)) == [NOON + 90_000, NOON + 180_000]
    assert list(islice(Every(90).after(NOON + 89_999), 1)) == [NOON + 90_000]
    assert list(islice(Every(90).until(NOON + 89_999), 2)) == [NOON, NOON - 90_000]


@pytest.mark.parametrize("schedule", [Calendar("*/5 8-18 * * mon-fri", "Europe/Berlin"), Every(30), Every(1.5)])
def test_a_schedule_is_read_back_from_its_line(schedule: Any) -> None:
    again = parse_schedule(schedule.text)

    assert again.text == schedule.text
    assert list(islice(again.after(NOON), 50)) == list(islice(schedule.after(NOON), 50))


@pytest.mark.parametrize(
    ("expr", "tz", "said"),
    [
        ("* * * *", "UTC", "expected 5 fields: minute hour"),
        ("0 * * * * *", "UTC", "expected 5 fields"),
        ("61 * * * *", "UTC", "Bad minute"),
        ("0 0 30 2 *", "UTC", "Bad day-of-month"),
        (5, "UTC", "expected 5 fields"),
        ("* * * * *", "Europe/Nowhere", "tz 'Europe/Nowhere': there is no such time zone here; use a name of the IANA"),
        ("* * * * *", "", "no such time zone"),
        ("* * * * *", "../zone", "no such time zone"),
        ("* * * * *", None, "no such time zone"),
    ],
)
def test_what_is_no_schedule_is_refused(expr: Any, tz: Any, said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        Calendar(expr, tz)


def test_a_system_without_zones_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import zoneinfo

    paths = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=[])
    try:
        with pytest.raises(InvalidOption, match="install the tzdata package"):
            Calendar("* * * * *", "Europe/Vaduz")
    finally:
        zoneinfo.reset_tzpath(to=paths)


@pytest.mark.parametrize("seconds", [0, 0.5, -1, 366 * 86_400 + 1, "5", True])
def test_an_interval_outside_its_range_is_refused(seconds: Any) -> None:
    with pytest.raises(InvalidOption, match="every="):
        Every(seconds)


@pytest.mark.parametrize("text", ["every x", "every", "* * * *", ""])
def test_a_line_that_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption):
        parse_schedule(text)


def cron(catch_up: Any = "once", jitter_ms: int = 0, every: float = 3600, **job: Any) -> Cron:
    return Cron("c", msgspec.structs.replace(JOB, **job), Every(every), catch_up, jitter_ms)


def test_a_slot_is_due_at_its_instant_and_not_before() -> None:
    early = cron().turn(NOON - HOUR_MS, NOON - 1)
    due = cron().turn(NOON - HOUR_MS, NOON)

    assert (early.runs, early.passed, early.next_ms) == ((), 0, NOON)
    assert [(run.slot_ms, run.at_ms, run.late_ms) for run in due.runs] == [(NOON, NOON, 0)]
    assert (due.passed, due.next_ms) == (0, NOON + HOUR_MS)


@pytest.mark.parametrize(
    ("catch_up", "runs", "passed"),
    [("once", [NOON], 2), ("none", [], 3), ("all", [NOON - 2 * HOUR_MS, NOON - HOUR_MS, NOON], 0)],
)
def test_missed_slots_are_caught_up_as_was_said(catch_up: str, runs: list[int], passed: int) -> None:
    turn = cron(catch_up).turn(NOON - 3 * HOUR_MS, NOON + 30_000)

    assert [run.slot_ms for run in turn.runs] == runs
    assert (turn.passed, turn.passed_to_ms) == (passed, (NOON if not runs else runs[0] - HOUR_MS) if passed else 0)
    assert all(run.late_ms == NOON + 30_000 - run.slot_ms for run in turn.runs)


@pytest.mark.parametrize("catch_up", ["once", "none"])
def test_who_comes_back_in_time_for_a_slot_runs_it_as_any_other(catch_up: str) -> None:
    turn = cron(catch_up).turn(NOON - 3 * HOUR_MS, NOON + LATE_MS)

    assert [(run.slot_ms, run.late_ms) for run in turn.runs] == [(NOON, 0)]
    assert turn.passed == 2


def test_of_several_slots_in_time_one_is_run_unless_all_are_wanted() -> None:
    """A worker that hung for five seconds, with a slot in each of them."""
    for catch_up, runs in (("once", 1), ("none", 1), ("all", 5)):
        turn = cron(catch_up, every=1).turn(NOON - 5000, NOON)

        assert (len(turn.runs), turn.passed, turn.runs[-1].slot_ms) == (runs, 5 - runs, NOON)


def test_catching_up_has_an_end() -> None:
    turn = cron("all", every=60).turn(0, NOON)

    assert len(turn.runs) == MOST_CAUGHT_UP
    assert turn.runs[-1].slot_ms == NOON
    assert cron("once", every=1).turn(0, NOON).passed == MOST_CAUGHT_UP - 1


def test_a_day_that_comes_every_28_years_is_waited_for() -> None:
    rare = Cron("rare", JOB, Calendar("0 0 * 2 MON#5"))

    assert rfc3339(rare.turn(NOON, NOON).next_ms) == "2044-02-29T00:00:00.000Z"
    assert rfc3339(rare.turn(ms("2044-02-28"), ms("2044-02-29")).runs[0].slot_ms) == "2044-02-29T00:00:00.000Z"


def test_jitter_is_drawn_for_each_slot_and_the_same_for_everybody() -> None:
    def spread(name: str) -> list[int]:
        jittered = msgspec.structs.replace(cron("all", jitter_ms=60_000), name=name)
        turn = jittered.turn(NOON - 200 * HOUR_MS, NOON + 60_000)
        return [run.at_ms - run.slot_ms for run in turn.runs]

    assert spread("a") == spread("a") != spread("b")
    assert len(spread("a")) == 200
    assert min(spread("a")) >= 0
    assert max(spread("a")) < 60_000
    assert 20_000 < sum(spread("a")) / 200 < 40_000


def test_jitter_never_reaches_the_next_slot() -> None:
    turn = cron("all", jitter_ms=86_400_000, every=60).turn(NOON - 200 * 60_000, NOON)

    times = [run.at_ms for run in turn.runs]
    assert times == sorted(times)
    assert all(0 <= run.at_ms - run.slot_ms < 60_000 for run in turn.runs)


def test_nothing_is_done_for_a_slot_before_its_jitter_has_passed() -> None:
    jittered = cron(jitter_ms=HOUR_MS)
    at_ms = jittered.turn(NOON - HOUR_MS, NOON - 1).next_ms

    assert NOON < at_ms < NOON + HOUR_MS
    assert jittered.turn(NOON - HOUR_MS, at_ms - 1).next_ms == at_ms
    assert jittered.turn(NOON - HOUR_MS, at_ms - 1).runs == ()
    assert [run.slot_ms for run in jittered.turn(NOON - HOUR_MS, at_ms).runs] == [NOON]


def test_a_job_is_told_which_slot_it_is_for_and_whether_that_was_missed() -> None:
    own = cron(meta=Meta(headers={"team": "a"}, result_ttl_ms=5))

    [in_time] = own.turn(NOON - HOUR_MS, NOON).runs
    [late] = own.turn(NOON - HOUR_MS, NOON + 30_999).runs

    assert own.meta(in_time) == b'{"rt":5,"h":{"team":"a","cron":"c","cron-slot":"2027-01-15T12:00:00.000Z"}}'
    assert b'"cron-late":"30"' in own.meta(late)
