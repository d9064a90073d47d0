"""Kill workers at random while jobs pour in, and count what was lost: `python -m tests.faults.kills`.

Two producers add 300 jobs a second, each job takes 50 ms, three worker processes run ten at a time
with a lease of 1 s, and every second one of them, at random, gets SIGKILL and is replaced. What
started and what ended is written to a file, apart from Redis: one `os.write` each, in append mode.

Prints the counts. Exit code 1 if a job was lost, or if the kills did not bite.
"""

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from streamjobs import Retry, StreamJobs
from tests.servers import Server, find_servers

ROOT = Path(__file__).parents[2]
NAMESPACE = "kills"
JOBS_PER_S = 300
PRODUCERS = 2
WORKERS = 3
KILL_EVERY_S = 1.0
JOB_S = 0.05
DRAINED_WITHIN_S = 40.0


class Verdict(msgspec.Struct, frozen=True):
    """What a run has shown."""

    jobs: int
    lost: int
    kills: int
    hits: int
    """Kills that hit running jobs."""
    twice: int
    """Jobs that were started more than once."""
    dead: int

    def problems(self, seconds: float) -> list[str]:
        """Return what must not be; a run of 20 s must have 15 hits and 30 jobs that ran twice."""
        share = seconds / 20
        found = []
        if self.lost or self.dead:
            found.append(f"{self.lost} jobs lost, {self.dead} dead")
        if self.hits < int(15 * share):
            found.append(f"only {self.hits} kills hit running jobs, {int(15 * share)} are needed")
        if self.twice < int(30 * share):
            found.append(f"only {self.twice} jobs ran twice, {int(30 * share)} are needed")
        if self.jobs < 0.9 * JOBS_PER_S * seconds:
            found.append(f"only {self.jobs} jobs were added")
        return found


def make_app(url: str, journal: str = os.devnull) -> StreamJobs:
    """Return the app; its jobs note their start and their end in the journal."""
    app = StreamJobs(url, namespace=NAMESPACE)
    file = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    pid = os.getpid()

    @app.job(name="nap", retry=Retry(max_crashes=100))
    async def nap(n: int) -> None:
        os.write(file, f"S {n} {pid}\n".encode())
        await asyncio.sleep(JOB_S)
        os.write(file, f"E {n} {pid}\n".encode())

    return app


def work(url: str, journal: str) -> int:
    """Be a worker."""
    return make_app(url, journal).run_worker(concurrency=10, lease=1, sweep=0.25, grace=5)


def produce(url: str, journal: str, first: int, seconds: float) -> int:
    """Be a producer: add every second job from `first` on, at an even pace; note each that was taken."""
    app = make_app(url)
    file = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    began, sent = time.monotonic(), 0
    while (elapsed := time.monotonic() - began) < seconds:
        due = int(elapsed * JOBS_PER_S / PRODUCERS)
        numbers = range(first + PRODUCERS * sent, first + PRODUCERS * due, PRODUCERS)
        results = app.enqueue_many_sync(app.kind("nap").call(n) for n in numbers)
        assert all(not isinstance(result, Exception) for result in results), results
        os.write(file, b"".join(b"J %d 0\n" % n for n in numbers))
        sent = due
        time.sleep(0.05)
    return 0


class Field:
    """The processes of one run, and its journal."""

    def __init__(self, url: str, journal: Path) -> None:
        self._url = url
        self._journal = journal
        journal.touch()
        self.workers = [self._start("worker") for _ in range(WORKERS)]
        self.kills = self.hits = 0

    def _start(self, role: str, *options: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "tests.faults.kills", role, self._url, str(self._journal), *options]
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
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        self.kills += 1
        self.hits += self._at_work(victim.pid)
        self.workers[place] = self._start("worker")

    def _at_work(self, pid: int) -> bool:
        """Say whether a worker has started more jobs than it has ended."""
        held = Counter(word for word, _, where in self.entries() if where == pid)
        return held["S"] > held["E"]

    def entries(self) -> list[tuple[str, int, int]]:
        """Return the journal: what happened (J added, S started, E ended), to which job, where."""
        rows = [line.split() for line in self._journal.read_text().splitlines()]
        return [(word, int(n), int(pid)) for word, n, pid in rows]

    def verdict(self, dead: int) -> Verdict:
        seen: dict[str, Counter[int]] = {"J": Counter(), "S": Counter(), "E": Counter()}
        for word, n, _ in self.entries():
            seen[word][n] += 1
        lost = seen["J"].keys() - seen["E"].keys()
        twice = sum(times > 1 for times in seen["S"].values())
        return Verdict(len(seen["J"]), len(lost), self.kills, self.hits, twice, dead)

    def stop(self) -> None:
        for worker in self.workers:
            worker.terminate()
        for worker in self.workers:
            worker.wait(30)


def run(seconds: float, seed: int) -> Verdict:
    """Run the whole scene once, on a server of its own."""
    chance = random.Random(seed)
    binary = next(iter(find_servers().values()))
    with Server(binary) as server, tempfile.TemporaryDirectory() as folder:
        field = Field(server.url, Path(folder) / "journal")
        try:
            producers = [field.producer(first, seconds) for first in range(PRODUCERS)]
            while any(producer.poll() is None for producer in producers):
                time.sleep(KILL_EVERY_S)
                field.kill_one(chance)
            assert [producer.returncode for producer in producers] == [0] * PRODUCERS
            dead = drain(server, time.monotonic() + DRAINED_WITHIN_S)
        finally:
            field.stop()
        return field.verdict(dead)


def drain(server: Server, deadline: float) -> int:
    """Wait until nothing is left to do; return how many jobs are dead."""
    base = f"{NAMESPACE}:{{default}}:"
    with server.client() as client:
        while client.xlen(base + "stream") or client.zcard(base + "retries"):
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
        return int(client.xlen(base + "dead"))


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
        return produce(*given.place, given.first, given.seconds)
    verdict = run(given.seconds, given.seed)
    print(
        f"jobs {verdict.jobs}  lost {verdict.lost}  dead {verdict.dead}  kills {verdict.kills}"
        f"  that hit running jobs {verdict.hits}  jobs that ran twice {verdict.twice}  (seed {given.seed})"
    )
    problems = verdict.problems(given.seconds)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
