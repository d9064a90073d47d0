"""Limits as values: what they refuse, how they are named, and which hold for a job."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamjobs import Concurrency, InvalidOption, JobOptions, Rate
from streamjobs.core.limits import base, key_text, limits, plan
from streamjobs.core.registry import Registry
from streamjobs.protocol.lanes import order


@pytest.mark.parametrize(
    ("rate", "value"),
    [
        (Rate(100), "20 10000"),
        (Rate(1000), "200 1000"),
        (Rate(3, per=60), "1 20000000"),
        (Rate(7), "2 142858"),
        (Rate(5, per=timedelta(minutes=1), burst=20), "20 12000000"),
    ],
)
def test_a_rate_is_a_burst_and_an_interval(rate: Rate, value: str) -> None:
    assert rate.value == value


@given(count=st.integers(1, 1_000_000), per=st.integers(100, 10_000))
def test_a_rate_is_never_above_what_was_asked_for_and_hardly_below(count: int, per: int) -> None:
    if count > per * 10_000:
        return
    interval_us = Rate(count, per=per).interval_us

    assert 0.99 * count <= per * 1_000_000 / interval_us <= count


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Rate(0), "count=0"),
        (lambda: Rate(True), "count=True"),
        (lambda: Rate(10_001), "10,000 per second"),
        (lambda: Rate(1, per=0), "per=0"),
        (lambda: Rate(100, burst=9), "use 10 or more"),
        (lambda: Concurrency(0), "concurrency=0"),
        (lambda: JobOptions(rate=5), r"expected streamjobs.Rate"),  # type: ignore[arg-type]
        (lambda: JobOptions(concurrency=1.5), r"expected streamjobs.Concurrency"),  # type: ignore[arg-type]
        (lambda: JobOptions(concurrency=0), "concurrency=0"),
        (lambda: JobOptions(rate=[Rate(1), Rate(2)]), "two limits for the same"),
    ],
)
def test_what_is_no_limit_is_refused_when_it_is_made(make: Any, says: str) -> None:
    with pytest.raises(InvalidOption, match=says):
        make()


def test_a_key_must_be_an_argument() -> None:
    def send(user: int) -> None: ...

    Registry().add(send, "send", JobOptions(rate=Rate(1, key="user")), context=object)
    with pytest.raises(InvalidOption, match=r"key='usr' is not an argument of it; it has user"):
        Registry().add(send, "send", JobOptions(rate=Rate(1, key="usr")), context=object)


def test_a_number_is_a_concurrency() -> None:
    assert limits(None, 3) == limits(None, Concurrency(3)) == (Concurrency(3),)


def test_names_of_what_is_limited() -> None:
    assert base(Concurrency(1), None) == "c:q"
    assert base(Rate(1), "mail") == "r:k:mail"
    assert base(Concurrency(1, key="user"), "mail") == "c:k:mail user"


def test_a_job_has_its_lanes_from_the_narrow_to_the_wide() -> None:
    of_kind = limits([Rate(5), Rate(1, key="user")], [Concurrency(1, key="user"), Concurrency(4, key="host")])
    found = plan("mail", of_kind, limits(Rate(9), 8), {}, ["user", "host"])

    assert found.lanes({"user": 7, "host": "a b"}.__getitem__) == [
        'c:k:mail host "a b"', "c:k:mail user 7", "r:k:mail user 7", "r:k:mail", "c:q", "r:q",
    ]  # fmt: skip
    assert found.values["c:q"] == "8"


def test_limits_set_at_run_time_count_where_they_fit() -> None:
    overrides = {"c:q": "3", "r:k:mail": "off", "c:k:mail user": "1", "c:k:mail nobody": "1", "c:k:web": "1"}

    found = plan("mail", (), (), overrides, ["user"])

    assert [name for name, _ in found.bases] == ["c:k:mail user", "r:k:mail", "c:q"]
    assert found.values == {}
    assert plan("page", (), (), {}, []).bases == ()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7, "7"),
        ("7", '"7"'),
        (None, "null"),
        ("a\nb c", '"a\\nb c"'),
        ({"b": 1, "a": [2]}, '{"a":[2],"b":1}'),
        ("x" * 254, '"' + "x" * 254 + '"'),
    ],
)
def test_a_key_is_its_json(value: object, text: str) -> None:
    assert key_text(value) == text


def test_a_long_key_is_hashed() -> None:
    one, other = key_text("x" * 255), key_text("x" * 256)

    assert one != other
    assert (len(one), one[0]) == (65, "#")


@given(st.tuples(st.integers(0, 10**13), st.integers(0, 10**6)), st.tuples(st.integers(0, 10**13), st.integers(0, 999)))
def test_orders_sort_as_ids_do(one: tuple[int, int], other: tuple[int, int]) -> None:
    texts = [order(f"{ms}-{seq}") for ms, seq in (one, other)]

    assert (texts[0] < texts[1]) == (one < other)
    assert order("d5-6") == order("5-6")
