"""What can happen at one queue: each deed is done on the server and in the model, and both must answer alike.

Every claim that ever was stays at hand, so that any of them can be used as late as it pleases.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from streamjobs.core.codec import decode_meta, encode_meta
from streamjobs.core.job import Claim, Job
from streamjobs.protocol import intake, leases, settle, upkeep
from streamjobs.protocol.calls import Call
from tests.model.model import ENDED, IN_STREAM, MAX_FAILURES, MODES, Model, Record
from tests.store.support import CLOCK, Store, death, ending, job, job_of, later


class Story:
    """One queue and the model of it; `seen` counts what the story came to."""

    def __init__(self, store: Store, seen: Counter[str]) -> None:
        self.store = store
        self.seen = seen
        self.model = Model()
        self.clock = CLOCK
        self.claims: list[tuple[str, Claim]] = []
        self.begun: dict[tuple[bytes, str, int], int] = {}
        """Claims whose handlers began, by fence: how many starts had taken newer arguments then."""
        self._bodies = 0
        self._last: tuple[Call[Any], Any] | None = None

    # Producers.

    def enqueue(self, keys: Sequence[str], _: int = 0) -> None:
        jobs = [self._job(key) for key in keys]
        call = intake.enqueue(self.store.keys, jobs, self.store.batch(), str(self.clock))
        for one, given in zip(jobs, self._send(call, len(jobs)), strict=True):
            self._admit(Record(given, one.kind, one.body, one.meta.dedupe_key, entry=given))

    def schedule(self, keys: Sequence[str], delay: int) -> None:
        jobs = [msgspec.structs.replace(self._job(key), delay_ms=delay) for key in keys]
        call = intake.schedule(self.store.keys, jobs, self.store.batch(), str(self.clock))
        due = self.clock + delay
        for one, given in zip(jobs, self._send(call, len(jobs)), strict=True):
            self._admit(Record(given, one.kind, one.body, one.meta.dedupe_key, "scheduled", due=due))

    def send_again(self, _: Sequence[str], __: int) -> None:
        if self._last:
            call, reply = self._last
            assert self.store.words(call) == reply

    def _job(self, key: str) -> Job:
        self._bodies += 1
        kind = "mail" if self._bodies % 3 else "web"
        return job(self._bodies, kind, dedupe_key=key, **MODES[key]) if key else job(self._bodies, kind)

    def _send(self, call: Call[intake.Accepted], jobs: int) -> list[str]:
        reply = self.store.words(call)
        self._last = (call, reply)
        return call.decode(reply).ids(jobs)

    def _admit(self, record: Record) -> None:
        holder = self.model.jobs.get(record.id)
        self.seen["duplicate refused"] += holder is not None
        self.seen["refused by a window after the end"] += holder is not None and holder.place in (*ENDED, "dead")
        assert self.model.add(record) == record.id

    # Workers, fetching.

    def claim(self, consumer: str, count: int = 100) -> None:
        claims = self.store.claim(consumer, count)
        expected = self.model.at("waiting")[:count]
        assert [job_of(claim) for claim in claims] == [one.id for one in expected]
        self._delivered(consumer, claims, 1)

    def take(self, consumer: str, _: int) -> None:
        claims = self.store.take(consumer)
        assert {job_of(claim) for claim in claims} == {one.id for one in self.model.at("released")}
        self._delivered(consumer, claims)
        self.model.stale.clear()
        self.seen["given back and taken"] += len(claims)

    def sweep(self, consumer: str, most: int) -> None:
        claims = self.store.sweep(consumer, most)
        there = self.model.at("running", "released")
        silent = [one for one in there if one.silent or one.place == "released"]
        # From holder to holder; what was given back has one of its own.
        silent.sort(key=lambda one: (one.holder if one.place == "running" else "released", one.order))
        assert [job_of(claim) for claim in claims] == [one.id for one in silent]
        self.seen["taken over"] += len(claims)
        self._delivered(consumer, claims)

    def promote(self, ms: int) -> None:
        self.clock += ms
        due = [one for one in self.model.at("scheduled") if one.due <= self.clock]
        assert self.store.promote(clock=str(self.clock)).moved == len(due)
        moved = self.store.hash(self.store.keys.moved)
        for one in due:
            one.place, one.entry = "waiting", moved[one.id]
            self.model.totals["promoted"] += 1

    def fall_silent(self, pick: int, one: Record | None = None) -> None:
        """A crash or a freeze: from here on the claim is anybody's."""
        if running := self.model.at("running"):
            one = one or running[pick % len(running)]
            words = ("XCLAIM", self.store.keys.stream, "workers", one.holder, 0, one.entry)
            self.store.command(*words, "IDLE", 60_000, "JUSTID")
            one.silent = True

    def _delivered(self, consumer: str, claims: Sequence[Claim], deliveries: int = 0) -> None:
        for claim in claims:
            one = self.model.jobs[job_of(claim)]
            assert claim.deliveries == (deliveries or one.deliveries + 1)
            if claim.deliveries > 1 and one.marks is not None:
                assert claim.marks == one.marks
            self.model.deliver(one, consumer, claim.deliveries)
            self.claims.append((consumer, claim))

    def held(self) -> list[tuple[str, Claim]]:
        """Return the claims whose fences still hold."""
        return [(consumer, claim) for consumer, claim in self.claims if self._held(consumer, claim)]

    # Workers, settling. `one` is the job that the claim's fence holds, if it still holds any.

    def start(self, consumer: str, claim: Claim, _: int = 0) -> bool:
        """Let the handler of a claim begin, as far as it has not; return whether it runs."""
        meta, fence = decode_meta(claim.meta), (claim.entry, consumer, claim.deliveries)
        if not meta.announced or fence in self.begun:
            return True
        one = self._held(consumer, claim)
        [row] = self.store.start(claim, consumer=consumer, key="" if meta.latest else meta.dedupe_key)
        if not one:
            assert row is None
            return False
        self.seen["key freed at the start"] += not meta.latest and self.model.keys.get(one.key) == one.id
        self.seen["newest arguments taken"] += one.newest is not None
        self.model.start(one)
        assert row is not None
        assert (row.newer, row.body or claim.body) == (one.newer, one.own or one.body)
        self.begun[fence] = one.newer
        return True

    def complete(self, consumer: str, claim: Claim, _: int = 0) -> None:
        if not self.start(consumer, claim):
            return
        one, meta = self.model.standing(claim.entry.decode()), decode_meta(claim.meta)
        ran = self.begun.get((claim.entry, consumer, claim.deliveries), 0)
        # A job that owns something beside its entry takes the form that gives it back.
        item = ending(claim, dedupe_key=meta.held_key, newer=ran if meta.latest else None)
        words = self.store.complete_full(item, clock=str(self.clock)) if claim.meta else self.store.complete(claim)
        self._expect(words, one)
        self.seen["zombie's success counted"] += one is not None and self._held(consumer, claim) is None
        self.seen["success came too late"] += one is None
        if one or not claim.meta:
            # In the plain form the set forgets also what is gone.
            self.model.stale.discard(claim.entry.decode())
        if one:
            self._end(one, "done", (one.own, 0) if ran < one.newer else None)

    def _end(self, one: Record, place: str, unrun: tuple[bytes, int] | None = None) -> None:
        """End a job; what came since its last start follows, or `unrun`, what that start took and nobody has run."""
        self.seen["ended without its key"] += one.key in self.model.keys and self.model.keys[one.key] != one.id
        follows, one.newest = one.newest or unrun, None
        self.model.leave(one, place)
        if follows:
            self.seen["newest followed" if follows != unrun else "newest followed an older success"] += 1
            body, due = follows
            names = {name for name in self.store.hash(self.store.keys.latest) if not name.endswith("+")}
            [given] = names - set(self.model.jobs)
            if due > self.clock:
                self.model.follow(one, Record(given, one.kind, body, one.key, "scheduled", due=due))
            else:
                self.model.follow(one, Record(given, one.kind, body, one.key, entry=given))

    def fail(self, consumer: str, claim: Claim, delay: int) -> None:
        """Retry up to the limit that is kept in the meta, then bury."""
        if not self.start(consumer, claim):
            return
        one, meta = self._held(consumer, claim), decode_meta(claim.meta)
        if meta.failures + 1 >= MAX_FAILURES:
            self.bury(consumer, claim, delay)
            return
        item = self._later(claim, delay, failures=meta.failures + 1)
        self._expect(self.store.retry(item, consumer=consumer, clock=str(self.clock)), one)
        if one:
            self.model.leave(one, "scheduled")
            one.due, one.retrying, one.failures = self.clock + delay, True, one.failures + 1
            self.model.totals["retried"] += 1

    def snooze(self, consumer: str, claim: Claim, delay: int) -> None:
        if not self.start(consumer, claim):
            return
        one = self._held(consumer, claim)
        item = self._later(claim, delay)
        self._expect(self.store.snooze(item, consumer=consumer, clock=str(self.clock)), one)
        if one:
            self.model.leave(one, "scheduled")
            one.due, one.retrying = self.clock + delay, False
            self.model.totals["snoozed"] += 1

    def bury(self, consumer: str, claim: Claim, _: int) -> None:
        one = self._held(consumer, claim)
        item = death(claim, dedupe_key=decode_meta(claim.meta).held_key)
        self._expect(self.store.bury(item, consumer=consumer, clock=str(self.clock)), one)
        if one:
            self.seen["buried"] += 1
            one.failures += 1
            self._end(one, "dead")

    def give_up(self, consumer: str, claim: Claim, _: int) -> None:
        """Let the handler cancel its job."""
        if not self.start(consumer, claim):
            return
        one = self._held(consumer, claim)
        item = ending(claim, dedupe_key=decode_meta(claim.meta).dedupe_key)
        words = self.store.run(settle.cancel(self.store.keys, consumer, [item], str(self.clock)))
        assert words == ["RUNNING" if one else "LOST"]
        if one:
            self._end(one, "cancelled")

    def release(self, consumer: str, claim: Claim, _: int) -> None:
        one = self._held(consumer, claim)
        marked = one is not None and claim.deliveries in (1, one.marked_at)
        self._expect(self.store.release(claim, consumer=consumer, mark=int(marked)), one)
        if one:
            one.place = "released"
            self.model.stale.discard(one.entry)
            self.model.totals["released"] += 1
            if one.marks is not None:
                one.marks -= marked

    def renew(self, consumer: str, claim: Claim, _: int) -> None:
        one, there = self._held(consumer, claim), self.model.standing(claim.entry.decode())
        words = self.store.renew(claim, consumer=consumer)
        assert words == ({} if one else {0: "LOST" if there else "CANCELLED"})
        if one:
            one.silent = False

    def mark(self, consumer: str, claim: Claim, _: int) -> None:
        if claim.deliveries == 1:
            return
        one = self._held(consumer, claim)
        self._expect(self.store.suspect(claim, consumer=consumer), one)
        if one:
            if one.marks is not None and one.marked_at != claim.deliveries:
                one.marks += 1
            one.marked_at = claim.deliveries

    def outdate(self, consumer: str, claim: Claim, _: int = 0) -> bool:
        """Let newer arguments come while this runs, if it takes any; return whether they did."""
        meta = decode_meta(claim.meta)
        if not meta.latest or not self._held(consumer, claim) or not self.start(consumer, claim):
            return False
        self.enqueue([meta.dedupe_key] * 3)
        return True

    def overtake(self, consumer: str, claim: Claim, _: int) -> None:
        """As `outdate`; then another takes over and starts with them, and this one ends."""
        if self.outdate(consumer, claim):
            self.fall_silent(0, self._held(consumer, claim))
            self.sweep("d", 100)
            for other in [other for name, other in self.held() if name == "d" and other.entry == claim.entry]:
                self.start("d", other)
            self.complete(consumer, claim)

    def _later(self, claim: Claim, delay: int, **changes: Any) -> Any:
        meta = decode_meta(claim.meta)
        carried = encode_meta(msgspec.structs.replace(meta, id=job_of(claim), **changes))
        return msgspec.structs.replace(later(claim, delay, meta.held_key), meta=carried)

    def _held(self, consumer: str, claim: Claim) -> Record | None:
        return self.model.held(claim.entry.decode(), consumer, claim.deliveries)

    def _expect(self, words: leases.Words, one: Record | None) -> None:
        self.seen["fence refused"] += one is None
        assert words == ({} if one else {0: "LOST"})

    # Operators.

    def cancel(self, one: Record) -> None:
        words = {"scheduled": "SCHEDULED", "running": "RUNNING", "dead": "DEAD"}
        expected = words.get(one.place, "WAITING" if one.place in IN_STREAM else "GONE")
        assert self.store.cancel_owned(one.id, one.key) == [expected]
        self.seen["cancelled while running"] += expected == "RUNNING"
        if expected not in ("DEAD", "GONE"):
            self.model.stale.discard(one.entry)
            one.newest = None
            self.model.leave(one, "cancelled")

    def replay(self, one: Record) -> None:
        [word] = self.store.replay(one.id, key=one.key, newer=one.newer if one.latest else None, **MODES[one.key])
        if one.place != "dead":
            assert word == "GONE"
        elif (holder := self.model.keys.get(one.key, one.id)) != one.id:
            assert word == holder
        else:
            assert word == "OK"
            self.seen["replayed"] += 1
            self.model.replay(one, self.store.hash(self.store.keys.moved)[one.id])

    def reschedule(self, one: Record) -> None:
        delay = 200 * self._bodies
        item = upkeep.Reschedule(one.id, delay, dedupe_key=one.key)
        [word] = self.store.run(upkeep.reschedule(self.store.keys, [item], str(self.clock)))
        assert word == ("OK" if one.place == "scheduled" else "GONE")
        if word == "OK":
            self.seen["rescheduled"] += 1
            self.model.totals["rescheduled"] += 1
            one.due = self.clock + delay

    def purge(self, one: Record) -> None:
        assert self.store.purge(one.id, one.key) == ["OK" if one.place == "dead" else "GONE"]
        if one.place == "dead":
            self.model.leave(one, "purged")

    # What befalls the server.

    def lapse(self, pick: int) -> None:
        """Let the TTL of a dedupe key pass, and another job take it at once."""
        if held := sorted(self.model.keys):
            key = held[pick % len(held)]
            self.store.command("DEL", self.store.keys.dedupe(key))
            del self.model.keys[key]
            self.enqueue([key])

    def lose_scripts(self) -> None:
        self.store.command("SCRIPT", "FLUSH")

    def lose_group(self, successes: Sequence[tuple[str, Claim]]) -> None:
        """Lose the group; these successes arrive before it is made again, and count."""
        self.store.lose_group()
        self.model.lose_group()
        for consumer, claim in successes:
            self.seen["success without a group"] += self.model.standing(claim.entry.decode()) is not None
            self.complete(consumer, claim)
        self.store.make_group()
