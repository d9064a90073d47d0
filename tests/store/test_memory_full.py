"""Memory is full: nothing more goes in, and nothing half; workers go on, and so drain the queue."""

from collections.abc import Callable, Iterator

import pytest

from streamjobs.core.cron import Cron, Due, Every, Turn
from streamjobs.core.errors import Unavailable
from streamjobs.core.job import Claim, Job
from streamjobs.protocol import config, crons, effects, intake, leases, letters, server, upkeep
from tests.store.support import Store, death, delayed, ending, job, job_of, later


@pytest.fixture
def fill(real: Store) -> Iterator[Callable[[], None]]:
    """Make the server refuse whatever needs memory, until the test ends."""

    def full() -> None:
        # A restarted or promoted server knows no script: they must load with memory full, too.
        real.command("SCRIPT", "FLUSH")
        real.command("CONFIG", "SET", "maxmemory", 1)

    yield full
    real.command("CONFIG", "SET", "maxmemory", 0)


def refused(work: Callable[[], object]) -> str:
    with pytest.raises(Unavailable) as caught:
        work()
    return caught.value.word


def test_enqueue_is_refused_with_nothing_done(real: Store, fill: Callable[[], None]) -> None:
    [held] = real.enqueue(job(0, dedupe_key="held"))
    fill()

    assert refused(lambda: real.enqueue(job(1), job(2, dedupe_key="k"))) == "OOM"
    assert refused(lambda: real.enqueue(job(2, dedupe_key="k"))) == "OOM"
    assert refused(lambda: real.enqueue(job(3, dedupe_key="held"), job(4))) == "OOM"

    assert [entry.decode() for entry, _ in real.entries()] == [held]
    assert real.command("EXISTS", real.keys.dedupe("k")) == 0
    assert real.totals() == {"enqueued": 1}


def test_refused_batch_can_be_sent_again(real: Store, fill: Callable[[], None]) -> None:
    call = intake.enqueue(real.keys, [job(1)], real.batch())
    fill()
    assert refused(lambda: real.run(call)) == "OOM"
    real.command("CONFIG", "SET", "maxmemory", 0)

    real.run(call)
    real.run(call)

    assert real.depth() == 1


def test_schedule_is_refused_with_nothing_done(real: Store, fill: Callable[[], None]) -> None:
    fill()

    assert refused(lambda: real.schedule(delayed(1, delay_ms=9, dedupe_key="k"))) == "OOM"

    assert real.command("EXISTS", real.keys.ids, real.keys.bodies, real.keys.dedupe("k")) == 0


def test_a_worker_joins_and_makes_a_lost_group_anew(real: Store, fill: Callable[[], None]) -> None:
    [id_] = real.enqueue(job(0))
    real.command("DEL", real.keys.config)
    real.lose_group()
    fill()

    denied = real.run(server.probe(real.keys))
    joined = real.run(leases.join(real.keys, 700))

    assert denied == []
    assert joined.lease_ms == 700
    assert [claim.entry.decode() for claim in real.claim("a")] == [id_]


def test_replay_is_refused_with_nothing_done(real: Store, fill: Callable[[], None]) -> None:
    claims = real.started(1)
    real.bury(death(claims[0]))
    fill()

    assert refused(lambda: real.replay(job_of(claims[0]))) == "OOM"

    assert real.left() == {"dead", "dead:ids"}


WORK: dict[str, Callable[[Store, list[Claim]], object]] = {
    "complete": lambda store, claims: store.complete(*claims),
    "complete with results": lambda store, claims: store.complete_full(
        *(ending(claim, result_ttl_ms=1000, result=b"1") for claim in claims)
    ),
    "retry": lambda store, claims: store.retry(*map(later, claims)),
    "snooze": lambda store, claims: store.snooze(*map(later, claims)),
    "bury": lambda store, claims: store.bury(*map(death, claims)),
    "release": lambda store, claims: store.release(*claims, mark=1),
    "renew": lambda store, claims: store.renew(*claims),
    "suspect": lambda store, claims: store.suspect(*claims),
}


@pytest.mark.parametrize("name", WORK)
def test_what_workers_do_with_claims_goes_on(real: Store, fill: Callable[[], None], name: str) -> None:
    claims = real.started(3)
    fill()

    assert WORK[name](real, claims) == {}


