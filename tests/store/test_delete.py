"""delete: a queue that holds nothing is forgotten whole, and one that does not at all."""

import pytest

from streamjobs.protocol import leases, queues, upkeep
from tests.store.support import Store, death, delayed, later

GONE_MS = 15_000
FAR = "4000000000000"
"""An instant when every id of a test is old."""


def delete(store: Store, *, served: bool = False, clock: str = FAR) -> queues.Deleted:
    return store.run(queues.delete(store.keys, served=served, gone_ms=GONE_MS, clock=clock))


def keys_of(store: Store) -> set[str]:
    cursor: bytes = b"0"
    found: set[str] = set()
    while True:
        cursor, keys = store.command("SCAN", cursor, "MATCH", f"{store.keys.namespace}:*", "COUNT", 1000)
        found |= {key.decode().removeprefix(store.keys.base) for key in keys}
        if cursor == b"0":
            return found


def test_every_key_that_has_a_name_goes(store: Store) -> None:
    store.schedule(delayed(1, at_ms=1))
    store.promote()
    store.complete(*store.claim())
    store.command("DEL", store.keys.workers)
    holders_of_jobs = {"stream", "ids", "scheduled", "retries", "dead:ids", "workers"}
    for name, key in store.keys.named.items():
        if name not in holders_of_jobs and store.command("EXISTS", key) == 0:
            store.command("SADD", key, "a")

    assert delete(store) == queues.Deleted("OK", 0)

    assert {name.partition(":")[0] for name in keys_of(store)} <= {"producer", "metrics"}


@pytest.mark.parametrize("where", ["waiting", "running", "released", "scheduled", "retrying", "dead"])
def test_a_queue_with_a_job_anywhere_stays_as_it_is(store: Store, where: str) -> None:
    if where == "scheduled":
        store.schedule(delayed(1, delay_ms=60_000))
    else:
        store.add(1)
    if where in ("running", "released", "retrying", "dead"):
        [claim] = store.claim()
        if where == "released":
            store.release(claim)
        if where == "retrying":
            store.retry(later(claim, 60_000))
        if where == "dead":
            store.bury(death(claim))
    before = keys_of(store)

    assert delete(store, served=True) == queues.Deleted("JOBS", 1)

    assert keys_of(store) == before


def test_a_queue_that_is_served_is_deleted_only_if_that_is_accepted(store: Store) -> None:
    store.promote("a", clock="3999999990000")
    store.promote("long-gone", clock="3999999900000")

    assert delete(store) == queues.Deleted("WORKERS", 1)
    assert store.command("EXISTS", store.keys.config) == 1
    assert delete(store, served=True) == queues.Deleted("OK", 0)


def test_whom_nobody_has_seen_for_long_does_not_serve(store: Store) -> None:
    store.promote("gone", clock="3999999900000")

    assert delete(store).word == "OK"


def test_not_within_a_second_of_the_last_id(store: Store) -> None:
    """A queue made anew at once could give the same id again."""
    [job] = store.add(1)
    store.complete(*store.claim())
    at = int(job.partition("-")[0])

    assert delete(store, clock=str(at + 1)) == queues.Deleted("EARLY", 999)
    assert delete(store, clock=str(at - 500)) == queues.Deleted("EARLY", 1500)
    assert delete(store, clock=str(at + 1000)).word == "OK"


def test_nor_within_a_second_of_the_last_id_of_a_delayed_job(store: Store) -> None:
    [job] = store.schedule(delayed(1, delay_ms=60_000))
    store.cancel(job)
    at = int(job.removeprefix("d").partition("-")[0])

    assert delete(store, clock=str(at + 1)) == queues.Deleted("EARLY", 999)


def test_a_queue_that_is_not_there(bare: Store) -> None:
    assert delete(bare).word == "OK"


def test_a_queue_lives_on_after_its_deletion(store: Store) -> None:
    store.complete(*store.started(1))
    delete(store)

    store.run(leases.join(store.keys, 15_000))
    store.add(2)

    assert len(store.claim()) == 2
    assert store.totals() == {"enqueued": 2}


def test_what_was_counted_by_the_minute_goes_too(store: Store) -> None:
    store.add(1)
    now_ms = store.run(upkeep.server_time())
    store.command("HSET", f"{store.keys.metrics}{now_ms // 60_000 - 1560}", "enqueued:mail", 1)

    assert store.run(queues.forget_minutes(store.keys, now_ms)) == 2
