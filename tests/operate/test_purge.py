"""Purge and delete: what has not started ends as cancelled, what runs is spared, and the counts add up."""

from typing import Any

import pytest

from streamjobs.client.talk import talk
from streamjobs.core.errors import NotFound, Refused
from streamjobs.operate import delete as deletion
from streamjobs.operate import purge as purging
from streamjobs.operate.live import Live, Selection
from streamjobs.operate.purge import STATES, Purged
from streamjobs.operate.stats import snapshot
from streamjobs.protocol import intake, upkeep
from streamjobs.protocol.calls import Command, Request
from tests.operate.driven import calls, driven
from tests.store.support import Store, death, delayed, job, job_of, later


@pytest.fixture
def joined(store: Store) -> Store:
    store.run(intake.announce(store.keys.namespace, [store.keys.queue]))
    store.make_group()
    return store


def purge(store: Store, *states: Live, means: Selection | None = None, limit: int = 0) -> Purged:
    part = purging.purge(store.keys, states or STATES, means or Selection(), "not wanted", limit=limit)
    return talk(store.executor, part)


def delete(store: Store, *, force: bool = False) -> None:
    talk(store.executor, deletion.delete(store.keys.namespace, store.keys.queue, force=force))


def adds_up(store: Store) -> bool:
    """Say whether what came in is what ended and what is there."""
    totals = store.totals()
    [now] = talk(store.executor, snapshot(store.keys.namespace, [store.keys.queue])).queues
    ended = sum(totals.get(word, 0) for word in ("done", "dead", "cancelled"))
    live = now.waiting + now.running + now.scheduled + now.retrying
    return totals.get("enqueued", 0) + totals.get("replayed", 0) == ended + live


def mixture(store: Store) -> list[str]:
    """Put jobs everywhere; return those that run."""
    store.add(20)
    claims = store.claim(count=8)
    store.retry(later(claims[0], 60_000), later(claims[1], 60_000))
    store.bury(death(claims[2]))
    store.release(claims[3])
    store.admit(claims[4], lanes=("c:q",), limits={"c:q": "1"})
    store.admit(claims[5], lanes=("c:q",), limits={"c:q": "1"})
    store.schedule(*(delayed(n, delay_ms=60_000) for n in range(3)))
    return [job_of(one) for one in (claims[4], claims[6], claims[7])]


def test_everything_but_what_runs_ends(joined: Store) -> None:
    running = mixture(joined)

    done = purge(joined)

    assert (done.jobs, done.next) == (12 + 2 + 2 + 3, "")
    assert [joined.state(one) for one in running] == ["running"] * 3
    [now] = talk(joined.executor, snapshot(joined.keys.namespace, ["q"])).queues
    assert (now.waiting, now.running, now.scheduled, now.retrying, now.dead) == (0, 3, 0, 0, 1)
    assert joined.totals()["cancelled"] == done.jobs
    assert adds_up(joined)


def test_only_what_is_selected_ends(joined: Store) -> None:
    joined.add(3, "mail")
    joined.add(2, "web")
    joined.schedule(delayed(1, delay_ms=60_000, kind="web"))

    assert purge(joined, Live.WAITING, means=Selection(("web",))).jobs == 2
    assert joined.depth() == 3
    assert purge(joined, means=Selection(until_ms=1)).jobs == 0
    assert purge(joined, limit=2).jobs == 2
    assert adds_up(joined)


@pytest.mark.parametrize("jobs", [199, 200, 201, 450])
def test_pages_of_any_size_end_whole(joined: Store, jobs: int) -> None:
    joined.add(jobs)
    at = 1_900_000_000_000
    joined.schedule(*(delayed(n, at_ms=at) for n in range(jobs)))
    seen = []
    part = purging.purge(joined.keys, STATES, Selection(), "", tell=lambda so_far: seen.append(so_far.jobs))

    assert talk(joined.executor, part).jobs == 2 * jobs

    assert seen == sorted(seen)
    assert max(b - a for a, b in zip([0, *seen], seen, strict=False)) <= purging.STEP
    assert joined.left() == set()


def test_what_is_passed_over_does_not_hide_what_comes_behind(joined: Store) -> None:
    """Jobs of another kind, due at the same instant, more than a page of them."""
    at = 1_900_000_000_000
    joined.schedule(*(delayed(n, at_ms=at, kind="web" if n % 7 == 0 else "mail") for n in range(500)))

    assert purge(joined, Live.SCHEDULED, means=Selection(("web",))).jobs == 72
    assert joined.command("ZCARD", joined.keys.scheduled) == 428


