"""take: what was given back goes to the next worker at once."""

from streamjobs.core.codec import encode_meta
from streamjobs.core.job import Meta
from tests.store.support import Store


def test_a_released_entry_goes_to_the_taker(store: Store) -> None:
    [claim] = store.started(1)
    store.release(claim, mark=1)

    [taken] = store.take("b")

    assert (taken.entry, taken.kind, taken.body) == (claim.entry, claim.kind, claim.body)
    assert taken.deliveries == 2
    assert store.pending() == {claim.entry: (b"b", 2)}
    assert store.command("SCARD", store.keys.released) == 0


def test_takes_at_most_what_was_asked_for_and_each_entry_once(store: Store) -> None:
    claims = store.started(10)
    store.release(*claims, mark=1)

    first, second, third = store.take("b", 4), store.take("c", 100), store.take("d", 100)

    assert len(first) == 4
    assert {one.entry for one in first + second} == {claim.entry for claim in claims}
    assert len(second) == 6
    assert third == []


def test_nothing_released_takes_nothing(store: Store) -> None:
    store.started(3)

    assert store.take("b") == []


def test_what_is_no_entry_is_dropped_and_holds_nothing_up(store: Store) -> None:
    """As somebody else may have added it."""
    claims = store.started(2)
    store.release(*claims, mark=1)
    store.command("SADD", store.keys.released, "x", "", "1", "-", "9" * 50 + "-0", "1-1-1")

    taken = store.take("b")

    assert {one.entry for one in taken} == {claim.entry for claim in claims}
    assert store.command("SCARD", store.keys.released) == 0


def test_no_start_is_presumed(store: Store) -> None:
    claims = store.started(1)
    store.release(*claims, mark=1)

    [taken] = store.take("b")

    assert (taken.marks, taken.starts) == (-1, "")


def test_suspect_value_comes_along(store: Store) -> None:
    [claim] = store.retaken(store.started(1))
    store.suspect(claim, consumer="b", clock="77")
    [again] = store.retaken([claim], "b", "c")
    store.release(again, consumer="c", alone=True)

    [taken] = store.take("d")

    assert (taken.marks, taken.releases) == (1, 1)
    assert taken.starts.split(" ")[-1] == "b@77/2"


def test_entry_that_ended_after_its_release_is_not_taken(store: Store) -> None:
    """The first success wins, also over a release: here a zombie's."""
    claims = store.started(2)
    store.release(*claims)
    store.complete(claims[0])

    assert [taken.entry for taken in store.take("b")] == [claims[1].entry]


def test_entry_deleted_by_hand_is_forgotten(store: Store) -> None:
    claims = store.started(2)
    store.release(*claims, mark=1)
    store.command("XDEL", store.keys.stream, claims[0].entry)

    assert [taken.entry for taken in store.take("b")] == [claims[1].entry]
    assert set(store.pending()) == {claims[1].entry}
    assert store.hash(store.keys.suspects) == {claims[1].entry.decode(): "-1 0"}


def test_after_a_lost_group_what_runs_again_is_left_to_its_holder(store: Store) -> None:
    [claim] = store.started(1)
    store.release(claim)
    store.lose_group()
    store.make_group()
    [again] = store.claim("b")

    assert store.take("c") == []
    assert store.pending() == {again.entry: (b"b", 1)}
    assert store.command("SCARD", store.keys.released) == 0


def test_meta_and_odd_fields_come_along(store: Store) -> None:
    meta = encode_meta(Meta(result_ttl_ms=5))
    store.command("XADD", store.keys.stream, "*", "x", "1", "meta", meta, "kind", "mail", "body", "{}")
    store.release(*store.claim())

    [taken] = store.take("b")

    assert (taken.kind, taken.body, taken.meta) == (b"mail", b"{}", meta)