def test_claiming_goes_on(real: Store, fill: Callable[[], None]) -> None:
    first = real.started(3)
    real.silence(first[:1])
    real.release(first[1], mark=1)
    real.add(1)
    fill()

    assert len(real.claim("b")) == 1
    assert len(real.take("b")) == 1
    assert len(real.sweep("b")) == 1


def test_promotion_goes_on(real: Store, fill: Callable[[], None]) -> None:
    real.schedule(*(delayed(n, at_ms=1) for n in range(10)))
    fill()

    assert real.promote().moved == 10


def test_effects_are_begun_and_recorded(real: Store, fill: Callable[[], None]) -> None:
    """One that has happened and cannot be recorded would happen again."""
    [claim] = real.started(1)
    run = effects.Run("a", claim.entry, job_of(claim), "aa")
    fill()

    begun = real.run(effects.once(real.keys, "k", run, lease_ms=1000, keep_ms=1000, take_over=True))
    assert (begun.word, real.run(effects.record(real.keys, "k", run.job, b"1", 1000))) == ("BEGUN", "OK")


def test_reschedule_goes_on(real: Store, fill: Callable[[], None]) -> None:
    [one] = real.schedule(delayed(1, delay_ms=9000))
    fill()

    assert real.run(upkeep.reschedule(real.keys, [upkeep.Reschedule(one)])) == ["OK"]


def test_crons_are_planned_and_their_slots_wait(real: Store, fill: Callable[[], None]) -> None:
    cron = Cron("often", Job("mail", b"{}", "q"), Every(1))
    fill()
    [standing] = real.run(crons.plan(real.keys, "a", "10", [cron]))
    slot_ms = (standing.after_ms // 1000 + 1) * 1000
    tick = crons.tick(real.keys, cron, 0, Turn((Due(slot_ms, slot_ms),), 0, 0, 0), str(slot_ms))

    assert refused(lambda: real.run(tick)) == "OOM"
    assert real.depth() == 0
    real.command("CONFIG", "SET", "maxmemory", 0)

    assert [real.run(tick).word, real.run(tick).word] == ["OK", "DUPLICATE"]
    assert real.totals() == {"enqueued": 1}


def test_cancel_purge_retire_and_lookup_go_on(real: Store, fill: Callable[[], None]) -> None:
    ids = real.add(2)
    claims = real.claim()
    real.bury(death(claims[0]))
    scheduled = real.schedule(delayed(1, delay_ms=9000))
    fill()

    assert real.cancel(ids[1], scheduled[0]) == ["RUNNING", "SCHEDULED"]
    assert real.state(ids[0]) == "dead"
    assert real.purge(ids[0]) == ["OK"]
    assert real.run(leases.retire(real.keys, ["a"])) == 1
    assert real.left() == set()


def test_a_dead_job_that_is_to_begin_anew_is_refused_with_nothing_done(real: Store, fill: Callable[[], None]) -> None:
    [claim] = real.started(1)
    real.bury(death(claim))
    one = job_of(claim)
    rows = [(real.dead_entry(one), one)]
    [word] = real.run(letters.promise(real.keys, "q", rows))
    promised = letters.promised(word)
    assert promised is not None
    adoption = letters.Adoption(f"q:{one}", rows[0][0], promised, b"mail", b"{}", b"")
    fill()

    assert refused(lambda: real.run(letters.adopt(real.keys, [adoption]))) == "OOM"
    assert refused(lambda: real.run(letters.restore(real.keys, [letters.Restore("1-0", {b"kind": b"mail"})]))) == "OOM"

    assert (real.state(one), real.depth(), real.command("XLEN", real.keys.dead)) == ("dead", 0, 1)


def test_dead_jobs_can_be_handed_over_purged_and_trimmed(real: Store, fill: Callable[[], None]) -> None:
    claims = real.started(4)
    real.bury(*(death(claim) for claim in claims))
    first, second, third, _ = [job_of(claim) for claim in claims]
    rows = [(real.dead_entry(one), one) for one in (first, second)]
    real.run(config.declare(real.keys, config.KEEP_DEAD, "1"))
    words = real.run(letters.promise(real.keys, "q", rows))
    promised = [one for word in words if (one := letters.promised(word))]
    fill()

    items = [letters.Handover(*rows[0], promised[0], "q:9-0"), letters.Handover(*rows[1], promised[1], "")]
    assert real.run(letters.handover(real.keys, items)) == ["OK", "OK"]
    assert real.purge(third) == ["OK"]
    assert real.run(letters.trim(real.keys)).deleted == 1
    assert real.command("XLEN", real.keys.dead) == 1
