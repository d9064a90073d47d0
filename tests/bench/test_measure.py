"""Statistics, and what a sample says per job."""

import pytest

from benchmarks.measure import Sample, Spread


def test_a_spread_is_the_median_with_least_and_greatest() -> None:
    assert Spread.of([3.0, 1.0, 2.04], 1) == Spread(2.0, 1.0, 3.0)
    assert Spread.of([4.0, 1.0, 2.0, 8.0], 1) == Spread(3.0, 1.0, 8.0)
    assert Spread.of(iter([7.126]), 2) == Spread(7.13, 7.13, 7.13)


def test_a_sample_says_its_cost_per_job() -> None:
    sample = Sample(jobs=1000, seconds=0.5, client_s=0.002, server_s=0.003)

    assert sample.jobs_per_s == 2000
    assert sample.client_us == pytest.approx(2.0)
    assert sample.server_us == pytest.approx(3.0)
