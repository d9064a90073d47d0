"""pause: nothing of a queue starts, by whatever way it would come to a worker, until it is resumed."""

import pytest

from streamjobs.protocol import leases, upkeep
from tests.store.support import LEASE_MS, Store, job


def test_nothing_fresh_is_delivered_until_it_is_resumed(store: Store) -> None:
    store.add(3)
    store.claim("a", 1)
    assert store.run(upkeep.pause(store.keys))
    store.add(2)
    assert store.claim("a") == []

    assert store.run(upkeep.resume(store.keys))

    assert len(store.claim("a")) == 4


def test_what_was_given_back_or_fell_silent_stays(store: Store) -> None:
    one, other, third = store.started(3)
    store.release(one)
    store.silence([other])
    store.run(upkeep.pause(store.keys))
    assert store.take("b") == []
    assert store.reclaim("b").claims == []

    store.run(upkeep.resume(store.keys))

    assert [claim.entry for claim in store.take("b")] == [one.entry]
    assert [claim.entry for claim in store.reclaim("b").claims] == [other.entry]
    assert store.pending()[third.entry] == (b"a", 1)


def test_running_jobs_end(store: Store) -> None:
    claims = store.started(2)
    store.run(upkeep.pause(store.keys))

    assert store.complete(*claims) == {}


@pytest.mark.parametrize(("first", "second"), [(upkeep.pause, upkeep.resume), (upkeep.resume, upkeep.pause)])
def test_repeated_it_changes_nothing(store: Store, first: object, second: object) -> None:
    pause, resume = upkeep.pause(store.keys), upkeep.resume(store.keys)
    store.add(1)

    assert [store.run(call) for call in (resume, pause, pause, resume, resume)] == [False, True, False, True, False]
    assert len(store.claim("a")) == 1


def test_a_paused_queue_that_loses_its_group_stays_paused_and_then_delivers_everything(store: Store) -> None:
    store.started(1)
    store.add(1)
    store.run(upkeep.pause(store.keys))
    store.lose_group()
    store.run(leases.join(store.keys, LEASE_MS))
    assert store.claim("a") == []

    store.run(upkeep.resume(store.keys))

    assert len(store.claim("a")) == 2


def test_a_queue_that_no_worker_has_joined_can_be_paused(bare: Store) -> None:
    bare.run(upkeep.pause(bare.keys))
    bare.enqueue(job(0))
    bare.run(leases.join(bare.keys, LEASE_MS))
    assert bare.claim("a") == []

    bare.run(upkeep.resume(bare.keys))

    assert len(bare.claim("a")) == 1


def test_each_worker_is_rung_for_when_it_goes_on(store: Store) -> None:
    for name in "abc":
        store.promote(name)
    store.run(upkeep.pause(store.keys))

    store.run(upkeep.resume(store.keys))

    assert store.command("LLEN", store.keys.bell) == 3
