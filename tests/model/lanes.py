"""Random histories of lanes: workers that start, end, crash and wake as zombies, operators, lost keys.

The model is the workers' own log: who runs, by what the server let start, and until when that counts.
"""

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from streamjobs.core.job import Claim
from tests.model.history import History
from tests.store.support import CLOCK, LEASE_MS, job_of, later

CONSUMERS = st.sampled_from(["a", "b", "c"])
PICK = st.integers(0, 999)
WAITS = st.sampled_from([1, 10, 26, 100, 1000, LEASE_MS, LEASE_MS + 1])
ENDS = "finish finish finish finish die_after_settling fail crash crash give_back cancel_running".split()
DEEDS = st.sampled_from(["enqueue", "fetch", "fetch", "fetch", "take", "take", "wait", "wait", "cancel", "lose", *ENDS])
BURST, INTERVAL_US = 2, 50_000
LIMITS = {"c:k:mail account": "1", "c:k:mail": "2", "c:q": "3", "r:q": f"{BURST} {INTERVAL_US}"}
PLACES = {name: int(value) for name, value in LIMITS.items() if name.startswith("c")}


@dataclass
class Run:
    """One start that the server allowed."""

    consumer: str
    claim: Claim
    lanes: list[str]
    until: float = float("inf")
    """Clock at which it counts no more: its holder has lost the job without a word, and a lease has passed."""


@dataclass
class World:
    """What workers and operators know."""

    lanes: dict[str, list[str]] = field(default_factory=dict)
    """Of each job that has not ended."""
    runs: dict[str, Run] = field(default_factory=dict)
    parked: set[str] = field(default_factory=set)
    zombies: list[Run] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    """The clock at each start under the rate."""


