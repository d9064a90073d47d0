"""One queue's life as the library says it: the requests of docs/conformance.json, in their order.

The file is what implementers in other languages test against; here are the builders' own words, so
that a test can tell when the two part.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

from streamjobs.core.codec import encode_meta
from streamjobs.core.cron import Cron, Due, Every, Turn
from streamjobs.core.histogram import bucket
from streamjobs.core.job import Claim, Job, Meta
from streamjobs.protocol import (
    config,
    crons,
    effects,
    intake,
    lanes,
    leases,
    letters,
    metrics,
    queues,
    server,
    settle,
    upkeep,
    workers,
)  # fmt: skip
from streamjobs.protocol.calls import Call, Command
from streamjobs.protocol.intake import Batch
from streamjobs.protocol.keys import QueueKeys

AT = 1_800_000_000_000
KEYS = QueueKeys("conf", "mail")
NAMED = encode_meta(Meta(id="d4000000000000-1", generation=1))
Step: TypeAlias = tuple[str, Call[Any] | Command[Any]]


def command(*words: str) -> Command[Any]:
    return Command(words, lambda reply: reply)


def clock(later_ms: int = 0) -> str:
    return str(AT + later_ms)


def claim(seq: int, deliveries: int = 1, starts: str = "") -> Claim:
    return Claim(b"4000000000000-%d" % seq, b"", b"", b"", deliveries, starts=starts)


def ending(seq: int, deliveries: int = 1, job: str = "", **owned: Any) -> settle.Ending:
    entry = f"4000000000000-{seq}"
    return settle.Ending(entry.encode(), deliveries, job or entry, **owned)


def later(seq: int, meta: Meta, deliveries: int = 1) -> settle.Postponement:
    return settle.Postponement(ending(seq, deliveries, meta.id), 1000, encode_meta(meta))


def read(consumer: str) -> Command[Any]:
    return leases.read([KEYS.stream], consumer, 10, None)


def once(key: str, consumer: str, seq: int, token: str, *, take_over: bool = True) -> Call[Any]:
    entry = f"4000000000000-{seq}"
    run = effects.Run(consumer, entry.encode(), entry, token)
    return effects.once(KEYS, key, run, lease_ms=15_000, keep_ms=60_000, take_over=take_over, clock=clock())


def lookup(job: str) -> Call[Any]:
    return upkeep.lookup(KEYS, job)


def beginning() -> Iterator[Step]:
    """Set the last ids far ahead of any clock, so that every id is the same everywhere; make the group."""
    for key in (KEYS.stream, KEYS.ids, KEYS.dead):
        yield "a last id ahead of the clock", command("XADD", key, "MAXLEN", "0", "4000000000000-0", "x", "")
    yield "a worker tries what it will need: nothing is refused", server.probe(KEYS)
    yield "a worker joins: the group begins at 0, and the lease is its own", leases.join(KEYS, 15_000)


def intakes() -> Iterator[Step]:
    first = [
        Job("mail", b'{"to":"ada"}', "mail"),
        Job("mail", '{"to":"zoë"}'.encode(), "mail"),
        Job("page", b"{}", "mail", meta=Meta(dedupe_key="k", result_ttl_ms=60_000)),
    ]
    duplicate = [Job("page", b'{"again":true}', "mail", meta=Meta(dedupe_key="k"))]
    batch = intake.enqueue(KEYS, first, Batch("p", 1, "c0ffee"), clock())
    yield "a batch of three", batch
    yield "the same batch again", batch
    yield "a held dedupe key", intake.enqueue(KEYS, duplicate, Batch("p", 2, "c0ffee"), clock())
    yield "a late copy of batch 1", batch
    yield "batch 2 of another sender", intake.enqueue(KEYS, duplicate, Batch("p", 2, "bad"), clock())
    delayed = [Job("mail", b'{"to":"eve"}', "mail", delay_ms=5000, meta=Meta(traceparent="00-1-2-01"))]
    yield "a delayed job", intake.schedule(KEYS, delayed, Batch("p", 3, "c0ffee"), clock())
    yield "it is scheduled", lookup("d4000000000000-1")
    for at in (0, 5000):
        yield "promotion", upkeep.promote(KEYS, "a", rung=False, note="n", room=1000, clock=clock(at))


def settlements() -> Iterator[Step]:
    yield "worker a reads", read("a")
    yield "a renews", leases.renew(KEYS, "a", [leases.Renewal(b"4000000000000-1", 1, "4000000000000-1")])
    yield from effect()
    plain = settle.Finished("mail", plain=[b"4000000000000-1"], sums={"ms": 12})
    owned = ending(3, dedupe_key="k", result_ttl_ms=60_000, result=b'{"state":"done","value":1}')
    yield "a completes two", settle.complete(KEYS, [plain, settle.Finished("page", full=[owned])], clock())
    yield "and again", settle.complete(KEYS, [plain], clock())
    rows = [("mail", "ran", 1), ("mail", "run_us", 1200), ("mail", f"run.{bucket(1200)}", 1)]
    yield "a says how long one waited and ran", metrics.measure(KEYS, rows, clock())
    for key in (KEYS.times(AT // 60_000), KEYS.times_of_hour(AT // 3_600_000)):
        words = [f"{field}:{kind}" for kind, field, _ in rows]
        yield "which is kept for the minute and for the hour", command("HMGET", key, *words)
    yield "the result is kept", lookup("4000000000000-3")
    failed = later(2, Meta(id="4000000000000-2", failures=1))
    yield "a retries one", settle.retry(KEYS, "a", [("mail", {"ms": 7}, [failed])], clock())
    yield "and again", settle.retry(KEYS, "a", [("mail", {"ms": 7}, [failed])], clock())
    yield "it is scheduled", lookup("4000000000000-2")
    sooner = [upkeep.Reschedule("4000000000000-2", 500), upkeep.Reschedule("4000000000000-1", 500)]
    yield "an operator has it, and one that has ended, run sooner", upkeep.reschedule(KEYS, sooner, clock())
    death = settle.Death(ending(4, job="d4000000000000-1"), "permanent", "ValueError: no", 1, b"[]")
    yield "a buries one", settle.bury(KEYS, "a", [("mail", {}, [death])], clock())
    yield "it is dead", lookup("d4000000000000-1")
    back = [letters.Replay("4000000000000-1", "d4000000000000-1", NAMED)]
    yield "an operator replays it", letters.replay(KEYS, back, clock())
    yield "and again", letters.replay(KEYS, back, clock())
    yield "the retry is promoted", upkeep.promote(KEYS, "b", rung=True, note="n", room=1000, clock=clock(1000))


def effect() -> Iterator[Step]:
    record = effects.record(KEYS, "welcome:ada", "4000000000000-1", b'"sent"', 60_000, clock())
    yield "a begins an effect", once("welcome:ada", "a", 1, "aa")
    yield "and again, since no answer came", once("welcome:ada", "a", 1, "aa")
    yield "another job of the same key", once("welcome:ada", "a", 2, "bb")
    yield "a has recorded it", record
    yield "and again", record
    yield "the other job comes back", once("welcome:ada", "a", 2, "cc")
    yield "who does not hold the entry", once("welcome:ada", "b", 2, "dd")
    yield "an effect that will not be recorded", once("charge:7", "a", 2, "ee")


def takeovers() -> Iterator[Step]:
    yield "an operator pauses the queue", upkeep.pause(KEYS)
    yield "and again", upkeep.pause(KEYS)
    yield "nothing is read", read("b")
    yield "it goes on", upkeep.resume(KEYS)
    yield "worker b reads", read("b")
    yield "b gives one back", leases.release(KEYS, "b", 15_000, [leases.Giveback(b"4000000000000-5", 1, 1)])
    yield "it waits", lookup("d4000000000000-1")
    yield "c takes it", leases.take(KEYS, "c", 10, 0.0)
    yield (
        "b falls silent",
        command("XCLAIM", KEYS.stream, "workers", "b", "0", "4000000000000-6", "IDLE", "60000", "JUSTID"),
    )
    yield "d takes over", leases.reclaim(KEYS, "d", 15_000, "-", 10, 0.0, clock())
    yield "d marks the start", leases.suspect(KEYS, "d", [claim(6, 2, "b@1799999940000/1")], clock())
    late = later(6, Meta(id="4000000000000-2", failures=2))
    yield "b wakes up and fails", settle.retry(KEYS, "b", [("mail", {}, [late])], clock())
    yield "who runs it", lookup("4000000000000-2")
    yield "d is told what a began", once("charge:7", "d", 6, "ff", take_over=False)
    yield "d begins it anew", once("charge:7", "d", 6, "aa")
    yield "and again", once("charge:7", "d", 6, "aa")
    again = later(6, Meta(id="4000000000000-2", failures=1, snoozes=1), 2)
    yield "d snoozes it", settle.snooze(KEYS, "d", [("mail", {}, [again])], clock())


def replacements() -> Iterator[Step]:
    def newest(number: int, text: str) -> Step:
        one = Job("page", text.encode(), "mail", meta=Meta(dedupe_key="site", dedupe_mode="l"))
        return "newest arguments", intake.enqueue(KEYS, [one], Batch("p", number, "c0ffee"), clock())

    yield newest(5, '{"v":1}')
    yield newest(6, '{"v":2}')
    yield "a reads", read("a")
    begins = [leases.Start(b"4000000000000-8", 1, "4000000000000-8")]
    yield "a starts it with the newest", leases.start(KEYS, "a", begins)
    yield newest(7, '{"v":3}')
    yield "newer ones wait behind it", lookup("4000000000000-8")
    done = settle.Finished("page", full=[ending(8, dedupe_key="site", newer=1)])
    yield "they follow its end", settle.complete(KEYS, [done], clock())
    yield "as a job of their own", lookup("4000000000000-9")
    once = Job("page", b"{}", "mail", meta=Meta(dedupe_key="once", dedupe_mode="s"))
    yield "a key until the start", intake.enqueue(KEYS, [once], Batch("p", 8, "c0ffee"), clock())
    yield "a reads", read("a")
    begins = [leases.Start(b"4000000000000-9", 1, "4000000000000-9")]
    begins += [leases.Start(b"4000000000000-10", 1, "4000000000000-10", "once")]
    yield "a starts both", leases.start(KEYS, "a", begins)
    yield "the key is free", command("EXISTS", KEYS.dedupe("once"))
    items = [settle.Ending(b"", 0, "4000000000000-9", "site"), settle.Ending(b"", 0, "4000000000000-10", "once")]
    yield "an operator cancels both", settle.cancel(KEYS, "", items, clock())


def limits() -> Iterator[Step]:
    """Two jobs of which one may run at once; then an operator allows two."""
    jobs = [Job("mail", b"{}", "mail") for _ in range(2)]
    yield "two more jobs", intake.enqueue(KEYS, jobs, Batch("p", 9, "c0ffee"), clock())
    yield "a reads", read("a")

    def entrant(seq: int, deliveries: int, mark: int) -> lanes.Entrant:
        entry = f"4000000000000-{seq}"
        return lanes.Entrant(entry.encode(), deliveries, lanes.order(entry), ["c:k:mail", "r:q"], mark)

    code = {"c:k:mail": "1", "r:q": "10 10000"}
    both = [entrant(11, 1, -1), entrant(12, 1, -1)]
    yield "a may start one, the other is parked", lanes.admit(KEYS, "a", code, both, clock())
    yield "which waits", lookup("4000000000000-12")
    yield "a completes the one", settle.complete(KEYS, [settle.Finished("mail", plain=[b"4000000000000-11"])], clock())
    left = [lanes.Leaver(b"4000000000000-11", 1, ["c:k:mail"])]
    yield "a gives up its slot: the other may go on", lanes.vacate(KEYS, left, ring=True, clock=clock())
    yield "b takes it", leases.take(KEYS, "b", 10, 0.0)
    yield "and may start it", lanes.admit(KEYS, "b", code, [entrant(12, 2, 1)], clock())
    yield "an operator allows two", lanes.limit(KEYS, "c:k:mail", "2")
    yield "b completes it", settle.complete(KEYS, [settle.Finished("mail", plain=[b"4000000000000-12"])], clock())


def endings() -> Iterator[Step]:
    jobs = ["4000000000000-2", "d4000000000000-1", "4000000000000-1"]
    yield (
        "an operator cancels",
        settle.cancel(KEYS, "", [settle.Ending(b"", 0, job) for job in jobs], clock()),
    )
    yield "an ended job", lookup("4000000000000-2")
    yield "an id that was never given", lookup("4000000000000-7")
    last = intake.enqueue(KEYS, [Job("mail", b"no object", "mail")], Batch("p", 4, "c0ffee"), clock())
    yield "one more job", last
    yield "a reads", read("a")
    death = settle.Death(ending(7), "undecodable", "not an object", 0, b"[]")
    yield "a buries it", settle.bury(KEYS, "a", [("mail", {}, [death])], clock())
    yield "an operator purges it", letters.purge(KEYS, [letters.Purge("4000000000000-2", "4000000000000-7")], clock())
    yield from replacements()
    yield from limits()
    yield from bounds()


def bounds() -> Iterator[Step]:
    """A queue in which one job may wait, then any number."""
    yield "the code says that one job may wait", config.declare(KEYS, config.MAX_WAITING, 1)
    jobs = [Job("mail", b"{}", "mail") for _ in range(2)]
    batch = intake.enqueue(KEYS, jobs, Batch("p", 10, "c0ffee"), clock())
    yield "of two more jobs one finds the queue full", batch
    yield "which stays so, however often the batch is sent", batch
    yield "an operator lifts the maximum", config.override(KEYS, config.MAX_WAITING, config.OFF)
    yield "and the other gets in", intake.enqueue(KEYS, jobs[1:], Batch("p", 11, "c0ffee"), clock())
    yield "a reads", read("a")
    both = [b"4000000000000-13", b"4000000000000-14"]
    yield "a completes both", settle.complete(KEYS, [settle.Finished("mail", plain=both)], clock())


def slots() -> Iterator[Step]:
    """A cron every minute; the clock stands at a whole one."""
    cron = Cron("report", Job("page", b'{"of":"cron"}', "mail"), Every(60))
    yield "a worker plans its crons", crons.plan(KEYS, "a", "n", [cron], clock())
    slot = Turn((Due(AT + 60_000, AT + 60_000),), 0, 0, 0)
    yield "a slot before its time", crons.tick(KEYS, cron, 0, slot, clock(59_999))
    yield "at its time", crons.tick(KEYS, cron, 0, slot, clock(60_000))
    yield "and again", crons.tick(KEYS, cron, 0, slot, clock(60_001))
    yield "an operator pauses it", crons.pause(KEYS, "report", AT + 60_002)
    missed = Turn((Due(AT + 240_000, AT + 240_000, 30_000),), 2, AT + 180_000, 0)
    yield "three slots later", crons.tick(KEYS, cron, AT + 60_000, missed, clock(270_000))
    yield "an operator resumes it", crons.resume(KEYS, "report", AT + 270_001)
    yield "where it stands", crons.rows(KEYS)
    yield "a reads", read("a")
    spared = [settle.Ending(b"", 0, "4000000000000-15")]
    yield "an operator spares what runs", settle.cancel(KEYS, settle.SPARING, spared, clock())
    yield "a completes it", settle.complete(KEYS, [settle.Finished("page", plain=[b"4000000000000-15"])], clock())


def dead_letters() -> Iterator[Step]:
    """A dead job begins anew as another one, which has another key for downstream calls."""
    one, row, promised = "4000000000000-16", "4000000000000-3", letters.Promised("mail", AT)
    yield "one more job", intake.enqueue(KEYS, [Job("mail", b"{}", "mail")], Batch("p", 12, "c0ffee"), clock())
    yield "a reads", read("a")
    death = settle.Death(ending(16), "exhausted", "ValueError: no", 1, b"[]")
    yield "a buries it", settle.bury(KEYS, "a", [("mail", {}, [death])], clock())
    promise = letters.promise(KEYS, "mail", [(row, one)], clock())
    yield "an operator promises that it begins anew", promise
    yield "nobody puts it back meanwhile", letters.replay(KEYS, [letters.Replay(row, one, b"")], clock(1))
    yield "nor deletes it", letters.purge(KEYS, [letters.Purge(row, one)], clock(1))
    meta = encode_meta(Meta(generation=1, origin=f"mail:{one}"))
    adoption = letters.Adoption(f"mail:{one}", row, promised, b"mail", b"{}", meta, former=one)
    yield "it begins anew", letters.adopt(KEYS, [adoption], clock(2))
    yield "once, however often that is said", letters.adopt(KEYS, [adoption], clock(3))
    handover = letters.handover(KEYS, [letters.Handover(row, one, promised, "mail:4000000000000-17")], clock(4))
    yield "and the old one goes", handover
    yield "and again", handover
    yield "what became of it", lookup(one)
    yield "a reads", read("a")
    yield "a completes it", settle.complete(KEYS, [settle.Finished("mail", plain=[b"4000000000000-17"])], clock())
    yield from restores()


def restores() -> Iterator[Step]:
    fields = {b"kind": b"mail", b"body": b"{}", b"meta": b"", b"reason": b"permanent", b"error": b"", b"attempts": b"0"}
    restored = [letters.Restore("3000000000000-1", fields | {b"history": b"[]", b"died_at": b"3000000000001"})]
    yield "an operator imports a dead job", letters.restore(KEYS, restored, clock())
    yield "and again", letters.restore(KEYS, restored, clock())
    yield "it is dead", lookup("3000000000000-1")
    purge = letters.purge(KEYS, [letters.Purge("4000000000000-4", "3000000000000-1")], clock())
    yield "an operator purges it", purge
    yield "once more", letters.restore(KEYS, restored, clock())
    yield "the code says how long dead jobs are kept", config.declare(KEYS, config.KEEP_DEAD, "60000ms")
    yield "after that time", letters.trim(KEYS, 500, clock(3_000_000_000_000))


def farewell() -> Iterator[Step]:
    yield "idle consumers go", leases.retire(KEYS, ["a", "b", "c", "d"])
    yield "nothing is left", command("XLEN", KEYS.stream)
    yield "the counts", command("HMGET", KEYS.totals, *"enqueued done dead replayed cancelled purged".split())


def orders() -> Iterator[Step]:
    note = workers.Note("host", 7, state="running", queues=("mail",), serves=1, slots=10)
    yield "a worker tells of itself", workers.report("conf", "a", note)
    yield "an operator orders it to be quiet", workers.order("conf", "a", "quiet", "c0ffee")
    yield "it hears that when it tells again", workers.report("conf", "a", note)
    yield "what it has told", workers.told("conf", "a")
    yield "at its end it is forgotten", workers.forget("conf", "a")
    yield "nobody is there to be ordered", workers.order("conf", "a", "stop", "ab")


def departure() -> Iterator[Step]:
    """The queue itself goes; its last id lies far ahead of the clock."""

    def delete(later_ms: int) -> Call[queues.Deleted]:
        return queues.delete(KEYS, served=False, gone_ms=15_000, clock=clock(later_ms))

    yield "ids of the queue made anew could repeat", delete(0)
    yield "now they cannot", delete(4_000_000_001_000 - AT)
    yield "it is gone", command("EXISTS", KEYS.stream)


def steps() -> list[Step]:
    """Return the whole life, each step with what it shows."""
    return [
        *beginning(),
        *intakes(),
        *settlements(),
        *takeovers(),
        *endings(),
        *slots(),
        *dead_letters(),
        *farewell(),
        *orders(),
        *departure(),
    ]
