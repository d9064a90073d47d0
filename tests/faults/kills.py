"""Kill workers at random while jobs pour in, and judge what came of it: `python -m tests.faults.kills`.

Two producers add 300 jobs a second, each job takes 50 ms, three worker processes run ten at a time
with a lease of 1 s, and every second one of them, at random, gets SIGKILL and is replaced. What
all of them do is recorded, apart from Redis, and the checker judges it after the drain.

Prints the numbers. Exit code 1 if a promise was broken, or if the kills did not bite.
"""

import argparse
import asyncio
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from streamjobs import Retry, StreamJobs
from streamjobs.client import Connections
from tests.faults import history
from tests.faults.audit import audit
from tests.faults.checker import Report, check
from tests.faults.history import Ended, Started
from tests.faults.recorder import Recorder, watch_calls
from tests.faults.rules import Limits, Rules
from tests.servers import Server, find_servers

ROOT = Path(__file__).parents[2]
NAMESPACE = "kills"
JOBS_PER_S = 300
PRODUCERS = 2
WORKERS = 3
KILL_EVERY_S = 1.0
JOB_S = 0.05
DRAINED_WITHIN_S = 40.0
RULES = Rules(limits={"nap": Limits(max_crashes=100)}, lease_s=1.0, sweep_s=0.25, slack_s=2.0, grace_s=5.0)


class Verdict(msgspec.Struct, frozen=True):
    """What a run has shown."""

    report: Report
    kills: int
    hits: int
    """Kills that hit running jobs."""

    def problems(self, seconds: float) -> list[str]:
        """Return what must not be; a run of 20 s must have 15 hits and 30 jobs that ran twice."""
        share = seconds / 20
        report = self.report
        found = [str(finding) for finding in report.violations]
        if report.dead:
            found.append(f"{report.dead} jobs are dead")
        if self.hits < int(15 * share):
            found.append(f"only {self.hits} kills hit running jobs, {int(15 * share)} are needed")
        if report.duplicated < int(30 * share):
            found.append(f"only {report.duplicated} jobs ran twice, {int(30 * share)} are needed")
        if report.jobs < 0.9 * JOBS_PER_S * seconds:
            found.append(f"only {report.jobs} jobs were added")
        return found


def make_app(url: str, recorder: Recorder) -> StreamJobs:
    """Return the app; its jobs are recorded."""
    app = StreamJobs(url, namespace=NAMESPACE)

    @app.job(name="nap", retry=Retry(max_crashes=100))
    async def nap(n: int) -> None:
        with recorder.run():
            await asyncio.sleep(JOB_S)

    return app


def work(url: str, folder: str) -> int:
    """Be a worker."""
    recorder = Recorder(Path(folder), "worker")
    with watch_calls(recorder):
        return make_app(url, recorder).run_worker(concurrency=10, lease=1, sweep=0.25, grace=5)


def produce(url: str, folder: str, first: int, seconds: float) -> int:
    """Be a producer: add every second job from `first` on, at an even pace."""
    recorder = Recorder(Path(folder), "producer")
    app = make_app(url, recorder)
    began, sent = time.monotonic(), 0
    while (elapsed := time.monotonic() - began) < seconds:
        due = int(elapsed * JOBS_PER_S / PRODUCERS)
        numbers = range(first + PRODUCERS * sent, first + PRODUCERS * due, PRODUCERS)
        results = recorder.enqueue_sync(app, [app.kind("nap").call(n) for n in numbers])
        assert all(not isinstance(result, Exception) for result in results), results
        sent = due
        time.sleep(0.05)
    return 0


class Field:
    """The processes of one run, and the folder of what they record."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        self._recorder = Recorder(folder, "harness")
        self.workers = [self._start("worker") for _ in range(WORKERS)]
        self.kills = self.hits = 0

    def _start(self, role: str, *options: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "tests.faults.kills", role, self._url, str(self._folder), *options]
        # What killed workers' successors have to say of crashes is expected, and much.
        quiet = subprocess.DEVNULL if role == "worker" else None
        return subprocess.Popen(command, cwd=ROOT, stderr=quiet)

    def producer(self, first: int, seconds: float) -> "subprocess.Popen[bytes]":
        return self._start("producer", "--first", str(first), "--seconds", str(seconds))

    def kill_one(self, chance: random.Random) -> None:
        """Kill a random worker, of those at work if there are any, and put another in its place."""
        places = [place for place in range(WORKERS) if self._at_work(self.workers[place].pid)]
        place = chance.choice(places or range(WORKERS))
        victim = self.workers[place]
        self._end(victim, signal.SIGKILL)
        self.kills += 1
        self.hits += self._at_work(victim.pid)
        self.workers[place] = self._start("worker")

    def _at_work(self, pid: int) -> bool:
        """Say whether a worker has started more jobs than it has ended; of the others nothing is read, which takes
        ever longer.
        """
        return any(
            sum(isinstance(event, Started) - isinstance(event, Ended) for event in process.events) > 0
            for process in history.read(self._folder, f"worker-{pid}-*")
        )

    def _end(self, worker: "subprocess.Popen[bytes]", how: signal.Signals) -> None:
        self._recorder.kill(worker.pid, how)
        self._recorder.died(worker.pid, worker.wait(30))

    def stop(self) -> None:
        for worker in self.workers:
            with suppress(ProcessLookupError):
                self._end(worker, signal.SIGTERM)


def run(seconds: float, seed: int, kill_every_s: float = KILL_EVERY_S) -> Verdict:
    """Run the whole scene once, on a server of its own."""
    chance = random.Random(seed)
    binary = next(iter(find_servers().values()))
    with Server(binary) as server, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        field = Field(server.url, folder)
        try:
            producers = [field.producer(first, seconds) for first in range(PRODUCERS)]
            while any(producer.poll() is None for producer in producers):
                time.sleep(kill_every_s)
                field.kill_one(chance)
            assert [producer.returncode for producer in producers] == [0] * PRODUCERS
            drain(server, time.monotonic() + DRAINED_WITHIN_S)
        finally:
            field.stop()
        connections = Connections(server.url)
        try:
            return Verdict(check(history.read(folder), audit(connections, NAMESPACE), RULES), field.kills, field.hits)
        finally:
            connections.close()


def drain(server: Server, deadline: float) -> None:
    """Wait until nothing is left to do."""
    base = f"{NAMESPACE}:{{default}}:"
    with server.client() as client:
        while (client.xlen(base + "stream") or client.zcard(base + "retries")) and time.monotonic() < deadline:
            time.sleep(0.1)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", nargs="?", default="run", choices=["run", "worker", "producer"])
    parser.add_argument("place", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long jobs are added; default 20")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.role == "worker":
        return work(*given.place)
    if given.role == "producer":
        return produce(given.place[0], given.place[1], given.first, given.seconds)
    verdict = run(given.seconds, given.seed)
    print(f"{verdict.report.numbers}  kills {verdict.kills}  that hit running jobs {verdict.hits}  (seed {given.seed})")
    problems = verdict.problems(given.seconds)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
