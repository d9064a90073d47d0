"""Retry policies are values that say after how long."""

from random import Random
from statistics import fmean

import pytest

from streamjobs.core.errors import InvalidOption
from streamjobs.core.retry import Exponential, Fixed, Retry

DRAWS = 10_000


def delays(policy: Exponential, failures: int) -> list[int]:
    random = Random(failures)
    return [policy.delay_ms(failures, random.random()) for _ in range(DRAWS)]


def test_case_C11_the_mean_doubles_below_the_cap_and_the_range_is_wide() -> None:
    policy = Exponential(base=1, cap=64, jitter="equal")

    drawn = {n: delays(policy, n) for n in range(1, 11)}

    means = {n: fmean(drawn[n]) for n in drawn}
    for n in range(1, 6):
        assert means[n + 1] / means[n] == pytest.approx(2, rel=0.02)
    for n, sample in drawn.items():
        whole = min(64, 2**n) * 1000
        assert max(sample) - min(sample) >= 0.45 * whole
        assert min(sample) >= 0
        assert max(sample) <= whole <= 64_000
    assert means[7] == pytest.approx(means[10], rel=0.02)


def test_full_jitter_draws_from_zero_and_none_does_not_draw() -> None:
    full = delays(Exponential(base=1, cap=64, jitter="full"), 3)
    none = delays(Exponential(base=1, cap=64, jitter="none"), 3)

    assert (min(full) < 200, max(full) > 7800, max(full) <= 8000) == (True, True, True)
    assert set(none) == {8000}


@pytest.mark.parametrize("failures", [64, 1000, 10**9])
def test_the_cap_holds_for_any_number_of_failures(failures: int) -> None:
    assert Exponential(base=0.001, cap=5).delay_ms(failures, 0.999) <= 5000


def test_a_fixed_backoff_stays() -> None:
    assert [Fixed(2.5).delay_ms(n, 0.7) for n in (1, 2, 50)] == [2500] * 3


@pytest.mark.parametrize(
    ("base", "cap"), [(0, 1), (-1, 1), (2, 1), (float("nan"), 1), (1, float("inf")), (1, float("nan"))]
)
def test_a_backoff_out_of_range_is_refused(base: float, cap: float) -> None:
    with pytest.raises(InvalidOption, match="base"):
        Exponential(base=base, cap=cap)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 31 * 86_400])
def test_a_fixed_backoff_out_of_range_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidOption, match="backoff"):
        Fixed(seconds)


@pytest.mark.parametrize(
    "options",
    [{"max_attempts": 0}, {"max_attempts": 1001}, {"max_crashes": 2}, {"permanent": (5,)}, {"permanent": (int,)}],
)
def test_a_policy_out_of_range_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidOption, match=next(iter(options))):
        Retry(**options)  # type: ignore[arg-type]


def test_policies_are_values() -> None:
    assert Retry(3, permanent=(ValueError,)) == Retry(3, permanent=(ValueError,))
    with pytest.raises(AttributeError):
        Retry().max_attempts = 5  # type: ignore[misc]
