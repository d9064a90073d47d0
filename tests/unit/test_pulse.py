"""What arrived while a process stood still is dated back to when it last moved."""

import pytest

from streamjobs.worker import clock
from streamjobs.worker.clock import Pulse


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(clock, "monotonic", time)
    return time


def test_a_process_that_moves_dates_replies_by_now(time: Time) -> None:
    pulse = Pulse()
    time.now = 100.1
    pulse.beat()
    time.now = 100.2

    assert pulse.arrived_at(100.0) == 100.2


@pytest.mark.parametrize("beat_first", [True, False])
def test_what_came_in_a_freeze_is_as_old_as_the_freeze(time: Time, beat_first: bool) -> None:
    pulse = Pulse()
    time.now = 107.0
    if beat_first:
        pulse.beat()
        time.now = 107.05

    assert pulse.arrived_at(95.0) == 100.0
    assert pulse.arrived_at(103.0) == 103.0


def test_an_old_freeze_says_nothing_of_a_later_request(time: Time) -> None:
    pulse = Pulse()
    time.now = 107.0
    pulse.beat()
    time.now = 107.2

    assert pulse.arrived_at(107.1) == 107.2


def test_the_worst_lag_is_seen_for_half_a_minute_at_least_and_a_whole_one_at_most(time: Time) -> None:
    pulse = Pulse()

    def beats(seconds: float) -> list[float]:
        seen = []
        for _ in range(round(seconds * 10)):
            time.now += 0.1
            pulse.beat()
            seen.append(round(pulse.lag_s, 3))
        return seen

    time.now += 50
    assert set(beats(5)) == {0.0}
    time.now += 2
    assert set(beats(30)) == {2.0}
    assert beats(35)[-1] == 0.0
