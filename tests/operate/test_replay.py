"""Dead jobs are put back: in bounded batches, edited, at a rate, or as others; each once, however often it is tried."""

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

from streamjobs.client.talk import Pause, talk
from streamjobs.core.errors import NotFound, UsageError
from streamjobs.core.failpoints import Tripped
from streamjobs.core.options import JobOptions
from streamjobs.core.registry import Registry
from streamjobs.operate import batches, dead
from streamjobs.operate.batches import Done
from streamjobs.operate.edit import Edit
from streamjobs.operate.jobs import read_meta
from streamjobs.operate.replay import How, Replaying, replay
from streamjobs.operate.scan import Scan
from streamjobs.operate.selection import Selection
from streamjobs.protocol import intake
from tests.operate.test_scan import all_of, sibling
from tests.store.support import Store, death, ending, job, job_of

ALL = Selection()
Arm = Callable[[str, Callable[[], None]], None]


@pytest.fixture
def died(store: Store) -> Store:
    """A queue with 7 dead of kind mail and 3 of kind web."""
    store.make_group()
    for kind, count in (("mail", 7), ("web", 3)):
        for claim in store.started(count, kind):
            store.bury(death(claim))
    return store


@pytest.fixture
def there(died: Store) -> Store:
    """Another queue, announced as workers announce theirs."""
    died.run(intake.announce(died.keys.namespace, ["q", "there"]))
    return sibling(died, "there")


def put_back(store: Store, how: How | None = None, selection: Selection = ALL) -> Done:
    return talk(store.executor, replay(store.keys.namespace, Scan([store.keys], selection), how or How()))


def trip() -> None:
    raise Tripped


