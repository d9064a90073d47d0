"""The small model that histories are compared with: each job is in one place, and the moves between them.

It knows no Redis: a job is a record with its place, a claim is valid while it names the record's
fence, and that is all there is to it.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from streamjobs.core.job import LATEST, UNTIL_STARTED

MODES: dict[str, dict[str, Any]] = {
    "": {},
    "k": {},
    "l": {},
    "s": {"dedupe_mode": UNTIL_STARTED},
    "n": {"dedupe_mode": LATEST},
    "w": {"dedupe_window_ms": 300_000},
}
"""The dedupe keys of these histories, and what the mode of each is in a meta."""
IN_STREAM = ("waiting", "running", "released")
ENDED = ("done", "cancelled", "purged")
MAX_FAILURES = 3


@dataclass
class Record:
    """One job as it ought to be."""

    id: str
    kind: str
    body: bytes
    """As its entry or its envelope has it."""
    key: str
    place: str = "waiting"
    entry: str = ""
    holder: str = ""
    deliveries: int = 0
    silent: bool = False
    due: int = 0
    retrying: bool = False
    failures: int = 0
    generation: int = 0
    marks: int | None = 0
    """Unsettled starts of this entry; None when a lost group made them uncertain."""
    marked_at: int = 0
    """The delivery that was marked last."""
    own: bytes = b""
    """The arguments that the last start had; empty for those of the entry."""
    newer: int = 0
    """How many starts took newer arguments."""
    newest: tuple[bytes, int] | None = None
    """What came since the last start, and when it is due."""

    @property
    def order(self) -> tuple[int, int]:
        """Where its entry stands in the stream."""
        ms, _, seq = self.entry.partition("-")
        return int(ms), int(seq)

    @property
    def latest(self) -> bool:
        """Whether newer arguments replace its own."""
        return MODES[self.key].get("dedupe_mode") == LATEST

    def arguments(self) -> bytes:
        """Return what it runs with, or would start with next."""
        if self.newest and self.place in ("waiting", "released", "scheduled"):
            return self.newest[0]
        return self.own or self.body

    def state(self) -> str:
        """Return what a lookup says of it."""
        if self.place == "released":
            return "waiting"
        return "finished" if self.place in ENDED else self.place


@dataclass
class Model:
    """All jobs of a queue, who holds which dedupe key, and what the counters must say."""

    jobs: dict[str, Record] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    totals: Counter[str] = field(default_factory=Counter)
    stale: set[str] = field(default_factory=set)
    """Entries that the set of released ones still names after the group was lost."""

    def at(self, *places: str) -> list[Record]:
        """Return the jobs in these places; those in the stream in its order."""
        found = [one for one in self.jobs.values() if one.place in places]
        return sorted(found, key=lambda one: one.order) if set(places) <= set(IN_STREAM) else found

    def add(self, record: Record) -> str:
        """Let a job in unless its key is held; return the id that the caller must be told."""
        if record.key and record.key in self.keys:
            holder = self.jobs[self.keys[record.key]]
            if record.latest and holder.kind == record.kind:
                holder.newest = record.body, record.due
            return holder.id
        self.jobs[record.id] = record
        self.totals["enqueued"] += 1
        if record.key:
            self.keys[record.key] = record.id
        return record.id

    def standing(self, entry: str) -> Record | None:
        """Return the job whose entry this is."""
        return next((one for one in self.at(*IN_STREAM) if one.entry == entry), None)

    def held(self, entry: str, consumer: str, deliveries: int) -> Record | None:
        """Return the job that this fence holds."""
        one = self.standing(entry)
        if one and one.place == "running" and (one.holder, one.deliveries) == (consumer, deliveries):
            return one
        return None

    def deliver(self, one: Record, consumer: str, deliveries: int) -> None:
        """Let a consumer have it."""
        one.place, one.holder, one.deliveries, one.silent = "running", consumer, deliveries, False
        if deliveries > 1:
            self.stale.discard(one.entry)

    def start(self, one: Record) -> None:
        """Hear that its handler is about to begin."""
        if MODES[one.key].get("dedupe_mode") == UNTIL_STARTED:
            self.free(one)
        if one.newest:
            one.own, one.newer, one.newest = one.newest[0], one.newer + 1, None

    def free(self, one: Record) -> None:
        """Give its key back, if it has it."""
        if self.keys.get(one.key) == one.id:
            del self.keys[one.key]

    def leave(self, one: Record, place: str) -> None:
        """Take a job out of the stream, or of where it waits, to another place."""
        one.place, one.entry, one.holder, one.deliveries, one.marks, one.marked_at = place, "", "", 0, 0, 0
        if place in (*ENDED, "dead"):
            # A window outlives its job, but not what an operator or its handler calls off.
            if place in ("cancelled", "purged") or not MODES[one.key].get("dedupe_window_ms"):
                self.free(one)
            self.totals[place] += 1

    def follow(self, one: Record, follower: Record) -> None:
        """Add the job that follows one that has ended, with its key unless that has passed to another."""
        self.jobs[follower.id] = follower
        self.totals["enqueued"] += 1
        self.keys.setdefault(one.key, follower.id)

    def replay(self, one: Record, entry: str) -> None:
        """Put a dead job back on the stream, with fresh attempts and its key."""
        one.place, one.entry, one.failures, one.generation = "waiting", entry, 0, 1
        one.body, one.own, one.newest = one.own or one.body, b"", None
        self.totals["replayed"] += 1
        if one.key:
            self.keys[one.key] = one.id

    def lose_group(self) -> None:
        """Forget all deliveries, as the server does with its group."""
        self.stale |= {one.entry for one in self.at("released")}
        for one in self.at(*IN_STREAM):
            one.place, one.holder, one.deliveries, one.marks = "waiting", "", 0, None
