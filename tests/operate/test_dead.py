"""Dead jobs: selected page by page, newest first, replayed and purged in bounded batches."""

import pytest

from streamjobs.core.errors import NotFound, Refused
from streamjobs.operate import dead
from streamjobs.operate.dead import Dead, Selection
from streamjobs.operate.jobs import JobStatus
from streamjobs.protocol.keys import QueueKeys
from tests.store.support import Store, death, job, job_of

ALL = Selection()


@pytest.fixture
def died(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A queue with 7 dead of kind mail and 3 of kind web, read in pages of 3."""
    monkeypatch.setattr(dead, "PAGE", 3)
    store.make_group()
    for kind, count, reason, error in (
        ("mail", 7, "exhausted", "TimeoutError: slow"),
        ("web", 3, "permanent", "ValueError: no"),
    ):
        for claim in store.started(count, kind):
            store.bury(death(claim, reason, error))
    return store


def all_of(store: Store, selection: Selection = ALL, limit: int = 0) -> list[JobStatus]:
    return list(Dead(store.executor, [store.keys], selection).scan(limit))


def test_newest_first_over_all_pages(died: Store) -> None:
    found = all_of(died)

    assert [job.dead_entry for job in found] == [
        entry.decode() for entry, _ in died.command("XREVRANGE", died.keys.dead, "+", "-")
    ]
    assert [job.kind for job in found] == ["web"] * 3 + ["mail"] * 7


def test_limit_ends_the_reading(died: Store) -> None:
    assert len(all_of(died, limit=4)) == 4


def test_skipped_are_counted_by_why(died: Store) -> None:
    selected = Dead(died.executor, [died.keys], Selection(kinds=("mail",), error="slow"))
    assert len(list(selected.scan())) == 7
    assert selected.skipped == {"other kind": 3}


def test_time_bounds_are_included(died: Store) -> None:
    times = [int(job.dead_entry.partition("-")[0]) for job in all_of(died)]

    assert len(all_of(died, Selection(since_ms=min(times), until_ms=max(times)))) == 10
    assert all_of(died, Selection(since_ms=max(times) + 1)) == []
    assert all_of(died, Selection(until_ms=min(times) - 1)) == []


def test_queues_are_merged_by_time(died: Store) -> None:
    other = Store("memory://", "unused")
    other.connections, other.executor = died.connections, died.executor
    other.keys = QueueKeys(died.keys.namespace, "other")
    other.make_group()
    for claim in other.started(2, "late"):
        other.bury(death(claim))

    found = list(Dead(died.executor, [died.keys, other.keys], Selection()).scan())

    times = [job.died_ms for job in found]
    assert len(found) == 12
    assert times == sorted(times, reverse=True)


def test_groups_are_counted(died: Store) -> None:
    groups = dead.groups(all_of(died))

    assert [(g.count, g.kind, g.reason, g.error_type) for g in groups] == [
        (7, "mail", "exhausted", "TimeoutError"),
        (3, "web", "permanent", "ValueError"),
    ]
    assert all(group.first_ms <= group.last_ms for group in groups)


def test_replay_takes_what_was_read_and_no_more(died: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead, "MOST", 2)
    selection = Selection(kinds=("mail",))

    parts = list(dead.replay(died.executor, died.keys.namespace, Dead(died.executor, [died.keys], selection).scan()))

    assert [part.done for part in parts] == [2, 2, 2, 1]
    assert [job.kind for job in all_of(died)] == ["web"] * 3
    assert died.depth() == 7


def test_replay_of_what_is_gone_is_counted(died: Store) -> None:
    found = all_of(died)
    list(dead.purge(died.executor, died.keys.namespace, found[:4]))

    [part] = dead.replay(died.executor, died.keys.namespace, found)

    assert (part.done, part.gone, part.conflicts) == (6, 4, {})


def test_replayed_job_keeps_what_belongs_to_it(store: Store) -> None:
    store.make_group()
    store.enqueue(job(1, dedupe_key="k", result_ttl_ms=5000, headers={"a": "b"}, failures=3, crashes=1, generation=2))
    [claim] = store.claim()
    store.bury(death(claim, dedupe_key="k"))

    [part] = dead.replay(store.executor, store.keys.namespace, all_of(store))

    assert part.done == 1
    [again] = store.claim()
    meta = dead.jobs.read_meta(again.meta)
    assert (meta.id, meta.generation, meta.failures, meta.crashes) == (job_of(claim), 3, 0, 0)
    assert (meta.dedupe_key, meta.result_ttl_ms, meta.headers) == ("k", 5000, {"a": "b"})
    assert [attempt.error for attempt in meta.history] == ["no"]


def test_large_bodies_go_in_small_batches(store: Store) -> None:
    store.make_group()
    for n in range(5):
        store.command("XADD", store.keys.stream, "*", "kind", "mail", "body", b"%d" % n + b"x" * 400_000)
    for claim in store.claim():
        store.bury(death(claim))

    parts = list(
        dead.replay(store.executor, store.keys.namespace, Dead(store.executor, [store.keys], Selection()).scan())
    )

    assert [part.done for part in parts] == [2, 2, 1]


def test_row_of_somebody_else_is_shown_and_not_touched(died: Store) -> None:
    died.command("XADD", died.keys.dead, "*", "note", "hello")

    first = all_of(died)[0]

    assert (first.kind, first.reason, first.body) == ("", "", b"")
    [part] = dead.purge(died.executor, died.keys.namespace, [first])
    assert (part.done, part.gone) == (0, 1)
    died.command("XDEL", died.keys.dead, first.dead_entry)


def test_find_by_id(died: Store) -> None:
    first, second, *_ = all_of(died)
    selected = Dead(died.executor, [], Selection(kinds=("web",)))

    assert [job.id for job in selected.find([second.id, first.id], died.keys.namespace)] == [second.id, first.id]
    with pytest.raises(NotFound):
        list(selected.find(["q:99999999999999-0"], died.keys.namespace))
    [waiting] = died.add(1)
    with pytest.raises(Refused, match="is not dead but waiting"):
        list(selected.find([f"q:{waiting}"], died.keys.namespace))


def test_examine_names_who_holds_the_key(store: Store) -> None:
    store.make_group()
    store.enqueue(job(1, dedupe_key="k"))
    [claim] = store.claim()
    store.bury(death(claim, dedupe_key="k"))
    job_id = store.keys.job_id(job_of(claim))
    assert dead.examine(store.executor, store.keys.namespace, job_id)[1] == ""

    [holder] = store.enqueue(job(2, dedupe_key="k"))

    found, held_by = dead.examine(store.executor, store.keys.namespace, job_id)
    assert (found.id, held_by) == (job_id, store.keys.job_id(holder))
