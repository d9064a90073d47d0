"""Dedupe keys over the whole life of a job: who holds one, and which event gives it back."""

from typing import Any

import msgspec
import pytest

from streamjobs.core.codec import encode_meta
from streamjobs.core.job import Meta
from streamjobs.protocol import letters
from tests.store.support import Store, death, delayed, ending, job, job_of, later


def holder(store: Store, key: str = "k") -> str:
    """Return the job that holds a key, which must have a TTL; "" for none."""
    found = store.command("GET", store.keys.dedupe(key))
    assert found is None or store.command("PTTL", store.keys.dedupe(key)) > 0
    return found.decode() if found else ""


def replay(store: Store, one: str, meta: Meta) -> list[str]:
    raw = encode_meta(msgspec.structs.replace(meta, id=one, generation=1))
    item = letters.Replay(store.dead_entry(one), one, raw, meta.dedupe_key, window_ms=meta.dedupe_window_ms)
    return store.run(letters.replay(store.keys, [item]))


@pytest.mark.parametrize("end", ["complete", "bury", "cancel"])
def test_case_E1_the_end_of_its_job_gives_a_key_back_at_once(store: Store, end: str) -> None:
    [first] = store.enqueue(job(1, dedupe_key="k"))
    [claim] = store.claim()
    assert store.enqueue(job(2, dedupe_key="k")) == [first]

    match end:
        case "complete":
            store.complete_full(ending(claim, dedupe_key="k"))
        case "bury":
            store.bury(death(claim, dedupe_key="k"))
        case _:
            store.cancel_owned(first, "k")

    assert holder(store) == ""
    [second] = store.enqueue(job(3, dedupe_key="k"))
    assert second != first
    assert holder(store) == second


def test_case_E3_replay_of_a_dead_job_whose_key_is_taken_names_the_holder_and_leaves_it_dead(store: Store) -> None:
    [first] = store.enqueue(job(1, dedupe_key="k"))
    store.bury(death(store.claim()[0], dedupe_key="k"))
    [second] = store.enqueue(job(2, dedupe_key="k"))

    assert store.replay(first, key="k") == [second]
    assert (store.state(first), store.state(second), holder(store)) == ("dead", "waiting", second)

    store.complete_full(ending(store.claim()[0], dedupe_key="k"))
    assert store.replay(first, key="k") == ["OK"]
    assert holder(store) == first
    assert store.enqueue(job(3, dedupe_key="k")) == [first]


def test_case_E4_who_took_over_from_a_dead_worker_gives_the_key_back(store: Store) -> None:
    [first] = store.enqueue(job(1, dedupe_key="k"))
    [taken] = store.retaken(store.claim())
    assert store.enqueue(job(2, dedupe_key="k")) == [first]

    store.complete_full(ending(taken, dedupe_key="k"))

    assert store.enqueue(job(3, dedupe_key="k")) != [first]


def test_case_E4_a_retry_a_snooze_and_a_release_keep_the_key(store: Store) -> None:
    [first] = store.enqueue(job(1, dedupe_key="k"))
    store.retry(later(store.claim()[0], 1, "k"))
    assert holder(store) == first
    store.promote(clock="9000000000000")
    store.snooze(later(store.claim()[0], 1, "k"))
    assert holder(store) == first
    store.promote(clock="9000000000000")
    store.release(store.claim()[0], mark=1)

    assert store.enqueue(job(2, dedupe_key="k")) == [first]


@pytest.mark.parametrize("end", ["complete", "bury", "cancel", "purge"])
def test_case_E8_an_owner_whose_key_has_lapsed_does_not_take_a_successors_key(store: Store, end: str) -> None:
    [first] = store.enqueue(job(1, dedupe_key="k"))
    [claim] = store.claim()
    store.command("DEL", store.keys.dedupe("k"))
    [second] = store.enqueue(job(2, dedupe_key="k"))

    match end:
        case "complete":
            store.complete_full(ending(claim, dedupe_key="k"))
        case "cancel":
            store.cancel_owned(first, "k")
        case _:
            store.bury(death(claim, dedupe_key="k"))
            store.run(letters.purge(store.keys, [letters.Purge(store.dead_entry(first), first, "k")]))

    assert holder(store) == second


@pytest.mark.parametrize("build", ["enqueue", "schedule"])
def test_case_E10_duplicates_within_one_batch_are_the_first_of_them(store: Store, build: str) -> None:
    make = job if build == "enqueue" else delayed
    send = store.enqueue if build == "enqueue" else store.schedule

    ids = send(make(0), make(1, dedupe_key="k"), make(2, dedupe_key="l"), make(3, dedupe_key="k"), make(4))

    assert ids[3] == ids[1]
    assert len(set(ids)) == 4
    assert (holder(store, "k"), holder(store, "l")) == (ids[1], ids[2])
    assert store.totals()["enqueued"] == 4


def test_case_E2_a_window_outlives_completion_and_death(store: Store) -> None:
    window: dict[str, Any] = {"dedupe_key": "k", "dedupe_window_ms": 300_000}
    [first] = store.enqueue(job(1, **window))
    assert 290_000 < store.command("PTTL", store.keys.dedupe("k")) <= 300_000

    store.bury(death(store.claim()[0], dedupe_key=Meta(**window).held_key))

    assert store.enqueue(job(2, **window)) == store.enqueue(job(2, dedupe_key="k")) == [first]
    assert store.state(first) == "dead"


def test_a_window_of_a_delayed_job_begins_with_its_due_time(store: Store) -> None:
    store.schedule(delayed(1, delay_ms=1_000_000, dedupe_key="k", dedupe_window_ms=1000))

    assert 900_000 < store.command("PTTL", store.keys.dedupe("k")) <= 1_001_000


def test_replay_of_a_job_whose_own_window_is_open_begins_it_anew(store: Store) -> None:
    meta = Meta(dedupe_key="k", dedupe_window_ms=300_000)
    [first] = store.enqueue(job(1, dedupe_key="k", dedupe_window_ms=300_000))
    store.bury(death(store.claim()[0]))
    store.command("PEXPIRE", store.keys.dedupe("k"), 1000)

    assert replay(store, first, meta) == ["OK"]

    assert (store.state(first), holder(store)) == ("waiting", first)
    assert 290_000 < store.command("PTTL", store.keys.dedupe("k")) <= 300_000


def test_a_cancel_and_a_purge_close_a_window(store: Store) -> None:
    window: dict[str, Any] = {"dedupe_key": "k", "dedupe_window_ms": 300_000}
    [first] = store.enqueue(job(1, **window))
    store.cancel_owned(first, "k")
    assert holder(store) == ""

    [second] = store.enqueue(job(2, **window))
    store.bury(death(store.claim()[0]))
    store.run(letters.purge(store.keys, [letters.Purge(store.dead_entry(second), second, "k")]))
    assert holder(store) == ""


def test_after_all_jobs_have_ended_no_key_is_left(store: Store) -> None:
    store.enqueue(job(1, dedupe_key="k"), job(2, dedupe_key="l"), job(3, dedupe_key="k"))
    claims = store.claim()

    store.complete_full(*(ending(claim, dedupe_key=key) for claim, key in zip(claims, "kl", strict=True)))

    assert [job_of(claim) for claim in claims] != []
    assert store.left() == set()
