"""Numbers that somebody else wrote."""

import pytest

from streamjobs.core.numbers import FAR_MS, milliseconds, whole


@pytest.mark.parametrize(
    ("text", "number"),
    [("5", 5), ("-5", -5), ("", 0), ("x", 0), ("1.5", 0), ("٣", 0), ("²", 0), ("9" * 18, 10**18 - 1), ("9" * 5000, 0),
     (b"7", 7), (b"\xff", 0), ("--5", 0), (" 5", 0)],
)  # fmt: skip
def test_whole(text: str | bytes, number: int) -> None:
    assert whole(text) == number
    assert whole("x", 9) == 9


@pytest.mark.parametrize(
    ("score", "ms"), [("5", 5), (b"1.9e3", 1900), ("inf", FAR_MS), ("-inf", -FAR_MS), ("nan", 0), ("1e300", FAR_MS)]
)
def test_milliseconds(score: str | bytes, ms: int) -> None:
    assert milliseconds(score) == ms
