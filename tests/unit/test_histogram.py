"""Buckets: any number has one, their edges meet, and what a percentile says is off by at most a sixteenth."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamjobs.core.histogram import bucket, edges, folded, middle, percentile

NUMBERS = st.integers(0, 2**60) | st.integers(0, 40)


def test_small_numbers_have_a_bucket_each() -> None:
    assert [bucket(n) for n in range(16)] == list(range(16))
    assert [middle(n) for n in range(16)] == list(range(16))


def test_eight_buckets_divide_each_octave() -> None:
    for octave in range(3, 40):
        low = 1 << octave
        assert bucket(2 * low) - bucket(low) == 8
        assert bucket(low) - bucket(low - 1) == 1


@pytest.mark.parametrize(("index", "low", "high"), [(0, 0, 1), (15, 15, 16), (16, 16, 18), (57, 576, 640)])
def test_edges_are_the_documented_ones(index: int, low: int, high: int) -> None:
    assert edges(index) == (low, high)


def test_edges_meet() -> None:
    for index in range(400):
        assert edges(index)[1] == edges(index + 1)[0]


@given(NUMBERS)
def test_a_number_is_between_the_edges_of_its_bucket(number: int) -> None:
    low, high = edges(bucket(number))

    assert low <= number < high
    assert abs(middle(bucket(number)) - number) <= number / 16


def test_a_clock_that_was_set_back_gives_no_negative_bucket() -> None:
    assert bucket(-5) == 0
    assert folded([-5, 0, 3]) == {0: 2, 3: 1}


@given(st.lists(NUMBERS, min_size=1), st.floats(0.01, 1))
def test_a_percentile_is_that_of_the_numbers(numbers: list[int], share: float) -> None:
    exact = sorted(numbers)[ceil(round(share * len(numbers), 9)) - 1]

    found = percentile(folded(numbers), share)

    assert found is not None
    assert abs(found - exact) <= exact / 16


def test_percentiles_of_parts_of_minutes() -> None:
    """The oldest minute of a window counts in part."""
    counts = {3: 0.1 * 7, 10: 0.1 * 3, 20: 0.0}

    assert percentile(counts, 0.7) == 3
    assert percentile(counts, 0.71) == 10
    assert percentile(counts, 1.0) == 10


def test_no_numbers_have_no_percentile() -> None:
    assert percentile({}, 0.5) is None
    assert percentile({4: 0.0}, 0.5) is None
