"""Crons under a server whose clock is wound forward: each minute once, whoever is killed at its boundary."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamjobs.protocol import crons, upkeep
from tests.faults.scenarios.conftest import SEED
from tests.faults.server_faults import ShiftedClock
from tests.servers import Server
from tests.worker.support import Queue

ROOT = Path(__file__).parents[3]
NAMESPACE = "slots"
MINUTES = 10
MINUTE_MS = 60_000
WITHIN_S = 20.0


class Stage:
    """A server whose clock can be moved, and two workers on it."""

    def __init__(self, server: Server, clock: ShiftedClock, folder: Path) -> None:
        self.queue = Queue(server.url, NAMESPACE)
        self._url = server.url
        self._clock = clock
        self._shift_s = 0
        self._journal = folder / "journal"
        self.workers = [self.start(), self.start()]

    def start(self) -> "subprocess.Popen[bytes]":
        words = (sys.executable, "-m", "tests.faults.scheduler", self._url, NAMESPACE, str(self._journal))
        return subprocess.Popen(words, cwd=ROOT, stderr=subprocess.DEVNULL)

    def kill(self, n: int) -> None:
        self.workers[n].send_signal(signal.SIGKILL)
        self.workers[n].wait(10)

    def now_ms(self) -> int:
        return int(self.queue.run(upkeep.server_time()))

    def wind(self) -> int:
        """Wind the clock forward to two or three seconds before a minute; return that minute, in ms."""
        now_ms = self.now_ms()
        slot_ms = ((now_ms + 3000) // MINUTE_MS + 1) * MINUTE_MS
        self._shift_s += (slot_ms - now_ms) // 1000 - 2
        self._clock.shift(self._shift_s)
        return slot_ms

    def jobs(self) -> dict[str, set[str]]:
        """Return the jobs that ran, by their slot; a job that was killed may have run twice."""
        found: dict[str, set[str]] = {}
        for line in self._journal.read_text().splitlines() if self._journal.exists() else ():
            slot, job = line.split()
            found.setdefault(slot, set()).add(job)
        return found

    def await_time(self, at_ms: int) -> None:
        self.until(lambda: self.now_ms() >= at_ms, "the moment of the kill")

    def await_slots(self, count: int) -> None:
        self.until(lambda: len(self.jobs()) >= count, f"{count} slots")

    def until(self, done: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not done():
            assert time.monotonic() < deadline, f"not within {WITHIN_S:g} s: {what}; {self.jobs()}"
            time.sleep(0.01)

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait(10)
        self.queue.close()


@pytest.fixture
def stage(server_binary: Path, tmp_path: Path) -> Iterator[Stage]:
    clock = ShiftedClock(tmp_path)
    if why := clock.why_not():
        pytest.skip(why)
    with clock.installed():
        server = Server(server_binary).start()
    with server:
        stage = Stage(server, clock, tmp_path)
        yield stage
        stage.close()


def test_workers_killed_at_every_minute_of_the_servers_clock_run_each_once(stage: Stage) -> None:
    chance = random.Random(SEED)
    print(f"seed {SEED}: repeat with STREAMJOBS_TEST_SEED={SEED}")
    stage.until(lambda: stage.queue.run(crons.rows(stage.queue.keys)), "a worker has planned")
    began = stage.now_ms() // MINUTE_MS
    for minute in range(MINUTES):
        slot_ms = stage.wind()
        moment_ms = slot_ms + chance.choice([-300, -50, -5, 0, 2, 5, 20, 200])
        stage.await_time(moment_ms)
        for n in [0, 1] if minute % 3 == 0 else [minute % 2]:
            stage.kill(n)
            stage.workers[n] = stage.start()
        stage.await_slots(minute + 1)

    jobs = stage.jobs()
    row = stage.queue.run(crons.rows(stage.queue.keys))["c"]
    assert [len(ids) for ids in jobs.values()] == [1] * len(jobs)
    assert len(jobs) == row.runs == row.last_ms // MINUTE_MS - began
    assert stage.queue.totals()["enqueued"] == row.runs
    assert row.skipped == 0
