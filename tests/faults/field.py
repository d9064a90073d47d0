"""One scenario's server, queue, processes and journal, and how it is judged at its end."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from streamjobs import Handle, Job, OutcomeUnknown, StreamJobs, StreamJobsError
from streamjobs.client import Connections
from streamjobs.core import failpoints
from streamjobs.protocol import scripts
from tests.faults import history
from tests.faults.actors import JOURNAL, Stage, make_app
from tests.faults.audit import audit
from tests.faults.checker import Report, check
from tests.faults.recorder import Recorder
from tests.faults.rules import Rules
from tests.servers import Server
from tests.worker.support import Queue

ROOT = Path(__file__).parents[2]
NAMESPACE = "field"
WITHIN_S = 12.0
"""How long what must come may take on a busy machine; mostly it takes a twentieth of that."""
WRITTEN_WITHIN_S = 1.5
HEALED_WITHIN_S = 5.0
"""After a fault has ended, work goes on within this time."""

FAST: dict[str, Any] = {"concurrency": 10, "lease": 0.5, "sweep": 0.1, "block": 0.2, "grace": 2, "reply_s": 1.0}
"""How workers work here: every wait is short. `reply_s`: how long they wait for a reply."""


class Entry(msgspec.Struct, frozen=True):
    """One line of the journal."""

    word: str
    n: int
    pid: int
    detail: str


class Actor:
    """A process of the scene; what it says on stderr is kept."""

    def __init__(self, recorder: Recorder, folder: Path, number: int, *words: str, armed: str = "") -> None:
        self._recorder = recorder
        self._said = folder / f"actor-{number}"
        command = [sys.executable, "-m", "tests.faults.actors", *words]
        with self._said.open("wb") as file:
            environment = {**os.environ, failpoints.VARIABLE: armed}
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=file, start_new_session=True)

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self) -> str:
        """Return its log."""
        return self._said.read_text("utf-8", "replace")

    def send(self, number: signal.Signals) -> None:
        self._recorder.kill(self.pid, number)

    def kill9(self) -> None:
        """End it as a crash would."""
        self.send(signal.SIGKILL)
        self.ended()

    def stopped(self) -> bool:
        """Say whether it is frozen by SIGSTOP."""
        status = Path(f"/proc/{self.pid}/stat").read_text()
        return status.rpartition(")")[2].split()[0] == "T"

    def running(self) -> bool:
        """Say whether it is there; its end is recorded when it is first seen."""
        known = self.process.returncode is not None
        code = self.process.poll()
        if code is not None and not known:
            self._recorder.died(self.pid, code)
        return code is None

    def ended(self, within_s: float = WITHIN_S) -> int:
        """Wait for its end; return the exit code."""
        if self.running():
            self._recorder.died(self.pid, self.process.wait(within_s))
        return self.process.returncode


class Field:
    """Where a scenario takes place. What is random in one comes from `seed`, which is printed on failure."""

    def __init__(self, server: Server, folder: Path, seed: int) -> None:
        self.server = server
        self.seed = seed
        self._folder = folder
        self._journal = folder / JOURNAL
        self.recorder = Recorder(folder, "harness")
        self._stage = Stage(folder, self.recorder)
        self.actors: list[Actor] = []
        self.jobs: set[int] = set()
        """The numbers of the jobs that are there, as their enqueuers were told."""
        self._unknown: dict[int, tuple[int, int]] = {}
        """The call and the number of each job whose fate is not known, by the identity of its error."""
        self.queue = Queue(server.url, NAMESPACE)
        self.app = self.make_app(server.url)
        # A rule of a proxy is to bite the first call, not the answer that its script is not there yet.
        for name in scripts.names():
            self.queue.command("SCRIPT", "LOAD", scripts.load(name).text)

    def make_app(self, url: str, **options: Any) -> StreamJobs:
        """Return an app of the same jobs that reaches the server in another way."""
        return make_app(url, NAMESPACE, self._stage, **options)

    def worker(self, url: str = "", armed: str = "", **options: Any) -> Actor:
        """Start a worker; `armed`: its failpoints."""
        text = msgspec.json.encode(FAST | options).decode()
        return self._start("work", url or self.server.url, text, armed=armed)

    def producer(self, first: int, count: int = 1, url: str = "", armed: str = "", timeout_s: float = 15) -> Actor:
        """Start a process that enqueues jobs and ends."""
        words = (str(first), str(count), str(timeout_s))
        return self._start("produce", url or self.server.url, *words, armed=armed)

    def _start(self, role: str, url: str, *words: str, armed: str) -> Actor:
        line = (role, url, NAMESPACE, str(self._folder), *words)
        self.actors.append(Actor(self.recorder, self._folder, len(self.actors), *line, armed=armed))
        return self.actors[-1]

    def serving(self, url: str = "", armed: str = "", **options: Any) -> Actor:
        """Start a worker and wait until it serves."""
        worker = self.worker(url, armed, **options)
        self.until(lambda: " serves q " in worker.said(), "a worker serves")
        return worker

    def call(self, kind: str, n: int, *args: Any, **options: Any) -> Job:
        """Return job `n`, to be enqueued by the test."""
        return self.app.kind(kind).options(**options).call(n, *args)

    def enqueue(self, kind: str, *numbers: int, args: Iterable[Any] = (), **options: Any) -> list[Handle[Any]]:
        """Enqueue a job for each number; every one must be there afterwards."""
        handles = [
            one
            for one in self.send(self.app, *(self.call(kind, n, *args, **options) for n in numbers))
            if isinstance(one, Handle)
        ]
        assert len(handles) == len(numbers), self.story()
        return handles

    def send(self, app: StreamJobs, *jobs: Job) -> list[Handle[Any] | StreamJobsError]:
        """Send jobs through any app; return a handle or an error for each."""
        calls = self.recorder.called(jobs, batch=len(jobs) > 1)
        outcomes = app.enqueue_many_sync(jobs)
        self.recorder.answered(calls, outcomes)
        for call, job, outcome in zip(calls, jobs, outcomes, strict=True):
            n = msgspec.json.decode(job.body)["n"]
            if isinstance(outcome, Handle):
                self.jobs.add(n)
            elif isinstance(outcome, OutcomeUnknown):
                self._unknown[id(outcome)] = (call, n)
        return outcomes

    def retry(self, error: OutcomeUnknown) -> Handle[Any]:
        """Find out what became of a job that `send` could not tell."""
        handle: Handle[Any] = error.retry()
        call, n = self._unknown[id(error)]
        self.recorder.answered([call], [handle])
        self.jobs.add(n)
        return handle

    def journal(self) -> list[Entry]:
        """Return what happened so far."""
        rows = [line.split(" ") for line in self._journal.read_text().splitlines()]
        return [Entry(word, int(n), int(pid), detail) for word, n, pid, detail in rows]

    def counted(self, name: str) -> int:
        """Return what the counters of all minutes say, such as `done:nap`."""
        with self.server.client() as client:
            minutes = client.scan_iter(match=f"{self.queue.keys.metrics}*")
            return sum(int(client.hget(minute, name) or 0) for minute in minutes)

    def count(self, word: str, n: int | None = None, pid: int | None = None) -> int:
        """Return how often this happened: to one job or to any, in one process or in any."""
        return sum(entry.word == word and n in (None, entry.n) and pid in (None, entry.pid) for entry in self.journal())

    def attempts(self) -> set[int]:
        """Return the attempts that starts were made as: only 1 if nothing was charged to any job."""
        return {int(entry.detail.partition("/")[2]) for entry in self.journal() if entry.word == "S"}

    def until(self, done: Callable[[], object], what: str, within_s: float = WITHIN_S) -> float:
        """Wait for something that must come; return how long that took."""
        began = time.monotonic()
        while not done():
            assert time.monotonic() - began < within_s, f"not within {within_s:g} s: {what}\n{self.story()}"
            time.sleep(0.01)
        return time.monotonic() - began

    def happens(self, word: str, n: int, times: int = 1, within_s: float = WITHIN_S) -> float:
        """Wait until this has happened to a job so often."""
        return self.until(lambda: self.count(word, n) >= times, f"{times} times {word} of job {n}", within_s)

    def drained(self, within_s: float = WITHIN_S) -> None:
        """Wait until nothing waits, runs or retries."""
        keys = self.queue.keys
        with self.server.client() as client, client.pipeline(transaction=True) as looks:

            def empty() -> bool:
                # At once: a job that moves meanwhile would be in none of the places.
                looks.xlen(keys.stream)
                looks.zcard(keys.scheduled)
                looks.zcard(keys.retries)
                return not any(looks.execute())

            self.until(empty, "the queue is drained", within_s)

    def judge(self, dead: Iterable[int] = (), **rules: Any) -> None:
        """Wait for the end of all jobs; then no invariant is broken, and only these jobs are dead.

        `rules`: what the checker is to know of this run.
        """
        with suppress(AssertionError):
            # The checker says what is stuck, and where.
            self.drained()
        # What a worker was told last may not be written down yet.
        deadline = time.monotonic() + WRITTEN_WITHIN_S
        while not (report := self._report(Rules(**rules))).ok and time.monotonic() < deadline:
            time.sleep(0.05)
        assert report.ok, f"{report}\n{self.story()}"
        self.drained(within_s=0)
        ended = {entry.n for entry in self.journal() if entry.word == "E"}
        lost = self.jobs - ended - set(dead)
        assert not lost, f"lost: {sorted(lost)[:10]} of {len(self.jobs)}\n{self.story()}"
        assert self.queue.counts()["dead"] == len(set(dead)), self.story()
        assert not self.queue.pending(), self.story()

    def _report(self, rules: Rules) -> Report:
        """Return the checker's verdict on what was recorded so far and on what the server holds."""
        connections = Connections(self.server.url)
        try:
            return check(history.read(self._folder), audit(connections, NAMESPACE), rules)
        finally:
            connections.close()

    def totals(self) -> Counter[str]:
        """Return what the server has counted since the queue was made; 0 for what never happened."""
        return Counter(self.queue.totals())

    def unknowns(self) -> int:
        """Return how many enqueues of the producers ended without their fate being known."""
        return self.count("U")

    def warnings(self, text: str) -> int:
        """Return how many lines of the actors' logs hold this."""
        return sum(text in line for actor in self.actors for line in actor.said().splitlines())

    def story(self) -> str:
        """Return what a failed scenario is judged by: the last entries of the journal, and all logs."""
        lines = [f"{e.word} job {e.n} in {e.pid} ({e.detail})" for e in self.journal()[-40:]]
        logs = [f"--- process {actor.pid}\n{actor.said()[-3000:]}" for actor in self.actors]
        return "\n".join([*lines, *logs])

    def close(self) -> None:
        """End every process of the scene."""
        for actor in self.actors:
            if actor.running():
                actor.kill9()
        self.app.close()
        self.queue.close()
