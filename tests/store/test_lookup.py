"""lookup: a job is found wherever it is, in one step."""

import pytest

from streamjobs.core.errors import Rejected
from tests.store.support import CLOCK, Store, death, delayed, ending, job, later


def test_waiting(store: Store) -> None:
    [one] = store.enqueue(job(1, parks=1))

    assert store.lookup(one) == {
        "state": b"waiting",
        "entry": one.encode(),
        "kind": b"mail",
        "body": b'{"n":1}',
        "meta": b'{"p":1}',
    }


def test_running(store: Store) -> None:
    [claim] = store.started(1)

    found = store.lookup(claim.entry.decode())

    assert 0 <= int(found.pop("idle_ms")) < 10_000
    assert found == {
        "state": b"running",
        "entry": claim.entry,
        "kind": b"mail",
        "body": b'{"n":0}',
        "meta": b"",
        "consumer": b"a",
        "deliveries": b"1",
        "marks": b"0",
        "follows": b"0",
    }


def test_given_back(store: Store) -> None:
    [claim] = store.started(1)
    store.release(claim)

    found = store.lookup(claim.entry.decode())

    assert (found["state"], found["deliveries"]) == (b"waiting", b"1")


def test_scheduled(store: Store) -> None:
    [one] = store.schedule(delayed(1, delay_ms=5000), clock=str(CLOCK))

    assert store.lookup(one) == {
        "state": b"scheduled",
        "due_ms": str(CLOCK + 5000).encode(),
        "retrying": b"0",
        "kind": b"mail",
        "body": b'{"n":1}',
        "meta": b'{"id":"%s"}' % one.encode(),
    }


def test_retrying(store: Store) -> None:
    [claim] = store.started(1)
    store.retry(later(claim, 5000), clock=str(CLOCK))

    found = store.lookup(claim.entry.decode())

    assert (found["state"], found["retrying"], found["due_ms"]) == (
        b"scheduled",
        b"1",
        str(CLOCK + 5000).encode(),
    )


def test_promoted(store: Store) -> None:
    [one] = store.schedule(delayed(1, at_ms=1))
    store.promote()
    [[entry, _]] = store.entries()

    found = store.lookup(one)

    assert (found["state"], found["entry"]) == (b"waiting", entry)


def test_dead(store: Store) -> None:
    [claim] = store.started(1)
    store.bury(death(claim))
    one = claim.entry.decode()

    found = store.lookup(one)

    assert (found["state"], found["entry"].decode(), found["reason"]) == (
        b"dead",
        store.dead_entry(one),
        b"permanent",
    )


def test_ended_with_a_result_and_finished_after_it_is_gone(store: Store) -> None:
    [claim] = store.started(1)
    one = claim.entry.decode()
    store.complete_full(ending(claim, result_ttl_ms=60_000, result=b"1"))

    assert store.lookup(one) == {"state": b"ended", "result": b"1"}
    store.command("DEL", store.keys.result(one))
    assert store.lookup(one) == {"state": b"finished"}


def test_id_up_to_the_last_given_one_is_finished_any_other_unknown(store: Store) -> None:
    [claim] = store.started(1)
    store.complete(claim)
    ms, seq = claim.entry.decode().split("-")

    assert store.state(f"{ms}-{seq}") == "finished"
    assert store.state(f"{int(ms) - 1}-99") == "finished"
    assert store.state(f"{ms}-{int(seq) + 1}") == "unknown"
    assert store.state(f"{int(ms) + 1}-0") == "unknown"


def test_delayed_ids_are_judged_by_their_own_stream(store: Store) -> None:
    store.add(1)
    [one] = store.schedule(delayed(1, delay_ms=9000))
    store.cancel(one)
    ms, seq = one.removeprefix("d").split("-")

    assert store.state(one) == "finished"
    assert store.state(f"d{ms}-{int(seq) + 1}") == "unknown"


def test_nothing_is_known_of_a_queue_that_was_never_used(bare: Store) -> None:
    assert bare.state("1-1") == "unknown"
    assert bare.state("d1-1") == "unknown"


def test_without_a_group_a_job_waits(bare: Store) -> None:
    [one] = bare.add(1)
    bare.command("XGROUP", "CREATE", bare.keys.stream, "audit", "0")

    assert bare.state(one) == "waiting"


def test_entry_that_names_another_job_is_not_it(store: Store) -> None:
    [one] = store.schedule(delayed(1, at_ms=1))
    store.promote()
    [[entry, _]] = store.entries()

    assert store.state(entry.decode()) == "finished"
    assert store.state(one) == "waiting"


@pytest.mark.parametrize(
    "meta", [b"", b"{", b"null", b"7", b'"id"', b'{"id":7}', b"[" * 5000, b"\xff\x00", b'{"id":null}']
)
def test_meta_of_others_hides_no_job(store: Store, meta: bytes) -> None:
    entry = store.command("XADD", store.keys.stream, "*", "kind", "k", "body", "b", "meta", meta)

    assert store.lookup(entry.decode())["meta"] == meta


def test_what_is_no_id_is_refused(store: Store) -> None:
    with pytest.raises(Rejected):
        store.lookup("nonsense")
