"""What the tests of the scripts share: one queue on one backend, spoken to by the library's own requests."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from streamjobs.client import Connections
from streamjobs.core.codec import decode_meta, encode_meta
from streamjobs.core.job import Claim, Job, Meta
from streamjobs.protocol import intake, leases, letters, settle, upkeep
from streamjobs.protocol import lanes as flow
from streamjobs.protocol.calls import Call, Command, Request, Word
from streamjobs.protocol.keys import QueueKeys

T = TypeVar("T")

CLOCK = 1_800_000_000_000
"""An instant for scripts that take a clock: every count of a test goes into one minute."""
LEASE_MS = 15_000
KINDS = ("mail", "web")


class Store:
    """A queue under test. Short names for what tests do again and again; nothing here decides anything."""

    def __init__(self, url: str, namespace: str) -> None:
        self.connections = Connections(url)
        self.executor = self.connections.sync()
        self.keys = QueueKeys(namespace, "q")
        self._batch = 0

    def close(self) -> None:
        self.connections.close()

    def run(self, request: Request[T]) -> T:
        return self.executor.run(request)

    def command(self, *words: Word) -> Any:
        return self.run(Command(words, lambda reply: reply))

    def words(self, call: Call[Any]) -> Any:
        """Run a call and return its reply as the server sent it."""
        return self.run(Call(call.script, call.keys, call.args, lambda reply: reply))

    # How jobs get in.

    def batch(self, producer: str = "p", token: str = "c0ffee") -> intake.Batch:
        """Return a batch that comes after all earlier ones."""
        self._batch += 1
        return intake.Batch(producer, self._batch, token)

    def enqueue(self, *jobs: Job, clock: str = "") -> list[str]:
        return self.run(intake.enqueue(self.keys, jobs, self.batch(), clock)).ids(len(jobs))

    def schedule(self, *jobs: Job, clock: str = "") -> list[str]:
        return self.run(intake.schedule(self.keys, jobs, self.batch(), clock)).ids(len(jobs))

    def add(self, jobs: int, kind: str = "mail") -> list[str]:
        return self.enqueue(*(job(n, kind) for n in range(jobs)))

    # How workers come to them.

    def make_group(self) -> None:
        self.run(leases.join(self.keys, LEASE_MS))

    def lose_group(self) -> None:
        self.command("XGROUP", "DESTROY", self.keys.stream, "workers")

    def claim(self, consumer: str = "a", count: int = 1000) -> list[Claim]:
        """Read fresh entries."""
        reply = self.run(leases.read([self.keys.stream], consumer, count, None))
        return leases.claims(reply[0][1], 0.0) if reply else []

    def started(self, jobs: int, kind: str = "mail", consumer: str = "a") -> list[Claim]:
        """Enqueue jobs and claim them."""
        self.add(jobs, kind)
        return self.claim(consumer)

    def silence(self, claims: Iterable[Claim], consumer: str = "a", ms: int = 60_000) -> None:
        """Let claims look silent for `ms`, as after a crash of their holder."""
        entries = [claim.entry for claim in claims]
        if entries:
            self.command("XCLAIM", self.keys.stream, "workers", consumer, 0, *entries, "IDLE", ms, "JUSTID")

    def reclaim(self, consumer: str = "b", most: int = 1000, cursor: str = "-") -> leases.Swept:
        return self.run(leases.reclaim(self.keys, consumer, LEASE_MS, cursor, most, 0.0))

    def sweep(self, consumer: str = "b", most: int = 1000) -> list[Claim]:
        """Follow a sweep to its end."""
        claims: list[Claim] = []
        cursor = leases.SWEEP_BEGIN
        while True:
            swept = self.reclaim(consumer, most, cursor)
            claims += swept.claims
            cursor = swept.cursor
            if cursor == leases.SWEEP_BEGIN:
                return claims

    def retaken(self, claims: Sequence[Claim], holder: str = "a", consumer: str = "b") -> list[Claim]:
        """Let the holder of these claims crash, and another consumer take them over."""
        self.silence(claims, holder)
        return self.sweep(consumer)

    def release(
        self, *claims: Claim, consumer: str = "a", mark: int = 0, alone: bool = False, quiet: bool = False
    ) -> leases.Words:
        items = [leases.Giveback(claim.entry, claim.deliveries, mark, alone, quiet) for claim in claims]
        return self.run(leases.release(self.keys, consumer, LEASE_MS, items))

    def take(self, consumer: str = "b", most: int = 100) -> list[Claim]:
        return self.run(leases.take(self.keys, consumer, most, 0.0))

    def renew(self, *claims: Claim, consumer: str = "a") -> leases.Words:
        items = [leases.Renewal(claim.entry, claim.deliveries, job_of(claim)) for claim in claims]
        return self.run(leases.renew(self.keys, consumer, items))

    def start(self, *claims: Claim, consumer: str = "a", key: str = "") -> "list[leases.Begun | None]":
        """Say that handlers begin; `key` is given back, without one newer arguments are taken."""
        items = [leases.Start(claim.entry, claim.deliveries, job_of(claim), key) for claim in claims]
        return self.run(leases.start(self.keys, consumer, items))

    def suspect(self, *claims: Claim, consumer: str = "a", clock: str = "") -> leases.Words:
        return self.run(leases.suspect(self.keys, consumer, claims, clock))

    # How limits hold.

    def admit(
        self,
        *claims: Claim,
        lanes: Sequence[str] = ("c:q",),
        limits: dict[str, str] | None = None,
        consumer: str = "a",
        clock: str = "",
        mark: int = 0,
    ) -> list[str]:
        """Ask for the start of claims that have the same lanes; a limit that is not given is 1."""
        given = {lanes_base(lane): "1" for lane in lanes} | (limits or {})
        entrants = [
            flow.Entrant(one.entry, one.deliveries, flow.order(job_of(one)), lanes, mark, one.starts) for one in claims
        ]
        return self.run(flow.admit(self.keys, consumer, given, entrants, clock)).words

    def vacate(self, *claims: Claim, lanes: Sequence[str] = ("c:q",), ring: bool = True, clock: str = "") -> int:
        leavers = [flow.Leaver(one.entry, one.deliveries, lanes) for one in claims]
        return self.run(flow.vacate(self.keys, leavers, ring=ring, clock=clock))

    def limit(self, base: str, value: str | None) -> None:
        cursor = self.run(flow.limit(self.keys, base, value))
        while cursor:
            cursor = self.run(flow.limit(self.keys, base, value, cursor))

    # How jobs are settled.

    def complete(self, *claims: Claim) -> leases.Words:
        """Complete claims of one kind that own nothing beside their entry."""
        group = settle.Finished("mail", plain=[claim.entry for claim in claims])
        return self.run(settle.complete(self.keys, [group]))

    def complete_full(self, *endings: settle.Ending, clock: str = "") -> leases.Words:
        return self.run(settle.complete(self.keys, [settle.Finished("mail", full=endings)], clock))

    def retry(self, *items: settle.Postponement, consumer: str = "a", clock: str = "") -> leases.Words:
        return self.run(settle.retry(self.keys, consumer, [("mail", {}, items)], clock))

    def snooze(self, *items: settle.Postponement, consumer: str = "a", clock: str = "") -> leases.Words:
        return self.run(settle.snooze(self.keys, consumer, [("mail", {}, items)], clock))

    def bury(self, *items: settle.Death, consumer: str = "a", clock: str = "") -> leases.Words:
        return self.run(settle.bury(self.keys, consumer, [("mail", {}, items)], clock))

    def cancel(self, *jobs: str) -> list[str]:
        """Cancel as an operator."""
        return self.run(settle.cancel(self.keys, "", [settle.Ending(b"", 0, one) for one in jobs]))

    def cancel_owned(self, job: str, key: str) -> list[str]:
        """Cancel a job that may hold a dedupe key, as an operator."""
        return self.run(settle.cancel(self.keys, "", [settle.Ending(b"", 0, job, key)]))

    def promote(
        self, consumer: str = "a", *, rung: bool = False, most: int = 200, room: int = 100_000, clock: str = ""
    ) -> upkeep.Promoted:
        call = upkeep.promote(self.keys, consumer, rung=rung, note="", room=room, most=most, clock=clock)
        return self.run(call)

    # What operators do.

    def replay(
        self, job: str, *, key: str = "", body: bytes | None = None, newer: int | None = None, **mode: Any
    ) -> list[str]:
        meta = Meta(id=job, generation=1, dedupe_key=key, **mode)
        entry, window_ms = self.dead_entry(job), meta.dedupe_window_ms
        item = letters.Replay(entry, job, encode_meta(meta), key, body, window_ms, newer)
        return self.run(letters.replay(self.keys, [item]))

    def purge(self, job: str, key: str = "") -> list[str]:
        return self.run(letters.purge(self.keys, [letters.Purge(self.dead_entry(job), job, key)]))

    def lookup(self, job: str) -> dict[str, bytes]:
        return self.run(upkeep.lookup(self.keys, job))

    def state(self, job: str) -> str:
        return self.lookup(job)["state"].decode()

    # What is there.

    def entries(self) -> list[Any]:
        return self.command("XRANGE", self.keys.stream, "-", "+")

    def depth(self) -> int:
        return self.command("XLEN", self.keys.stream)

    def pending(self) -> dict[bytes, tuple[bytes, int]]:
        """Return holder and delivery count of each pending entry."""
        rows = self.command("XPENDING", self.keys.stream, "workers", "-", "+", 100_000)
        return {row[0]: (row[1], row[3]) for row in rows}

    def raw_hash(self, key: str) -> dict[str, bytes]:
        flat = self.command("HGETALL", key)
        return {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}

    def hash(self, key: str) -> dict[str, str]:
        return {field: value.decode() for field, value in self.raw_hash(key).items()}

    def totals(self) -> dict[str, int]:
        return {field: int(value) for field, value in self.hash(self.keys.totals).items()}

    def minute(self, clock: int = CLOCK) -> dict[str, int]:
        """Return the counters of the minute of this clock."""
        return {k: int(v) for k, v in self.hash(self.keys.minute(clock // 60_000)).items()}

    def dead_rows(self) -> list[dict[str, bytes]]:
        rows = self.command("XRANGE", self.keys.dead, "-", "+")
        return [{f[i].decode(): f[i + 1] for i in range(0, len(f), 2)} for _, f in rows]

    def dead_entry(self, job: str) -> str:
        return (self.command("HGET", self.keys.dead_ids, job) or b"0-1").decode()

    def due(self, key: str) -> dict[str, int]:
        flat = self.command("ZRANGE", key, 0, -1, "WITHSCORES")
        return {flat[i].decode(): int(float(flat[i + 1])) for i in range(0, len(flat), 2)}

    def left(self) -> set[str]:
        """Return the names of this queue's keys that hold a trace of a job, settled ones' own included."""
        names = "stream released suspects moved scheduled retries bodies dead dead:ids".split()
        sizes = {
            "stream": "XLEN",
            "dead": "XLEN",
            "released": "SCARD",
            "scheduled": "ZCARD",
            "retries": "ZCARD",
        }
        found = {name for name in names if self.command(sizes.get(name, "HLEN"), self.keys.base + name)}
        cursor: bytes = b"0"
        while True:
            cursor, keys = self.command("SCAN", cursor, "MATCH", f"{self.keys.base}dedupe:*", "COUNT", 1000)
            found |= {key.decode().removeprefix(self.keys.base) for key in keys}
            if cursor == b"0":
                return found


def job(n: int = 0, kind: str = "mail", **meta: Any) -> Job:
    """Return a job to enqueue; keywords are fields of its meta."""
    return Job(kind, b'{"n":%d}' % n, "q", meta=Meta(**meta)) if meta else Job(kind, b'{"n":%d}' % n, "q")


def delayed(n: int = 0, *, delay_ms: int = 0, at_ms: int = 0, kind: str = "mail", **meta: Any) -> Job:
    """Return a job to schedule."""
    return Job(kind, b'{"n":%d}' % n, "q", delay_ms=delay_ms, at_ms=at_ms, meta=Meta(**meta))


def job_of(claim: Claim) -> str:
    """Return the local id of a claim's job."""
    return decode_meta(claim.meta).id or claim.entry.decode()


def ending(claim: Claim, **owned: Any) -> settle.Ending:
    """Return what settles a claim; keywords are what else belongs to its job."""
    return settle.Ending(claim.entry, claim.deliveries, job_of(claim), **owned)


def later(claim: Claim, delay_ms: int = 1000, key: str = "", **meta: Any) -> settle.Postponement:
    """Return what sends a claim to run again later, with its job's id in the meta as workers write it."""
    carried = encode_meta(Meta(id=job_of(claim), failures=1, dedupe_key=key, **meta))
    return settle.Postponement(ending(claim, dedupe_key=key), delay_ms, carried)


def death(claim: Claim, reason: str = "permanent", error: str = "ValueError: no", **owned: Any) -> settle.Death:
    """Return what buries a claim."""
    return settle.Death(ending(claim, **owned), reason, error, 1, b'[{"e":"no"}]')


def lanes_base(lane: str) -> str:
    """Return the name of a lane without its key."""
    return " ".join(lane.split(" ")[:2])
