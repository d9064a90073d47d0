"""A call that arrives again, late, from a connection given up: nothing is done twice, nobody is robbed.

Each test sends the very same bytes a second time, at the worst moment it can arrive.
"""

from typing import Any

import pytest

from streamjobs.protocol import intake, leases, settle, upkeep
from streamjobs.protocol.calls import Call
from streamjobs.protocol.intake import Batch, BatchRefused
from tests.store.support import LEASE_MS, Store, death, delayed, ending, job, job_of, later


def snapshot(store: Store) -> list[Any]:
    """Return everything there is of the queue's jobs, so that two moments can be compared.

    All but the count of calls that came too late, which grows by just those.
    """
    keys = store.keys
    hashes = [store.hash(key) for key in (keys.moved, keys.bodies, keys.dead_ids, keys.suspects, keys.totals)]
    hashes[-1].pop("lost", None)
    sets = [store.due(keys.scheduled), store.due(keys.retries), store.command("SMEMBERS", keys.released)]
    return [store.entries(), store.pending(), store.dead_rows(), *hashes, *sets]


def settling_calls(store: Store) -> dict[str, tuple[Call[leases.Words], Any]]:
    """Return one call of each move, each with a claim of its own, held by `a`."""
    claims = dict(zip("complete full retry snooze bury release".split(), store.started(6), strict=True))
    keys = store.keys
    one = claims["release"]
    calls = {
        "complete": settle.complete(keys, [settle.Finished("mail", plain=[claims["complete"].entry])]),
        "full": settle.complete(keys, [settle.Finished("mail", full=[ending(claims["full"], result_ttl_ms=9000)])]),
        "retry": settle.retry(keys, "a", [("mail", {}, [later(claims["retry"], 1)])]),
        "snooze": settle.snooze(keys, "a", [("mail", {}, [later(claims["snooze"], 1)])]),
        "bury": settle.bury(keys, "a", [("mail", {}, [death(claims["bury"])])]),
        "release": leases.release(keys, "a", LEASE_MS, [leases.Giveback(one.entry, one.deliveries, 1)]),
    }
    return {name: (call, claims[name]) for name, call in calls.items()}


@pytest.mark.parametrize("move", ["complete", "full", "retry", "snooze", "bury", "release"])
def test_settling_again_answers_lost_and_changes_nothing(store: Store, move: str) -> None:
    call, _ = settling_calls(store)[move]
    store.run(call)
    before = snapshot(store)

    assert store.run(call) == {0: "LOST"}
    assert snapshot(store) == before


@pytest.mark.parametrize("move", ["full", "retry", "snooze", "bury", "release", "complete"])
def test_settling_again_after_the_job_moved_on_changes_nothing(store: Store, move: str) -> None:
    """Promoted, replayed or taken, and running again at the same consumer."""
    call, claim = settling_calls(store)[move]
    store.run(call)
    store.promote(clock="9000000000000")
    store.replay(job_of(claim))
    store.take("a")
    store.claim("a")
    before = snapshot(store)

    assert store.run(call) == {0: "LOST"}
    assert snapshot(store) == before


@pytest.mark.parametrize("move", ["retry", "snooze", "bury", "release"])
def test_first_copy_that_comes_after_a_takeover_changes_nothing(store: Store, move: str) -> None:
    call, claim = settling_calls(store)[move]
    store.retaken([claim])
    before = snapshot(store)

    assert store.run(call) == {0: "LOST"}
    assert snapshot(store) == before


def test_reclaim_again_charges_no_second_delivery(store: Store) -> None:
    store.silence(store.started(3))
    call = leases.reclaim(store.keys, "b", LEASE_MS, "-", 10, 0.0)
    store.run(call)
    before = snapshot(store)

    assert store.run(call).claims == []
    assert snapshot(store) == before


def test_take_again_takes_nothing(store: Store) -> None:
    store.release(*store.started(3), mark=1)
    call = leases.take(store.keys, "b", 10, 0.0)
    store.run(call)
    before = snapshot(store)

    assert store.run(call) == []
    assert snapshot(store) == before


def test_promote_again_moves_nothing(store: Store) -> None:
    store.schedule(delayed(1, at_ms=1))
    call = upkeep.promote(store.keys, "a", rung=False, note="", room=1000, clock="1000")
    store.run(call)
    before = snapshot(store)

    assert store.run(call).moved == 0
    assert snapshot(store) == before


def test_cancel_again_cancels_nothing(store: Store) -> None:
    [one] = store.add(1)
    store.cancel(one)
    before = snapshot(store)

    assert store.cancel(one) == ["GONE"]
    assert snapshot(store) == before


@pytest.mark.parametrize("build", [intake.enqueue, intake.schedule])
def test_enqueue_again_after_its_jobs_ended_adds_nothing(store: Store, build: Any) -> None:
    call = build(store.keys, [job(1, dedupe_key="k"), job(2)], Batch("p", 1, "aa"))
    first = store.words(call)
    store.promote()
    claims = store.claim()
    store.complete_full(*(ending(claim, dedupe_key="k") for claim in claims))
    before = snapshot(store)

    assert store.words(call) == first
    assert snapshot(store) == before


def test_one_producer_numbers_both_kinds_of_batches(store: Store) -> None:
    """A late copy is known whichever of the two scripts ran since."""
    early = intake.enqueue(store.keys, [job(1)], Batch("p", 1, "aa"))
    store.run(early)
    store.run(intake.schedule(store.keys, [delayed(2, delay_ms=9000)], Batch("p", 2, "aa")))
    before = snapshot(store)

    with pytest.raises(BatchRefused, match="STALEBATCH"):
        store.run(early)
    assert snapshot(store) == before