def test_replay_takes_what_was_read_and_no_more(died: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_BATCH_JOBS", 2)
    told: list[int] = []

    source = Scan([died.keys], Selection(kinds=("mail",)))
    talk(died.executor, replay(died.keys.namespace, source, tell=lambda whole: told.append(whole.done)))

    assert told == [2, 4, 6, 7]
    assert [job.kind for job in all_of(died)] == ["web"] * 3
    assert died.depth() == 7


def test_replay_of_what_is_gone_is_counted(died: Store) -> None:
    found = all_of(died)
    talk(died.executor, dead.purge_these(died.keys.namespace, found[:4], Done()))

    talk(died.executor, Replaying(died.keys.namespace).put_back(found, whole := Done()))

    assert (whole.done, whole.gone, whole.conflicts, whole.left) == (6, 4, {}, {})


def test_replayed_job_keeps_what_belongs_to_it(store: Store) -> None:
    store.make_group()
    store.enqueue(job(1, dedupe_key="k", result_ttl_ms=5000, headers={"a": "b"}, failures=3, crashes=1, generation=2,
                      origin="old:1-0", idempotency_key="old:1-0"))  # fmt: skip
    [claim] = store.claim()
    store.bury(death(claim, dedupe_key="k"))

    assert put_back(store).done == 1

    [again] = store.claim()
    meta = read_meta(again.meta)
    assert (meta.id, meta.generation, meta.failures, meta.crashes) == (job_of(claim), 3, 0, 0)
    assert (meta.dedupe_key, meta.result_ttl_ms, meta.headers) == ("k", 5000, {"a": "b"})
    assert (meta.origin, meta.idempotency_key) == ("old:1-0", "old:1-0")
    assert [attempt.error for attempt in meta.history] == ["no"]
    store.cancel_owned(job_of(claim), "k")


def test_large_bodies_go_in_small_batches(store: Store) -> None:
    store.make_group()
    for n in range(5):
        store.command("XADD", store.keys.stream, "*", "kind", "mail", "body", b"%d" % n + b"x" * 400_000)
    for claim in store.claim():
        store.bury(death(claim))
    told: list[int] = []

    talk(
        store.executor,
        replay(store.keys.namespace, Scan([store.keys], ALL), tell=lambda whole: told.append(whole.done)),
    )

    assert told == [2, 4, 5]


def test_a_rate_is_kept(died: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """In steps of a quarter of a second, by a clock that only the pauses move."""
    clock = [0.0]
    monkeypatch.setattr("streamjobs.operate.replay.monotonic", lambda: clock[0])
    monkeypatch.setattr("time.sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    at: list[tuple[float, int]] = []

    source = Scan([died.keys], ALL)
    how = How(per_s=10)
    talk(died.executor, replay(died.keys.namespace, source, how, lambda whole: at.append((clock[0], whole.done))))

    assert at == [(0.0, 2), (0.2, 4), (0.4, 6), (pytest.approx(0.6), 8), (0.8, 10)]
    assert all(later[0] - sooner[0] == pytest.approx(0.2) for sooner, later in pairwise(at))


def test_a_slow_rate_goes_one_by_one(died: Store) -> None:
    conversation = replay(died.keys.namespace, Scan([died.keys], ALL, limit=2), How(per_s=1 / 60))
    steps = [next(conversation)]
    with suppress(StopIteration):
        while True:
            step = steps[-1]
            steps.append(conversation.send([] if isinstance(step, Pause) else died.executor.run_all(step)))

    [pause] = [step for step in steps if isinstance(step, Pause)]
    assert 59 < pause.seconds <= 60


def test_arguments_are_set_and_the_others_stay_digit_by_digit(store: Store) -> None:
    store.make_group()
    body = b'{"big":393087288629462191123456789,"n": 1,"f":1.0,"g":1e400,"s":"\\u00e9"}'
    store.command("XADD", store.keys.stream, "*", "kind", "mail", "body", body)
    for claim in store.claim():
        store.bury(death(claim))

    assert put_back(store, How(edit=Edit({"n": 2, "new": [None]}))).done == 1

    [claim] = store.claim()
    assert claim.body == b'{"big":393087288629462191123456789,"n":2,"f":1.0,"g":1e400,"s":"\\u00e9","new":[null]}'


def test_jobs_whose_arguments_would_not_fit_are_left_dead_each_with_the_reason(store: Store) -> None:
    store.make_group()
    registry = Registry()

    def mail(n: int, s: str = "") -> None: ...

    registry.add(mail, "mail", JobOptions(), context=object)
    for kind, body in (("mail", b'{"n":1}'), ("mail", b'{"m":1}'), ("mail", b"[1]"), ("other", b'{"n":1}')):
        store.command("XADD", store.keys.stream, "*", "kind", kind, "body", body)
    for claim in store.claim():
        store.bury(death(claim))

    done = put_back(store, How(edit=Edit({"s": "x"}, registry.find)))

    assert done.done == 1
    assert [claim.body for claim in store.claim()] == [b'{"n":1,"s":"x"}']
    whys = sorted(done.left.values())
    assert [why.split(": ")[0] for why in whys] == ["kind 'other' has no handler in this app", "mail", "mail"]
    assert len(all_of(store)) == 3


@pytest.mark.parametrize(("changes", "said"), [({"x": 1}, "no argument 'x'"), ({"n": "many"}, "argument 'n'")])
def test_what_a_handler_has_not_cannot_be_set(died: Store, changes: dict[str, Any], said: str) -> None:
    registry = Registry()

    def mail(n: int) -> None: ...

    registry.add(mail, "mail", JobOptions(), context=object)
    edit = Edit(changes, registry.find)
    with pytest.raises(UsageError, match=said):
        edit(all_of(died, Selection(kinds=("mail",)))[0])
    assert put_back(died, How(edit=edit)).done == 0
    assert len(all_of(died)) == 10


def test_jobs_go_to_another_queue_as_new_ones_that_name_the_old(died: Store, there: Store) -> None:
    before = {one.id for one in all_of(died)}

    done = put_back(died, How(to="there"))

    assert (done.done, died.left(), there.depth()) == (10, set(), 10)
    metas = [read_meta(claim.meta) for claim in there.claim()]
    assert {meta.origin for meta in metas} == {meta.idempotency_key for meta in metas} == before
    assert {(meta.id, meta.generation) for meta in metas} == {("", 1)}
    assert died.totals()["handed"] == there.totals()["enqueued"] == 10


def test_a_new_key_makes_new_jobs_of_the_same_queue(died: Store) -> None:
    before = {one.id for one in all_of(died)}

    assert put_back(died, How(new_key=True)).done == 10

    claims = died.claim()
    metas = [read_meta(claim.meta) for claim in claims]
    assert {meta.origin for meta in metas} == before
    assert {(meta.id, meta.idempotency_key) for meta in metas} == {("", "")}
    assert died.left() == {"stream"}


def test_to_its_own_queue_is_a_plain_replay(died: Store, there: Store) -> None:
    before = {one.id for one in all_of(died)}

    assert put_back(died, How(to="q")).done == 10

    assert {died.keys.job_id(job_of(claim)) for claim in died.claim()} == before


def test_the_key_of_the_first_job_goes_along_from_queue_to_queue(died: Store, there: Store) -> None:
    [first] = all_of(died, limit=1)
    talk(died.executor, Replaying(died.keys.namespace, How(to="there")).put_back([first], Done()))
    there.bury(death(there.claim()[0]))
    [second] = all_of(there)

    talk(died.executor, Replaying(died.keys.namespace, How(to="q")).put_back([second], Done()))

    [claim] = died.claim()
    meta = read_meta(claim.meta)
    assert (meta.origin, meta.idempotency_key, meta.generation) == (second.id, first.id, 2)


def test_a_queue_that_is_not_there_is_refused_before_anything_is_done(died: Store, there: Store) -> None:
    with pytest.raises(NotFound, match="queue nowhere: there is none"):
        put_back(died, How(to="nowhere"))

    assert len(all_of(died)) == 10


def test_a_held_key_there_leaves_the_job_dead_and_free_for_another_try(store: Store) -> None:
    store.make_group()
    store.run(intake.announce(store.keys.namespace, ["q", "there"]))
    there = sibling(store, "there")
    store.enqueue(job(1, dedupe_key="k"))
    store.bury(death(store.claim()[0], dedupe_key="k"))
    [holder] = there.enqueue(job(2, dedupe_key="k"))
    [one] = all_of(store)

    assert put_back(store, How(to="there")).conflicts == {one.id: f"there:{holder}"}
    there.complete_full(ending(there.claim()[0], dedupe_key="k"))

    assert put_back(store).done == 1
    assert there.depth() == 0
    store.cancel_owned(job_of(store.claim()[0]), "k")


@pytest.mark.parametrize("again", [How(to="there"), How(), How(to="elsewhere"), How(new_key=True)], ids=str)
@pytest.mark.parametrize("point", ["before_promise", "after_promise", "after_adopt", "after_handover"])
def test_case_J4_interrupted_anywhere_and_done_again_each_job_begins_once(
    died: Store, there: Store, failpoint: Arm, monkeypatch: pytest.MonkeyPatch, point: str, again: How
) -> None:
    """However it is done again: what was begun comes to its end where it was promised to."""
    monkeypatch.setattr(batches, "MAX_BATCH_JOBS", 4)
    died.run(intake.announce(died.keys.namespace, ["elsewhere"]))
    elsewhere = sibling(died, "elsewhere")
    before = sorted(one.id for one in all_of(died))
    passes: list[None] = []

    def second_time() -> None:
        passes.append(None)
        if len(passes) == 2:
            trip()

    failpoint(f"operate.{point}", second_time)
    with pytest.raises(Tripped):
        put_back(died, How(to="there"))
    failpoint(f"operate.{point}", lambda: None)
    purged = talk(died.executor, dead.purge(died.keys.namespace, Scan([died.keys], Selection(kinds=("none",)))))

    done = put_back(died, again)

    assert (purged.any, done.conflicts, done.left, done.gone) == (False, {}, {}, 0)
    began = []
    for store in (died, there, elsewhere):
        for claim in store.claim():
            meta = read_meta(claim.meta)
            began.append(meta.origin or store.keys.job_id(meta.id))
    assert sorted(began) == before
    assert all_of(died) == []
    totals = died.totals()
    assert totals.get("handed", 0) + totals.get("replayed", 0) == 10
    assert died.left() <= {"stream", "moved"}


def test_two_at_once_put_one_copy_back(died: Store, there: Store, failpoint: Arm) -> None:
    """One has promised them all when the other comes, in plain."""
    others: list[Done] = []
    failpoint("operate.after_promise", lambda: others.append(put_back(died)))

    mine = put_back(died, How(to="there"))

    assert [one.done for one in others] == [mine.done] == [10]
    assert (there.depth(), died.depth(), died.left()) == (10, 0, set())
