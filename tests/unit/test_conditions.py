"""Conditions: every sign and unit, and what is said of one that does not hold."""

import operator
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamjobs.cli.params import seconds
from streamjobs.core.errors import UsageError
from streamjobs.core.server import ServerFacts
from streamjobs.core.thresholds import Health, Thresholds
from streamjobs.operate.conditions import Condition, broken, parse, shown
from streamjobs.operate.health import Reason, Verdict
from streamjobs.operate.metrics import WINDOWS, Tally
from streamjobs.operate.overview import Overview, QueueView
from streamjobs.operate.stats import QueueStats


def seen(waiting: int = 0, *, queue: str = "web", level: Health = Health.OK) -> Overview:
    """Return an overview of one queue with 120 s of waiting, a quarter failed, 10 in and 5 out per second."""
    stats = QueueStats(queue, waiting=waiting, oldest_ready_ms=120_000, slots=8, workers=2, dead=3)
    tally = Tally(60, {"enqueued": 600, "done": 300, "retried": 100})
    verdict = Verdict((Reason(level, "x", "x"),) if level else ())
    view = QueueView(stats, tally, [tally, tally], [], Thresholds(), verdict)
    return Overview(1, ServerFacts(), 0.05, WINDOWS["1m"], Verdict(), [view])


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("oldest<121s", True), ("oldest<2m", False), ("oldest<=2m", True), ("oldest<1h30m", True), ("oldest>90", True),
        ("dead=3", True), ("dead==3", True), ("dead!=3", False), ("dead>=3", True), ("waiting<1_000", True),
        ("in>9.5", True), ("in<9.5", False), ("out=5", True), ("fail<25", False), ("fail<=25%", True),
        ("latency<100ms", True), ("latency<10ms", False), ("workers>=2", True), ("slots>8", False), ("drain=0", True),
        ("limited=0", True), ("running=0", True), ("scheduled=0", True), ("retrying=0", True), ("health=ok", True),
        (" oldest < 121s ", True),
    ],
)  # fmt: skip
def test_conditions_hold_or_not(text: str, holds: bool) -> None:
    assert (broken(parse(text, seconds), seen()) == []) is holds


@given(st.integers(0, 50), st.integers(0, 50))
def test_signs_are_those_of_numbers(left: int, right: int) -> None:
    signs: dict[str, Callable[[int, int], bool]] = {
        "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
    }  # fmt: skip
    for sign, compare in signs.items():
        assert (broken(parse(f"waiting{sign}{right}", seconds), seen(left)) == []) is compare(left, right)


@pytest.mark.parametrize("level", list(Health))
def test_health_is_compared_by_how_bad_it_is(level: Health) -> None:
    for other in Health:
        assert (broken(parse(f"health<={other.word}", seconds), seen(level=level)) == []) is (level <= other)


def test_each_of_several_is_looked_at() -> None:
    [oldest, dead] = broken(parse("oldest<60s, waiting<5, dead=0", seconds), seen())

    assert (str(oldest), str(dead)) == ("web: oldest is 2m00s", "web: dead is 3")
    assert oldest.condition == Condition("oldest<60s", "oldest", "<", 60)


def test_a_queue_that_never_drains_breaks_any_bound() -> None:
    [one] = broken(parse("drain<1h", seconds), seen(waiting=7))

    assert str(one) == "web: drain is never over"


@pytest.mark.parametrize(
    "text", ["", "dead", "dead<", "<5", "dead<5<6", "dead~5", "nothing<5", "dead<nan", "fail<x", "health<"]
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text, seconds)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("dead", 12_418, "12,418"), ("in", 0.333, "0.3"), ("fail", 12.5, "12.5%"), ("oldest", 90.0, "1m30s"),
     ("health", 2, "critical"), ("drain", float("inf"), "never over")],
)  # fmt: skip
def test_measures_as_people_read_them(name: str, value: float, text: str) -> None:
    assert shown(name, value) == text
