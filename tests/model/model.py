"""The small model that histories are compared with: each job is in one place, and the moves between them.

It knows no Redis: a job is a record with its place, a claim is valid while it names the record's
fence, and that is all there is to it.
"""

from collections import Counter
from dataclasses import dataclass, field

IN_STREAM = ("waiting", "running", "released")
ENDED = ("done", "cancelled", "purged")
MAX_FAILURES = 3


@dataclass
class Record:
    """One job as it ought to be."""

    id: str
    kind: str
    body: bytes
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

    @property
    def order(self) -> tuple[int, int]:
        """Where its entry stands in the stream."""
        ms, _, seq = self.entry.partition("-")
        return int(ms), int(seq)

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
            return self.keys[record.key]
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

    def leave(self, one: Record, place: str) -> None:
        """Take a job out of the stream, or of where it waits, to another place."""
        one.place, one.entry, one.holder, one.deliveries, one.marks, one.marked_at = place, "", "", 0, 0, 0
        if place in (*ENDED, "dead"):
            if self.keys.get(one.key) == one.id:
                del self.keys[one.key]
            self.totals[place] += 1

    def replay(self, one: Record, entry: str) -> None:
        """Put a dead job back on the stream, with fresh attempts and its key."""
        one.place, one.entry, one.failures, one.generation = "waiting", entry, 0, 1
        self.totals["replayed"] += 1
        if one.key:
            self.keys[one.key] = one.id

    def lose_group(self) -> None:
        """Forget all deliveries, as the server does with its group."""
        self.stale |= {one.entry for one in self.at("released")}
        for one in self.at(*IN_STREAM):
            one.place, one.holder, one.deliveries, one.marks = "waiting", "", 0, None