class Lanes(History):
    """One queue with a limit per key, per kind and of its own; each job has some of the lanes."""

    WANTED = (
        "parked",
        "woken",
        "taken over",
        "zombie",
        "settled without a word",
        "cancelled",
        "key lost",
        "given back",
    )

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.clock = CLOCK
        self.whole = True
        """No key was lost that order, or who runs, depends on."""

    @initialize(jobs=st.integers(3, 8))
    def begin(self, jobs: int) -> None:
        self.store.make_group()
        self.enqueue("a", 0x5A5, jobs)

    @rule(deed=DEEDS, consumer=CONSUMERS, pick=PICK, some=st.integers(1, 4), wait=WAITS)
    def step(self, deed: str, consumer: str, pick: int, some: int, wait: int) -> None:
        if deed == "wait":
            self.wait(wait)
        elif deed in ENDS:
            if self.world.runs:
                runs = list(self.world.runs.values())
                getattr(self, deed)(runs[pick % len(runs)], consumer)
        else:
            getattr(self, deed)(consumer, pick, some)

    # Deeds of workers.

    def enqueue(self, _: str, pick: int, some: int) -> None:
        for n, one in enumerate(self.store.add(some)):
            which = pick // (n + 1)
            lanes = [f"c:k:mail account {which % 2}", "c:k:mail", "c:q", *(["r:q"] if which % 3 == 0 else [])]
            self.world.lanes[one] = lanes if which % 5 else lanes[1:]

    def fetch(self, consumer: str, _: int, some: int) -> None:
        for claim in self.store.claim(consumer, some):
            self.admit(consumer, claim)

    def take(self, consumer: str, _: int, some: int) -> None:
        for claim in self.store.take(consumer, some):
            self.seen["woken"] += job_of(claim) in self.world.parked
            self.admit(consumer, claim)

    def admit(self, consumer: str, claim: Claim) -> None:
        job = job_of(claim)
        lanes = self.world.lanes[job]
        mark = -1 if claim.deliveries == 1 else 1
        [word] = self.store.admit(
            claim, lanes=lanes, limits=LIMITS, consumer=consumer, clock=str(self.clock), mark=mark
        )
        if word == "GO":
            self.world.parked.discard(job)
            self.expect_in_order(job, again=claim.deliveries > 1)
            self.world.runs[job] = Run(consumer, claim, lanes)
            if "r:q" in lanes:
                self.world.starts.append(self.clock)
        else:
            assert word == "PARKED"
            self.world.parked.add(job)
            self.seen["parked"] += 1

    def expect_in_order(self, job: str, *, again: bool) -> None:
        """A job that starts for the first time passes nobody who waits longer for the same key."""
        key = self.world.lanes[job][0]
        if not self.whole or again or not key.startswith("c:k:mail account"):
            return
        passed = [one for one in self.world.parked if self.world.lanes[one][0] == key and _order(one) < _order(job)]
        assert not passed, f"{job} passes {passed} in {key}"

    def finish(self, run: Run, _: str) -> None:
        self.store.complete(run.claim)
        self.end(run)
        self.store.vacate(run.claim, lanes=_slots(run.lanes), clock=str(self.clock))

    def die_after_settling(self, run: Run, _: str) -> None:
        """Its slots are never given up: they count until the server frees them."""
        self.seen["settled without a word"] += 1
        self.store.complete(run.claim)
        self.end(run)

    def fail(self, run: Run, consumer: str) -> None:
        job = job_of(run.claim)
        self.store.retry(later(run.claim, 100), consumer=run.consumer, clock=str(self.clock))
        self.store.vacate(run.claim, lanes=_slots(run.lanes), clock=str(self.clock))
        self.end(run)
        self.world.lanes[job] = run.lanes

    def crash(self, run: Run, consumer: str) -> None:
        """Its holder falls silent, and another takes over; then it wakes up and ends its run, too late."""
        self.seen["taken over"] += 1
        self.store.silence([run.claim], run.consumer)
        claims = self.store.sweep(consumer)
        # What was given back looks silent too.
        assert run.claim.entry in [one.entry for one in claims]
        del self.world.runs[job_of(run.claim)]
        for claim in claims:
            self.admit(consumer, claim)
        if run.claim.entry.endswith((b"0", b"2", b"4")):
            self.seen["zombie"] += 1
            self.store.vacate(run.claim, lanes=_slots(run.lanes), clock=str(self.clock))

    def give_back(self, run: Run, _: str) -> None:
        """As when a worker stops: whoever takes it goes on in its place."""
        self.seen["given back"] += 1
        self.store.release(run.claim, consumer=run.consumer, mark=1)
        del self.world.runs[job_of(run.claim)]
        self.world.parked.add(job_of(run.claim))

    def cancel_running(self, run: Run, _: str) -> None:
        """It runs on until its worker learns of it, and that worker says so."""
        self.store.cancel(job_of(run.claim))
        self.end(run)
        self.store.vacate(run.claim, lanes=_slots(run.lanes), clock=str(self.clock))

    def end(self, run: Run) -> None:
        job = job_of(run.claim)
        del self.world.runs[job]
        del self.world.lanes[job]

    # Others.

    def cancel(self, _: str, pick: int, __: int) -> None:
        waiting = [one for one in self.world.lanes if one not in self.world.runs]
        if waiting:
            job = waiting[pick % len(waiting)]
            self.seen["cancelled"] += job in self.world.parked
            self.store.cancel(job)
            self.world.parked.discard(job)
            del self.world.lanes[job]

    def lose(self, _: str, pick: int, __: int) -> None:
        """Rare; never the slots: who runs is known nowhere else."""
        if pick % 5 == 0:
            name = ("line", "wake", "gone", "limits", "released")[pick // 5 % 5]
            self.seen["key lost"] += 1
            self.whole = self.whole and name not in ("line", "limits")
            self.store.command("DEL", getattr(self.store.keys, name))

    def wait(self, ms: int) -> None:
        self.clock += ms
        self.store.promote(clock=str(self.clock))

    # What must hold.

    @invariant()
    def no_lane_has_more_than_its_places(self) -> None:
        count = Counter(lane for run in self.world.runs.values() for lane in run.lanes)
        for lane, running in count.items():
            most = PLACES.get(" ".join(lane.split(" ")[:2]))
            assert most is None or running <= most, f"{running} run in {lane}"

    @invariant()
    def no_rate_is_exceeded(self) -> None:
        starts = self.world.starts
        for first in range(len(starts)):
            for last in range(first, len(starts)):
                allowed = BURST + (starts[last] - starts[first]) * 1000 // INTERVAL_US
                assert last - first + 1 <= allowed, starts[first : last + 1]

    def teardown(self) -> None:
        try:
            self.drain()
        finally:
            super().teardown()

    def drain(self) -> None:
        """Whatever has happened: in time every job that is left starts and ends."""
        for _ in range(60):
            for run in list(self.world.runs.values()):
                self.finish(run, "")
            parked = [entry for entry, (holder, _) in self.store.pending().items() if holder == b"parked"]
            self.store.silence([Claim(entry, b"", b"", b"") for entry in parked], "parked")
            self.wait(LEASE_MS)
            for fetch in (self.take, self.fetch):
                fetch("a", 0, 10)
                self.no_lane_has_more_than_its_places()
            for claim in self.store.sweep("a"):
                self.admit("a", claim)
            self.no_lane_has_more_than_its_places()
            if not self.world.lanes:
                break
        assert not self.world.lanes, f"stuck: {self.world.lanes}, parked {self.world.parked}"
        for _ in range(3):
            self.wait(LEASE_MS)
            for _ in range(20):
                self.store.promote(clock=str(self.clock))
        left = {name: self.store.command("ZRANGE", getattr(self.store.keys, name), 0, -1) for name in ("line", "slots")}
        assert left == {"line": [], "slots": []}


def _slots(lanes: list[str]) -> list[str]:
    return [lane for lane in lanes if lane.startswith("c")]


def _order(job: str) -> tuple[int, int]:
    ms, _, seq = job.partition("-")
    return int(ms), int(seq)
