"""start: the server hears of a handler that is about to begin, and gives back a key or newer arguments."""

from typing import Any

from streamjobs.core.job import LATEST, UNTIL_STARTED
from streamjobs.protocol.leases import Begun
from tests.store.support import Store, ending, job

ONCE: dict[str, Any] = {"dedupe_key": "k", "dedupe_mode": UNTIL_STARTED}
NEWEST: dict[str, Any] = {"dedupe_key": "k", "dedupe_mode": LATEST}


def test_key_that_is_held_until_the_start_is_free_with_it(store: Store) -> None:
    [first] = store.enqueue(job(1, **ONCE))
    [claim] = store.claim()
    assert store.enqueue(job(2, **ONCE)) == [first]

    assert store.start(claim, key="k") == [Begun()]

    [second] = store.enqueue(job(3, **ONCE))
    assert second != first


def test_again_it_leaves_the_key_of_the_next_one_alone(store: Store) -> None:
    """A repetition after a lost reply, and the start of a claim that was taken over."""
    store.enqueue(job(1, **ONCE))
    [claim] = store.claim()
    store.start(claim, key="k")
    [second] = store.enqueue(job(2, **ONCE))

    assert store.start(claim, key="k") == [Begun()]
    [taken] = store.retaken([claim])
    assert store.start(taken, consumer="b", key="k") == [Begun()]
    store.complete_full(ending(taken, dedupe_key="k"))

    assert store.enqueue(job(3, **ONCE)) == [second]


def test_who_lost_its_claim_gives_nothing_back_and_takes_nothing(store: Store) -> None:
    [first, other] = store.enqueue(job(1, **ONCE), job(2, dedupe_key="l", dedupe_mode=LATEST))
    claims = store.claim()
    store.enqueue(job(3, dedupe_key="l", dedupe_mode=LATEST))
    store.retaken(claims)

    assert store.start(claims[0], key="k") == [None]
    assert store.start(claims[1]) == [None]

    assert store.enqueue(job(4, **ONCE)) == [first]
    assert store.lookup(other)["follows"] == b"1"


def test_newer_arguments_are_taken_once_and_stay_the_jobs_own(store: Store) -> None:
    store.enqueue(job(1, **NEWEST))
    [claim] = store.claim()
    assert store.start(claim) == [Begun()]
    store.enqueue(job(2, **NEWEST), job(3, **NEWEST))

    assert store.start(claim) == [Begun(1, b'{"n":3}')]
    assert store.start(claim) == [Begun(1, b'{"n":3}')]
    [taken] = store.retaken([claim])
    assert store.start(taken, consumer="b") == [Begun(1, b'{"n":3}')]


def test_a_job_that_nobody_let_expect_newer_arguments_starts_with_its_own(store: Store) -> None:
    """Written by hand, or of a server that lost the hash."""
    store.command("XADD", store.keys.stream, "*", "kind", "mail", "body", "{}", "meta", '{"dk":"k","dm":"l"}')

    assert store.start(*store.claim()) == [Begun()]


def test_a_batch_answers_in_order(store: Store) -> None:
    store.enqueue(*(job(n, dedupe_key=f"k{n}", dedupe_mode=LATEST) for n in range(100)))
    store.enqueue(*(job(100 + n, dedupe_key=f"k{n}", dedupe_mode=LATEST) for n in range(0, 100, 2)))
    claims = store.claim()
    store.complete(claims[7])

    rows = store.start(*claims)

    assert rows[:3] == [Begun(1, b'{"n":100}'), Begun(), Begun(1, b'{"n":102}')]
    assert rows[7] is None
