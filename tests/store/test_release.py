"""release: claims go back for another worker to take at once, and nothing is charged."""

from tests.store.support import LEASE_MS, Store, death, ending, later


def test_a_released_claim_waits_and_counts_as_waiting(store: Store) -> None:
    [claim] = store.started(1)

    assert store.release(claim, mark=1) == {}

    assert store.state(claim.entry.decode()) == "waiting"
    assert store.command("SMEMBERS", store.keys.released) == [claim.entry]


def test_delivery_count_stays(store: Store) -> None:
    [claim] = store.started(1)

    store.release(claim)

    assert [count for _, count in store.pending().values()] == [1]


def test_it_looks_silent_for_a_lease_at_once(store: Store) -> None:
    """So that a sweep finds it, should the set of released entries be lost."""
    store.release(*store.started(1))

    [row] = store.command("XPENDING", store.keys.stream, "workers", "-", "+", 10)

    assert row[2] >= LEASE_MS


def test_bell_rings_once(store: Store) -> None:
    claims = store.started(2)

    store.release(claims[0])
    store.release(claims[1])

    assert store.command("LLEN", store.keys.bell) == 1


def test_one_that_is_left_for_a_process_of_its_own_rings_no_bell(store: Store) -> None:
    """Whom it woke would only give it back; a sweep finds it, and so does a take."""
    left, given = store.started(2)

    store.release(left, mark=1, quiet=True)
    assert store.command("LLEN", store.keys.bell) == 0
    assert store.totals()["released"] == 1
    assert store.state(left.entry.decode()) == "waiting"

    store.release(given)
    assert store.command("LLEN", store.keys.bell) == 1
    assert sorted((one.entry, one.marks, one.releases) for one in store.take("b")) == [
        (left.entry, -1, 0), (given.entry, 0, 0),
    ]  # fmt: skip


def test_refused_ones_ring_no_bell_and_count_nothing(store: Store) -> None:
    [claim] = store.started(1)

    assert store.release(claim, consumer="b") == {0: "LOST"}
    assert store.command("LLEN", store.keys.bell) == 0
    assert "released" not in store.totals()


def test_late_copy_does_not_take_the_job_from_a_new_holder(store: Store) -> None:
    [claim] = store.started(1)
    store.release(claim, mark=1)
    [taken] = store.take("b")

    assert store.release(claim, mark=1) == {0: "LOST"}
    assert store.pending() == {taken.entry: (b"b", 2)}
    assert store.command("SCARD", store.keys.released) == 0


def test_late_copy_does_not_take_it_from_the_same_holder_either(store: Store) -> None:
    [claim] = store.started(1)
    store.release(claim, mark=1)
    store.take("a")

    assert store.release(claim, mark=1) == {0: "LOST"}


def test_second_copy_before_anyone_took_it_counts_once(store: Store) -> None:
    [claim] = store.started(1)

    assert store.release(claim, mark=1) == {}
    assert store.release(claim, mark=1) == {0: "LOST"}
    assert store.hash(store.keys.suspects) == {claim.entry.decode(): "-1 0"}
    assert store.totals()["released"] == 1


def test_giver_can_do_nothing_more_with_it_but_complete(store: Store) -> None:
    """Late copies of other calls of the giver: the entry is not its any longer."""
    [claim] = store.started(1)
    store.release(claim, mark=1)

    assert store.retry(later(claim)) == {0: "LOST"}
    assert store.snooze(later(claim)) == {0: "LOST"}
    assert store.bury(death(claim)) == {0: "LOST"}
    assert store.suspect(claim) == {0: "LOST"}
    assert store.renew(claim) == {0: "LOST"}
    assert store.complete(claim) == {}
    assert store.left() == set()


def test_giver_completes_one_that_owns_something(store: Store) -> None:
    [claim] = store.started(1)
    store.release(claim, mark=1)

    assert store.complete_full(ending(claim, result_ttl_ms=1000, result=b"1")) == {}
    assert store.left() == set()


def test_batch_says_which_were_not_held(store: Store) -> None:
    claims = store.started(4)
    store.complete(claims[1])
    store.silence(claims[2:3])
    store.sweep("b")

    assert store.release(*claims, mark=1) == {1: "LOST", 2: "LOST"}
    assert store.totals()["released"] == 2
