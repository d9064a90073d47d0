"""F31 to F33: clocks that jump. A worker's own clock decides nothing; the server's decides when leases end."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamjobs.protocol import crons
from tests.faults import server_faults
from tests.faults.field import HEALED_WITHIN_S, Field
from tests.faults.server_faults import ShiftedClock
from tests.servers import Server

HOUR_S = 3600


@pytest.fixture
def clock(tmp_path: Path) -> ShiftedClock:
    clock = ShiftedClock(tmp_path)
    if why := clock.why_not():
        pytest.skip(why)
    return clock


@pytest.fixture
def server(clock: ShiftedClock, server_binary: Path) -> Iterator[Server]:
    """A server whose clock can be shifted."""
    with clock.installed():
        server = Server(server_binary, args=server_faults.ARGS).start()
    with server:
        yield server


@contextmanager
def wrong_clock(tmp_path: Path, shift_s: int) -> Iterator[None]:
    """Let processes that start meanwhile have a wall clock that is wrong by this much."""
    (folder := tmp_path / "worker").mkdir()
    wrong = ShiftedClock(folder)
    assert not wrong.why_not()
    wrong.shift(shift_s)
    with wrong.installed():
        yield


@pytest.mark.parametrize("shift_s", [HOUR_S, -HOUR_S], ids=["forward", "back"])
def test_F31_a_worker_whose_clock_is_wrong_starts_jobs_when_they_are_due(
    field: Field, tmp_path: Path, shift_s: int
) -> None:
    field.enqueue("nap", *range(5), delay=1.0)
    field.enqueue("flaky", *range(5, 10))
    with wrong_clock(tmp_path, shift_s):
        field.serving()

    field.judge(start_s=HEALED_WITHIN_S)
    assert field.attempts() == {1, 2}


@pytest.mark.parametrize("shift_s", [HOUR_S, -HOUR_S], ids=["forward", "back"])
def test_F31_a_worker_whose_clock_is_wrong_runs_the_slots_of_a_cron_in_time(
    field: Field, tmp_path: Path, shift_s: int
) -> None:
    with wrong_clock(tmp_path, shift_s):
        field.serving(beat=True)
    field.serving(beat=True)
    field.until(lambda: field.count("E") >= 3, "slots come")
    # Or one more would come while the last ones are judged.
    field.queue.run(crons.pause(field.queue.keys, "beat", 0))

    field.judge(slots_s={"beat": 1.0})


@pytest.mark.parametrize("shift_s", [HOUR_S, -HOUR_S], ids=["F32-forward", "F32-back"])
def test_F32_a_jump_of_the_servers_clock_loses_nothing(field: Field, clock: ShiftedClock, shift_s: int) -> None:
    field.enqueue("nap", *range(20), args=(0.5,))
    workers = [field.serving(), field.serving()]
    field.until(lambda: field.count("S") >= 20, "all run")
    clock.shift(shift_s)
    field.enqueue("nap", *range(100, 110))
    field.until(lambda: field.count("E") >= 30, "old and new jobs end", within_s=HEALED_WITHIN_S)

    field.judge(steady_clock=False)
    assert all(worker.running() for worker in workers)
    assert field.totals()["dead"] == 0


def test_F33_a_jump_brings_delayed_jobs_forward_and_loses_none(field: Field, clock: ShiftedClock) -> None:
    field.enqueue("nap", *range(10), delay=HOUR_S / 2)
    field.serving()
    assert field.queue.counts()["scheduled"] == 10
    clock.shift(HOUR_S)
    field.enqueue("nap", 100, delay=0.1)

    field.judge(steady_clock=False)
    assert field.count("S") == 11