def test_keys_are_free_and_results_are_told(joined: Store) -> None:
    [held] = joined.enqueue(job(1, dedupe_key="k", result_ttl_ms=60_000))
    joined.enqueue(job(2, dedupe_key="w", dedupe_window_ms=60_000))

    purge(joined)

    assert joined.lookup(held)["result"] == b'{"state":"cancelled","reason":"not wanted"}'
    assert joined.left() == set()
    assert joined.enqueue(job(3, dedupe_key="k"), job(4, dedupe_key="w")) != [held, held]
    assert joined.depth() == 2


def test_a_job_that_starts_before_its_turn_is_left_running(joined: Store) -> None:
    joined.add(2)
    part = purging.purge(joined.keys, [Live.WAITING], Selection(), "")

    def before(requests: list[Request[Any]]) -> None:
        if calls(requests, "cancel"):
            joined.claim(count=1)

    done = driven(joined.executor, part, before)

    assert (done.jobs, done.running, done.gone) == (1, 1, 0)
    assert adds_up(joined)


def test_what_becomes_due_meanwhile_is_met_at_the_end(joined: Store) -> None:
    joined.schedule(*(delayed(n, at_ms=1) for n in range(3)))
    part = purging.purge(joined.keys, STATES, Selection(), "")

    def before(requests: list[Request[Any]]) -> None:
        """Promote what is scheduled just before it is looked for."""
        if any(isinstance(one, Command) and one.words[:2] == ["ZRANGE", joined.keys.scheduled] for one in requests):
            joined.promote()

    assert driven(joined.executor, part, before).jobs == 3


def test_counting_looks_and_changes_nothing(joined: Store) -> None:
    mixture(joined)

    assert talk(joined.executor, purging.count(joined.keys, STATES, Selection())) == 19
    assert talk(joined.executor, purging.count(joined.keys, STATES, Selection(), 5)) == 5
    assert talk(joined.executor, purging.count(joined.keys, STATES, Selection(("web",)))) == 0
    assert adds_up(joined)


def test_a_queue_with_jobs_is_not_deleted(joined: Store) -> None:
    joined.add(2)

    with pytest.raises(Refused, match=r"queue q is not deleted: it holds jobs \(2\)"):
        delete(joined)

    assert joined.depth() == 2


def test_a_queue_that_is_served_is_not_deleted(joined: Store) -> None:
    joined.promote("a")

    with pytest.raises(Refused, match=r"workers serve it \(1\)"):
        delete(joined)

    delete(joined, force=True)
    assert joined.command("EXISTS", joined.keys.workers) == 0


def test_by_force_a_queue_goes_with_its_jobs(joined: Store) -> None:
    mixture(joined)
    joined.enqueue(job(2, dedupe_key="k"))
    joined.command("XADD", joined.keys.dead, "*", "not", "ours")

    delete(joined, force=True)

    with pytest.raises(NotFound):
        delete(joined)
    _, keys = joined.command("SCAN", 0, "MATCH", f"{joined.keys.base}*", "COUNT", 100_000)
    assert {key.decode().removeprefix(joined.keys.base).partition(":")[0] for key in keys} <= {"producer"}


def test_a_queue_into_which_jobs_keep_coming_is_not_deleted(joined: Store) -> None:
    part = deletion.delete(joined.keys.namespace, "q", force=True)

    def before(requests: list[Request[Any]]) -> None:
        if calls(requests, "delete"):
            joined.add(1)

    with pytest.raises(Refused, match="new jobs keep coming"):
        driven(joined.executor, part, before)

    assert joined.depth() == 1


def test_an_interrupted_deletion_is_repeated(joined: Store) -> None:
    """The name goes last, so the queue is found again."""
    part = deletion.delete(joined.keys.namespace, "q")

    def before(requests: list[Request[Any]]) -> None:
        if any(isinstance(one, Command) and one.words[0] == "UNLINK" for one in requests):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        driven(joined.executor, part, before)

    delete(joined)

    with pytest.raises(NotFound):
        delete(joined)


def test_contents_are_what_goes(joined: Store) -> None:
    mixture(joined)
    joined.limit("c:q", "5")
    joined.run(upkeep.promote(joined.keys, "a", rung=False, note="1", room=0))

    found = talk(joined.executor, deletion.contents(joined.keys.namespace, "q"))

    assert (found.jobs, found.limits, found.crons, found.stats.workers) == (23, 1, 0, 1)
    assert found.parts == [
        (14, "waiting job"), (3, "running job"), (2, "retrying job"), (3, "scheduled job"), (1, "dead job"),
        (1, "run-time limit"),
    ]  # fmt: skip
