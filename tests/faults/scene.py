"""Histories made by hand, for the checker's own tests: who did what, told in a few words, with a clock of its own."""

from collections import Counter
from typing import Any

import msgspec

from tests.faults.audit import Live, Row, Snapshot
from tests.faults.history import (
    Answered,
    Began,
    Called,
    Did,
    Died,
    Ended,
    Event,
    Guarded,
    History,
    Outcome,
    Process,
    Settled,
    Signalled,
    Started,
    digest,
)
from tests.faults.judge_runs import COUNTED

QUEUE = "mail"
KIND = "send"


class Scene:
    """Processes and a server that keeps the counters. Its clock is the monotonic one, in ms, and moves
    10 ms with each event."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.ahead = 0.0
        """By so many seconds the server's clock is."""
        self.processes: dict[str, Process] = {}
        self.live: list[Live] = []
        self.dead: list[Row] = []
        self.totals: Counter[str] = Counter()
        self.holders: dict[str, str] = {}
        self.leftovers: list[str] = []
        self._calls = self._runs = 0

    def history(self) -> History:
        return list(self.processes.values())

    def snapshot(self) -> Snapshot:
        return Snapshot(self.live, self.dead, {QUEUE: dict(self.totals)}, self.holders, self.leftovers)

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def note(self, who: str, event: Event) -> None:
        """Let a process write an event down; the clock moves on."""
        self.process(who).events.append(event)
        self.now += 0.01

    def process(self, who: str) -> Process:
        """Return a process, which begins when it is first named."""
        if who not in self.processes:
            pid = 100 + len(self.processes)
            self.processes[who] = Process(who, pid, who, [Began(self.now, pid, who)])
        return self.processes[who]

    def call(self, body: str, **fields: Any) -> int:
        self._calls += 1
        self.note("producer", Called(self.now, self._calls, KIND, QUEUE, digest(body.encode()), **fields))
        return self._calls

    def answer(self, call: int, outcome: Any, job: str = "", *, duplicate: bool = False) -> None:
        self.note("producer", Answered(self.now, call, outcome, job, duplicate))
        self.totals["enqueued"] += outcome == "ok" and not duplicate

    def new_id(self, prefix: str = "") -> str:
        """Return an id that the server would give now."""
        return f"{QUEUE}:{prefix}{round((self.now + self.ahead) * 1000)}-0"

    def enqueue(self, body: str, **fields: Any) -> str:
        """Enqueue a job with success; return its id."""
        call = self.call(body, **fields)
        job = self.new_id("d" if fields.get("delay_ms") else "")
        self.answer(call, "ok", job)
        return job

    def duplicate(self, job: str, body: str, **fields: Any) -> None:
        """Enqueue what the key of a job refuses."""
        self.answer(self.call(body, **fields), "ok", job, duplicate=True)

    def follow(self) -> str:
        """Let the server make a job that nobody is told of; return its id."""
        self.totals["enqueued"] += 1
        return self.new_id()

    def start(self, who: str, job: str, body: str, entry: str = "", **fields: Any) -> int:
        """Start a handler; return the number of the run."""
        self._runs += 1
        fields = {"claimed": self.now - 0.001, **fields}
        self.note(who, Started(self.now, self._runs, job, KIND, digest(body.encode()), entry or job, **fields))
        return self._runs

    def did(self, who: str, run: int) -> None:
        self.note(who, Did(self.now, run))

    def guard(self, who: str, run: int, effect: str, *steps: Any, first: bool = False) -> None:
        """Let a run take steps with a guarded effect."""
        for step in steps:
            self.note(who, Guarded(self.now, run, effect, step, first))

    def end(self, who: str, run: int, outcome: Outcome = "ok") -> None:
        self.note(who, Ended(self.now, run, outcome))

    def settle(self, who: str, move: str, job: str, entry: str = "", **fields: Any) -> None:
        """Send a move, and note the reply 5 ms later; the counters grow if it counted."""
        fields = {"deliveries": 1, **fields}
        word = fields.get("word", "OK")
        self.note(who, Settled(self.now + 0.005, self.now, move, job, entry or job, **fields))
        if name := COUNTED.get(move):
            self.totals[name] += word not in ("LOST", "UNSURE", "GONE")

    def operate(self, move: str, job: str, word: str = "OK") -> None:
        """Cancel, replay or purge a job as an operator does."""
        event = Settled(self.now + 0.005, self.now, move, job, "", 0, word)
        self.note("operator", event)
        self.totals[COUNTED[move]] += word not in ("UNSURE", "GONE")

    def live_through(
        self, job: str, body: str, entry: str = "", *, who: str = "worker-1", outcome: Outcome = "ok", **fields: Any
    ) -> None:
        """Start a handler, let it have its effect, and settle it as that outcome asks."""
        move = {"ok": "complete", "error": "retry", "permanent": "bury", "snooze": "snooze", "cancelled": "release"}
        run = self.start(who, job, body, entry, **fields)
        self.did(who, run)
        self.end(who, run, outcome)
        self.settle(who, move[outcome], job, entry, deliveries=fields.get("deliveries", 1))

    def bury(self, job: str, body: str, reason: str = "permanent", **fields: Any) -> None:
        """Let a job lie in the dead stream."""
        row = Row(job, KIND, digest(body.encode()), reason, "ValueError: no", 1, round(self.now * 1000))
        self.dead.append(msgspec.structs.replace(row, **fields))

    def place(self, job: str, place: str, body: str) -> None:
        """Let a job be somewhere on the server."""
        self.live.append(Live(job, place, KIND, digest(body.encode())))

    def kill(self, who: str) -> None:
        """Kill a process; the harness notes it."""
        pid = self.process(who).pid
        self.note("harness", Signalled(self.now, pid, "SIGKILL"))
        self.note("harness", Died(self.now, pid, -9))
