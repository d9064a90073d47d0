"""A bounded queue: whatever does not fit is refused, job by job, and only at the front door."""

import pytest

from streamjobs.protocol import config, intake
from streamjobs.protocol.intake import Accepted, Batch
from tests.store.support import Store, death, delayed, job, job_of, later


def full(store: Store, *numbers: int, batch: Batch | None = None) -> dict[int, int]:
    """Enqueue jobs; return which were refused, and the maximum."""
    return send(store, *numbers, batch=batch).full


def send(store: Store, *numbers: int, batch: Batch | None = None) -> Accepted:
    return store.run(intake.enqueue(store.keys, [job(n) for n in numbers], batch or store.batch()))


def bound(store: Store, most: int) -> None:
    store.run(config.declare(store.keys, config.MAX_WAITING, most))


def test_as_many_get_in_as_there_is_room_for(store: Store) -> None:
    store.add(1)
    bound(store, 3)

    accepted = send(store, 1, 2, 3, 4)

    assert accepted.full == {2: 3, 3: 3}
    assert accepted.ids(4) == [*(entry[0].decode() for entry in store.entries()[1:]), "", ""]
    assert store.depth() == 3
    assert store.totals()["enqueued"] == 3


def test_without_a_group_everything_waits(bare: Store) -> None:
    bound(bare, 2)

    assert full(bare, 1) == {}
    assert full(bare, 2, 3) == {1: 2}


def test_what_runs_does_not_wait_and_what_was_given_back_or_parked_does(store: Store) -> None:
    claims = store.started(4)
    bound(store, 3)
    store.release(*claims[:1])
    assert store.admit(*claims[1:3], limits={"c:q": "1"}) == ["GO", "PARKED"]

    assert full(store, 1, 2) == {1: 3}
    store.complete(claims[1], claims[3])
    assert full(store, 3) == {0: 3}
    assert len(store.take()) == 1
    assert full(store, 4, 5) == {1: 3}


def test_after_the_loss_of_the_group_what_runs_again_does_not_wait(store: Store) -> None:
    store.release(*store.started(2))
    store.lose_group()
    store.make_group()
    bound(store, 2)

    assert full(store, 1) == {0: 2}
    assert len(store.claim()) == 2
    # The set of what was given back still names those two.
    assert full(store, 2, 3, 4) == {2: 2}


def test_a_batch_that_comes_again_is_told_the_same(store: Store) -> None:
    bound(store, 1)
    batch = store.batch()
    first = send(store, 1, 2, batch=batch)
    store.complete(*store.claim())

    assert send(store, 1, 2, batch=batch) == first
    assert store.depth() == 0
    # Room or not, it is the next batch that gets it.
    assert full(store, 2) == {}


def test_a_duplicate_is_one_also_when_there_is_no_room(store: Store) -> None:
    [holder] = store.enqueue(job(1, dedupe_key="k"))
    bound(store, 2)

    jobs = [job(2, dedupe_key="k"), job(3), job(4, dedupe_key="l"), job(5, dedupe_key="l")]
    accepted = store.run(intake.enqueue(store.keys, jobs, store.batch()))

    assert (accepted.held, accepted.full) == ({0: holder}, {2: 2, 3: 2})
    assert store.command("EXISTS", store.keys.dedupe("l")) == 0
    bound(store, 3)
    [other] = store.enqueue(job(6, dedupe_key="l"))
    assert store.state(other) == "waiting"


def test_newer_arguments_need_no_room(store: Store) -> None:
    store.enqueue(job(1, dedupe_key="k", dedupe_mode="l"))
    bound(store, 1)

    newer = job(2, dedupe_key="k", dedupe_mode="l")
    assert store.run(intake.enqueue(store.keys, [newer], store.batch())).full == {}

    [begun] = store.start(*store.claim())
    assert begun is not None
    assert begun.body == newer.body


def test_delayed_jobs_retries_and_replays_pass(store: Store) -> None:
    first, second = store.started(2)
    store.retry(later(first, 0))
    store.bury(death(second))
    store.add(1)
    bound(store, 1)

    store.schedule(delayed(3, at_ms=1))
    store.promote()
    assert store.depth() == 3
    assert store.replay(job_of(second)) == ["OK"]
    assert store.depth() == 4
    assert full(store, 4) == {0: 1}


@pytest.mark.parametrize(
    ("value", "refused"), [("1", {0: 1, 1: 1}), ("3", {1: 3}), (config.OFF, {}), (None, {0: 2, 1: 2})]
)
def test_what_an_operator_sets_goes_before_the_code(store: Store, value: str | None, refused: dict[int, int]) -> None:
    bound(store, 2)
    store.run(config.override(store.keys, config.MAX_WAITING, "9"))
    store.add(2)

    store.run(config.override(store.keys, config.MAX_WAITING, value))

    assert full(store, 1, 2) == refused
    assert store.run(config.said(store.keys, config.MAX_WAITING)) == (value or "", "2")
