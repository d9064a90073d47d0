"""cancel: a job ends as cancelled wherever it is; whoever runs it learns it when it renews."""

from streamjobs.protocol import settle
from tests.store.support import CLOCK, Store, death, delayed, ending, job, later


def test_says_what_each_job_was_and_leaves_no_trace(store: Store) -> None:
    running, given_back = store.started(2)
    store.release(given_back, mark=1)
    [waiting] = store.enqueue(job(2))
    [scheduled] = store.schedule(delayed(3, delay_ms=9000))

    words = store.cancel(running.entry.decode(), given_back.entry.decode(), waiting, scheduled, "1-1", "d1-1")

    assert words == ["RUNNING", "WAITING", "WAITING", "SCHEDULED", "GONE", "GONE"]
    assert store.left() == set()
    assert store.pending() == {}
    assert store.totals()["cancelled"] == 4


def test_moved_and_retried_jobs_are_found_by_their_id(store: Store) -> None:
    [moved] = store.schedule(delayed(1, at_ms=1))
    store.promote()
    [retried] = store.enqueue(job(2))
    claims = store.claim()
    store.retry(later(claims[1]))

    assert store.cancel(moved, retried) == ["RUNNING", "SCHEDULED"]
    assert store.left() == set()


def test_entry_that_carries_another_job_is_not_taken_for_it(store: Store) -> None:
    """A promoted job's entry has an id of its own, which names no job."""
    [moved] = store.schedule(delayed(1, at_ms=1))
    store.promote()
    [[entry, _]] = store.entries()

    assert store.cancel(entry.decode()) == ["GONE"]
    assert store.state(moved) == "waiting"


def test_dead_job_stays_dead(store: Store) -> None:
    [claim] = store.started(1)
    store.bury(death(claim))

    assert store.cancel(claim.entry.decode()) == ["DEAD"]
    assert store.left() == {"dead", "dead:ids"}
    assert "cancelled" not in store.totals()


def test_ended_job_is_gone(store: Store) -> None:
    [claim] = store.started(1)
    store.complete(claim)

    assert store.cancel(claim.entry.decode()) == ["GONE"]


def test_twice_counts_once(store: Store) -> None:
    [one] = store.add(1)

    assert store.cancel(one, one) == ["WAITING", "GONE"]
    assert store.totals()["cancelled"] == 1


def test_cancelled_entry_is_never_delivered(store: Store) -> None:
    ids = store.add(3)
    store.cancel(ids[1])

    assert [claim.entry.decode() for claim in store.claim()] == [ids[0], ids[2]]


def test_holder_can_do_nothing_more_with_it(store: Store) -> None:
    [claim] = store.started(1)
    store.cancel(claim.entry.decode())

    assert store.renew(claim) == {0: "CANCELLED"}
    assert store.retry(later(claim)) == {0: "LOST"}
    assert store.bury(death(claim)) == {0: "LOST"}
    assert store.complete(claim) == {0: "LOST"}
    assert store.left() == set()


def test_handler_cancels_its_own_job_by_its_fence(store: Store) -> None:
    claims = store.started(2)
    [taken] = store.retaken(claims[1:])

    words = store.run(settle.cancel(store.keys, "a", [ending(claim) for claim in claims]))

    assert words == ["RUNNING", "LOST"]
    assert store.pending() == {taken.entry: (b"b", 2)}


def test_dedupe_key_is_free_and_how_it_ended_is_kept(store: Store) -> None:
    [one] = store.enqueue(job(1, dedupe_key="k", result_ttl_ms=60_000))
    ends = settle.Ending(b"", 0, one, "k", 60_000, b"cancelled")

    assert store.run(settle.cancel(store.keys, "", [ends])) == ["WAITING"]

    assert store.lookup(one) == {"state": b"ended", "result": b"cancelled"}
    assert store.enqueue(job(2, dedupe_key="k")) != [one]


def test_refused_cancel_frees_nothing(store: Store) -> None:
    [one] = store.enqueue(job(1, dedupe_key="k"))
    [claim] = store.claim()
    [taken] = store.retaken([claim])
    ends = ending(claim, dedupe_key="k", result_ttl_ms=1000, result=b"cancelled")

    assert store.run(settle.cancel(store.keys, "a", [ends])) == ["LOST"]

    assert store.command("GET", store.keys.dedupe("k")).decode() == one
    assert store.command("EXISTS", store.keys.result(one)) == 0
    assert store.pending() == {taken.entry: (b"b", 2)}


def test_needs_no_group(bare: Store) -> None:
    ids = bare.add(2)
    bare.command("XGROUP", "CREATE", bare.keys.stream, "audit", "0")

    assert bare.cancel(ids[0]) == ["WAITING"]
    assert bare.depth() == 1


def test_counts_per_kind(store: Store) -> None:
    ids = store.enqueue(job(1), job(2, "web"), job(3, "web"))
    scheduled = store.schedule(delayed(1, delay_ms=9, kind="log"))
    items = [settle.Ending(b"", 0, one) for one in ids + scheduled]

    store.run(settle.cancel(store.keys, "", items, str(CLOCK)))

    assert store.minute() == {"cancelled:mail": 1, "cancelled:web": 2, "cancelled:log": 1}


def test_who_spares_what_runs_cancels_the_rest(store: Store) -> None:
    names = store.add(4)
    claims = store.claim(count=3)
    store.release(claims[1])
    store.admit(claims[2], lanes=("c:q",), limits={"c:q": "1"})
    [delayed_] = store.schedule(delayed(1, delay_ms=60_000))
    items = [settle.Ending(b"", 0, one) for one in [*names, delayed_]]

    words = store.run(settle.cancel(store.keys, settle.SPARING, items))

    assert words == ["BUSY", "WAITING", "BUSY", "WAITING", "SCHEDULED"]
    assert store.state(names[0]) == "running"
    assert store.totals()["cancelled"] == 3


def test_newer_arguments_go_with_a_job_that_is_not_spared(store: Store) -> None:
    one = job(1, dedupe_key="k", dedupe_mode="l")
    [name] = store.enqueue(one)
    store.enqueue(job(2, dedupe_key="k", dedupe_mode="l"))

    assert store.run(settle.cancel(store.keys, settle.SPARING, [settle.Ending(b"", 0, name, "k")])) == ["WAITING"]

    assert store.depth() == 0
    assert store.left() == set()
