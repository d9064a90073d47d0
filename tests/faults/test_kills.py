"""Case A3, in small: workers killed at random lose nothing."""

import pytest

from tests.faults.kills import run


@pytest.mark.slow
def test_case_A3_no_job_is_lost_when_workers_are_killed() -> None:
    seconds = 6.0

    verdict = run(seconds, seed=7)

    assert verdict.problems(seconds) == []
