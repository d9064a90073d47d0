"""retire: consumers that hold nothing are forgotten, and only those."""

from streamjobs.protocol import leases
from tests.store.support import Store


def consumers(store: Store) -> set[str]:
    rows = store.command("XINFO", "CONSUMERS", store.keys.stream, "workers")
    return {row[1].decode() for row in rows}


def test_who_holds_nothing_is_forgotten_everywhere(store: Store) -> None:
    store.complete(*store.started(1, consumer="a"))
    store.promote("a")

    assert store.run(leases.retire(store.keys, ["a"])) == 1
    assert consumers(store) == set()
    assert store.hash(store.keys.workers) == {}


def test_who_holds_a_claim_stays_and_its_job_is_not_lost(store: Store) -> None:
    """XGROUP DELCONSUMER would drop the claim, and the entry would never be delivered again."""
    claims = store.started(1, consumer="a")
    store.promote("a")

    assert store.run(leases.retire(store.keys, ["a"])) == 0
    assert store.run(leases.retire(store.keys, ["a", "b"])) <= 1
    assert set(store.hash(store.keys.workers)) == {"a"}
    assert len(store.retaken(claims)) == 1


def test_who_gave_everything_back_can_be_forgotten_before_it_is_taken(store: Store) -> None:
    store.release(*store.started(2, consumer="a"), mark=1)

    assert store.run(leases.retire(store.keys, ["a"])) == 1
    assert len(store.take("b")) == 2


def test_case_A14_many_dead_consumers_go_at_once(store: Store) -> None:
    names = [f"w{n}" for n in range(200)]
    for name in names:
        store.command("XGROUP", "CREATECONSUMER", store.keys.stream, "workers", name)

    store.run(leases.retire(store.keys, names))

    assert consumers(store) == set()


def test_the_promoters_place_is_free_at_once_and_somebody_is_woken(store: Store) -> None:
    assert store.promote("a").leads
    assert not store.promote("b").leads

    store.run(leases.retire(store.keys, ["a"]))

    assert store.command("LLEN", store.keys.bell) == 1
    assert store.promote("b").leads


def test_nobody_is_woken_for_nothing(store: Store) -> None:
    store.promote("a")
    store.promote("b")

    store.run(leases.retire(store.keys, ["b"]))
    store.run(leases.retire(store.keys, ["a"]))

    assert store.command("EXISTS", store.keys.bell) == 0
