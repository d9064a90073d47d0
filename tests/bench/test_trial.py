"""Variants without a bare loop: in turn, each with its medians; what went wrong once is not tried again."""

import itertools

import pytest

from benchmarks.document import Result
from benchmarks.duel import Void
from benchmarks.measure import Sample, Spread, lateness
from benchmarks.trial import result_of, trials


def test_variants_run_in_turn_and_swap_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []
    steps = itertools.count(1)

    def once(name: str) -> Sample:
        seen.append(name)
        return Sample(10, float(next(steps)), 1.0, 1.0, {"of something": 2.0})

    results = list(trials("some", {"a": lambda: once("a"), "b": lambda: once("b")}, 3))

    assert seen == ["a", "b", "b", "a", "a", "b"]
    assert [result.variant for result in results] == ["a", "b"]
    assert results[0].figures == {"of something": Spread(2.0, 2.0, 2.0)}
    assert results[0].jobs_per_s == Spread(2.0, 2.0, 10.0)  # 10 jobs in 1, 4 and 5 s
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "some 1/6 a: 10 jobs/s, 2 of something"
    assert len(told) == 6


def test_a_void_step_voids_its_variant_alone() -> None:
    tries: list[int] = []

    def bad() -> Sample:
        tries.append(1)
        raise Void("jobs left: 3")

    bad_one, good = trials("some", {"bad": bad, "good": lambda: Sample(1, 1.0, 0.0, 0.0)}, 3)

    assert bad_one.wrong == ["is void: jobs left: 3"]
    assert len(tries) == 1
    assert good.wrong == []
    assert good.repeats == 3


def test_of_a_sample_without_jobs_only_figures_count() -> None:
    result = result_of(
        "some", "x", [Sample(0, 1.0, 0.0, 0.0, {"bytes": 1.0}), Sample(0, 1.0, 0.0, 0.0, {"bytes": 4.0})]
    )

    assert result == Result(scenario="some", variant="x", jobs=0, repeats=2, figures={"bytes": Spread(2.5, 1.0, 4.0)})


def test_lateness_says_quantiles_in_milliseconds() -> None:
    found = lateness((number / 1000 for number in reversed(range(1000))), "late")

    assert {name: round(value, 6) for name, value in found.items()} == {
        "ms late, p50": 500.0,
        "ms late, p99": 990.0,
        "ms late, p99.9": 999.0,
        "ms late, max": 999.0,
    }
    assert lateness([0.5], "late")["ms late, p50"] == 500.0
