"""restore: exported dead jobs are put back byte by byte, unless they are there in any form."""

import pytest

from streamjobs.protocol import letters
from tests.store.support import Store, death, delayed, job_of

ROW = {b"kind": b"mail", b"body": b"\xff\x00", b"meta": b"", b"reason": b"permanent", b"x:\xfe": b"", b"": b"x"}


def restore(store: Store, *jobs: str) -> list[str]:
    return store.run(letters.restore(store.keys, [letters.Restore(job, ROW) for job in jobs]))


def test_a_row_lies_there_as_it_was(store: Store) -> None:
    assert restore(store, "1-0", "d1-0") == ["OK", "OK"]

    rows = store.command("XRANGE", store.keys.dead, "-", "+")
    assert rows[0][1] == [b"id", b"1-0", *(word for pair in ROW.items() for word in pair)]
    assert (store.state("1-0"), store.state("d1-0")) == ("dead", "dead")
    assert store.totals() == {"restored": 2}


def test_done_again_it_changes_nothing(store: Store) -> None:
    restore(store, "1-0")

    assert restore(store, "1-0", "2-0", "2-0") == ["DEAD", "OK", "DEAD"]
    assert store.command("XLEN", store.keys.dead) == 2


@pytest.mark.parametrize("place", ["waiting", "running", "scheduled", "replayed"])
def test_a_job_that_is_alive_is_left_alone(store: Store, place: str) -> None:
    if place == "scheduled":
        [one] = store.schedule(delayed(1, delay_ms=60_000))
    else:
        [one] = store.add(1)
        claims = store.claim() if place in ("running", "replayed") else []
        if place == "replayed":
            store.bury(death(claims[0]))
            store.replay(one)

    assert restore(store, one) == ["LIVE"]
    assert store.dead_rows() == []


def test_a_row_that_was_deleted_by_hand_can_be_put_back(store: Store) -> None:
    restore(store, "1-0")
    store.command("XDEL", store.keys.dead, store.dead_entry("1-0"))

    assert restore(store, "1-0") == ["OK"]
    assert store.state("1-0") == "dead"


def test_a_promised_job_is_dead(store: Store) -> None:
    restore(store, "1-0")
    store.run(letters.promise(store.keys, "web", [(store.dead_entry("1-0"), "1-0")]))

    assert restore(store, "1-0") == ["DEAD"]


def test_a_job_that_was_put_back_is_replayed_and_purged_like_any_other(store: Store) -> None:
    [claim] = store.started(1)
    one = job_of(claim)
    store.bury(death(claim))
    [row] = store.dead_rows()
    store.purge(one)
    fields = {name.encode(): value for name, value in row.items() if name != "id"}
    assert store.run(letters.restore(store.keys, [letters.Restore(one, fields)])) == ["OK"]

    assert store.replay(one) == ["OK"]

    [again] = store.claim()
    assert (job_of(again), again.body) == (one, claim.body)


def test_large_rows_and_many_fields(store: Store) -> None:
    fields = {b"f%d" % n: b"v" for n in range(900)} | {b"kind": b"mail", b"body": b"x" * 1_000_000}

    assert store.run(letters.restore(store.keys, [letters.Restore("1-0", fields)])) == ["OK"]
    assert store.lookup("1-0")["body"] == b"x" * 1_000_000
