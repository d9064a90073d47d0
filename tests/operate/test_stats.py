"""stats: counts that equal the truth, ages that tell of a backlog, and no effect on anything."""

from collections.abc import Iterator

import msgspec
import pytest

from streamjobs.client.talk import talk
from streamjobs.core.errors import NotFound
from streamjobs.operate.stats import QueueStats, Snapshot, snapshot
from streamjobs.protocol import intake, upkeep
from tests.store.support import LEASE_MS, Store, death, delayed, job, later


def stats(store: Store) -> QueueStats:
    [found] = look(store).queues
    return found


def look(store: Store, *names: str) -> Snapshot:
    return talk(store.executor, snapshot(store.keys.namespace, names or [store.keys.queue]))


@pytest.fixture
def known(store: Store) -> Iterator[Store]:
    """A queue that has been announced, and has a group."""
    store.run(intake.announce(store.keys.namespace, [store.keys.queue]))
    store.make_group()
    return store


def meet(store: Store, *, slots: int = 8) -> None:
    """Let a worker show itself."""
    store.run(upkeep.promote(store.keys, "a", rung=False, note=str(slots), room=1000))


def test_queue_without_anything(known: Store) -> None:
    found = stats(known)

    assert msgspec.structs.replace(found, used_bytes=0) == QueueStats("q", lease_ms=LEASE_MS)


def test_stream_without_a_group(store: Store) -> None:
    """Before the first worker: the server answers the question for the group with an error."""
    store.add(3)

    found = stats(store)

    assert (found.waiting, found.running, found.oldest_ready_ms >= 0) == (3, 0, True)


def test_totals_that_are_none_hide_nothing(store: Store) -> None:
    store.add(3)
    store.command("DEL", store.keys.totals)
    store.command("SET", store.keys.totals, "x", "PX", 60_000)

    found = stats(store)

    assert (found.waiting, found.totals) == (3, {})


def test_unknown_queue(store: Store) -> None:
    with pytest.raises(NotFound, match="queue q: there is none"):
        look(store)


def test_all_queues_by_default(known: Store) -> None:
    known.run(intake.announce(known.keys.namespace, ["b", "a"]))

    found = talk(known.executor, snapshot(known.keys.namespace))

    assert [queue.queue for queue in found.queues] == ["a", "b", "q"]


def test_case_G7_counts_equal_the_truth(known: Store) -> None:
    """Waiting, running, scheduled, retrying and dead, with a released claim and an entry deleted by hand."""
    known.add(10)
    claims = known.claim(count=6)
    known.retry(later(claims[0], 60_000))
    known.bury(death(claims[1]))
    known.release(claims[2])
    known.complete(claims[3])
    known.schedule(delayed(1, delay_ms=60_000), delayed(2, delay_ms=60_000))
    [hand] = known.claim(count=1)
    known.command("XACK", known.keys.stream, "workers", hand.entry)
    known.command("XDEL", known.keys.stream, hand.entry)

    found = stats(known)

    assert found.running == 2
    assert found.waiting == 3 + 1
    assert (found.scheduled, found.retrying, found.dead) == (2, 1, 1)
    assert (found.done, found.failed, found.totals["enqueued"]) == (1, 2, 12)


def test_case_J1_a_delayed_job_is_not_ready(known: Store) -> None:
    known.schedule(delayed(delay_ms=3_600_000))

    assert stats(known).oldest_ready_ms == 0


def test_job_past_its_time_is_ready(known: Store) -> None:
    """Nobody promotes: no worker is there."""
    [one] = known.schedule(delayed(delay_ms=60_000))
    known.command("ZADD", known.keys.scheduled, known.run(upkeep.server_time()) - 60_000, one)

    assert 60_000 <= stats(known).oldest_ready_ms < 70_000


def at(store: Store, age_ms: int) -> str:
    """Put a job on the stream that became ready so long ago; the stream must be empty."""
    entry = f"{store.run(upkeep.server_time()) - age_ms}-0"
    store.command("XADD", store.keys.stream, entry, "kind", "mail", "body", "{}")
    return entry


def test_age_of_the_oldest_waiting_job(known: Store) -> None:
    meet(known)
    at(known, 60_000)
    at(known, 30_000)
    assert 60_000 <= stats(known).oldest_ready_ms < 70_000

    known.claim(count=1)

    assert 30_000 <= stats(known).oldest_ready_ms < 40_000


def test_age_of_a_released_job(known: Store) -> None:
    meet(known)
    at(known, 60_000)
    claims = known.claim()
    assert stats(known).oldest_ready_ms == 0

    known.release(*claims)

    assert 60_000 <= stats(known).oldest_ready_ms < 70_000


def test_what_dead_workers_hold_is_backlog(known: Store) -> None:
    at(known, 60_000)
    known.claim()

    found = stats(known)

    assert (found.workers, found.running) == (0, 1)
    assert 60_000 <= found.oldest_ready_ms < 70_000


def test_live_workers_and_their_slots(known: Store) -> None:
    now_ms = known.run(upkeep.server_time())
    known.command("HSET", known.keys.workers, "a", f"{now_ms} 8", "b", f"{now_ms - 5_000} 100")
    known.command("HSET", known.keys.workers, "gone", f"{now_ms - 60_000} 50", "odd", f"{now_ms} note")

    found = stats(known)

    assert (found.workers, found.slots) == (3, 108)


def test_lost_group_shows_everything_as_waiting(known: Store) -> None:
    known.add(3)
    known.claim(count=2)
    known.lose_group()

    found = stats(known)

    assert (found.waiting, found.running) == (3, 0)


def test_looking_changes_nothing(known: Store) -> None:
    known.enqueue(job(1))
    known.claim()
    before = (known.entries(), known.pending(), known.totals(), known.left())

    stats(known)

    assert (known.entries(), known.pending(), known.totals(), known.left()) == before


def test_cost_does_not_grow_with_the_jobs(known: Store) -> None:
    """Two round trips after the first, with a fixed number of commands per queue."""
    known.add(500)
    rounds = []
    conversation = snapshot(known.keys.namespace, ["q", "other"])
    known.run(intake.announce(known.keys.namespace, ["other"]))
    requests = next(conversation)
    try:
        while True:
            rounds.append(len(requests))
            requests = conversation.send(known.executor.run_all(requests))
    except StopIteration:
        pass

    assert rounds == [3, 34, 2]
