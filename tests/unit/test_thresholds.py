"""Thresholds: what they may be, what they say, and what survives the way through a queue's configuration."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamjobs.core.errors import InvalidOption
from streamjobs.core.thresholds import Health, Thresholds, stored


def test_the_defaults_are_the_documented_ones() -> None:
    usual = Thresholds()

    assert {name: usual.pair(name) for name in usual.__struct_fields__} == {
        "oldest": (60, 300),
        "waiting": (None, None),
        "dead": (1, None),
        "failures": (0.25, 0.75),
        "crashes": (3, 10),
        "lost": (10, None),
        "latency": (0.25, 2),
        "memory": (0.85, 0.95),
    }


@pytest.mark.parametrize(
    ("given", "pair"),
    [
        (30, (30, 300)),
        (400, (400, 400)),
        ((30, None), (30, None)),
        ((30, 60.5), (30, 60.5)),
        (None, (None, None)),
        ((None, 60), (None, 60)),
        (timedelta(minutes=1), (60, 300)),
        ((timedelta(minutes=1), timedelta(minutes=5)), (60, 300)),
        ((60, 60), (60, 60)),
        (0, (0, 300)),
    ],
)
def test_one_number_is_for_degraded_alone_and_two_for_both(given: Any, pair: Any) -> None:
    assert Thresholds(oldest=given).pair("oldest") == pair


def test_what_is_never_critical_stays_so() -> None:
    assert Thresholds(dead=5).pair("dead") == (5, None)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("oldest", -1, "0 or more"),
        ("oldest", "60s", "expected a number"),
        ("oldest", (60, 30), "critical before it is degraded"),
        ("oldest", (1, 2, 3), "give one number, or two"),
        ("oldest", float("nan"), "0 or more"),
        ("oldest", float("inf"), "0 or more"),
        ("dead", True, "expected a number"),
        ("failures", 20, "expected a share, 0 to 1"),
        ("memory", (0.5, 1.01), "expected a share, 0 to 1"),
        ("dead", timedelta(seconds=1), "expected a number"),
        ("deads", 1, "use oldest, waiting, dead"),
    ],
)
def test_what_cannot_be_meant_is_refused(name: str, value: Any, said: str) -> None:
    with pytest.raises(InvalidOption, match=said):
        Thresholds().changed({name: value})


@pytest.mark.parametrize(
    ("value", "level", "passed"),
    [(0, Health.OK, 0), (59.9, Health.OK, 0), (60, Health.DEGRADED, 60), (299, Health.DEGRADED, 60),
     (300, Health.CRITICAL, 300), (9e9, Health.CRITICAL, 300)],
)  # fmt: skip
def test_a_measure_that_has_come_to_a_bound_has_passed_it(value: float, level: Health, passed: float) -> None:
    assert Thresholds().level("oldest", value) is level
    assert Thresholds().passed("oldest", value) == passed


def test_none_is_never() -> None:
    none = Thresholds(oldest=None, dead=(None, 5))

    assert none.level("oldest", 1e12) is Health.OK
    assert [none.level("dead", n) for n in (4, 5)] == [Health.OK, Health.CRITICAL]


def test_words() -> None:
    assert [health.word for health in Health] == ["ok", "degraded", "critical"]


BOUND = st.none() | st.floats(0, 1)
PAIRS = st.tuples(BOUND, BOUND).filter(lambda two: two[0] is None or two[1] is None or two[0] <= two[1])


@given(st.dictionaries(st.sampled_from(Thresholds.__struct_fields__), PAIRS))
def test_what_is_stored_is_what_was_said(changes: dict[str, Any]) -> None:
    said = Thresholds().changed(changes)

    kept = stored(msgspec.json.encode(said.differing()).decode())

    assert {name: kept.pair(name) for name in kept.__struct_fields__} == {
        name: said.pair(name) for name in said.__struct_fields__
    }


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "no JSON", '{"later": [1, 2]}', '{"dead": "many"}', '{"dead": [5, 1]}']
)
def test_what_is_not_understood_is_as_usual(text: str) -> None:
    """A queue's configuration may come from a later version."""
    assert stored(text) == Thresholds()
    assert stored('{"later": 1, "dead": [7, null]}').pair("dead") == (7, None)
