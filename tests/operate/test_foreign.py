"""Rows among the dead that somebody else wrote: shown as far as they can be, never replayed, purged by their entry.

None of them may hide what stands beside it, or end a command.
"""

import pytest

from streamjobs.client.talk import talk
from streamjobs.core.errors import NotFound, Refused
from streamjobs.operate import carry, dead
from streamjobs.operate.batches import FOREIGN, Done
from streamjobs.operate.delete import delete
from streamjobs.operate.replay import How, replay
from streamjobs.operate.scan import Named, Scan
from streamjobs.operate.selection import Selection
from streamjobs.protocol import intake
from tests.operate.test_scan import all_of, sibling
from tests.store.support import Store, death

ALL = Selection()
ROWS: dict[str, list[str | bytes]] = {
    "a colon in its id": ["id", "a:b", "kind", "mail", "body", "{}", "meta", "{}"],
    "a whole id": ["id", "q:1-0", "kind", "mail", "body", "{}"],
    "no id at all": ["note", "hello"],
    "an empty id": ["id", ""],
    "bytes for an id": ["id", b"\xff\x00", "died_at", "9" * 30, "attempts", "-1"],
    "spaces and a slash": ["id", "1-0 /x", "meta", "[" * 9999, "history", "no"],
    "a good id and no job": ["id", "1-0", "kind", "mail", "body", "{}", "meta", '{"dk":"k"}'],
    "a good id and no more": ["id", "d1-0"],
}


@pytest.fixture(params=list(ROWS.values()), ids=list(ROWS))
def mixed(store: Store, request: pytest.FixtureRequest) -> Store:
    """A queue with 2 dead jobs, and behind them such a row."""
    store.make_group()
    store.run(intake.announce(store.keys.namespace, [store.keys.queue]))
    for claim in store.started(2):
        store.bury(death(claim))
    store.command("XADD", store.keys.dead, "*", *request.param)
    return store


def put_back(store: Store, to: str = "") -> Done:
    return talk(store.executor, replay(store.keys.namespace, Scan([store.keys], ALL), How(to)))


def purge(store: Store, *ids: str) -> Done:
    source = Named(store.keys.namespace, ids, ALL) if ids else Scan([store.keys], ALL)
    return talk(store.executor, dead.purge(store.keys.namespace, source))


def test_lists_and_groups_have_it(mixed: Store) -> None:
    assert len(all_of(mixed)) == 3
    assert sum(group.count for group in talk(mixed.executor, dead.groups(Scan([mixed.keys], ALL)))) == 3


@pytest.mark.parametrize("to", ["", "there"])
def test_replay_leaves_it_and_says_why(mixed: Store, to: str) -> None:
    stranger = all_of(mixed)[0]
    mixed.run(intake.announce(mixed.keys.namespace, ["there"]))

    done = put_back(mixed, to)

    assert (done.done, done.gone, done.left) == (2, 0, {stranger.id: FOREIGN})
    assert all_of(mixed) == [stranger]
    assert (sibling(mixed, to) if to else mixed).depth() == 2
    purge(mixed)


def test_purge_takes_it_and_counts_jobs_alone(mixed: Store) -> None:
    assert purge(mixed).done == 3
    assert (all_of(mixed), mixed.totals()["purged"]) == ([], 2)


def test_one_without_a_job_id_is_found_by_its_entry(mixed: Store) -> None:
    stranger = all_of(mixed)[0]
    if not stranger.foreign:
        return

    found = talk(mixed.executor, dead.examine(mixed.keys.namespace, stranger.id))

    assert stranger.id == f"q:{stranger.dead_entry}"
    assert (found.replayable, found.why) == (False, FOREIGN)
    assert purge(mixed, stranger.id).done == 1
    with pytest.raises(NotFound):
        purge(mixed, stranger.id)


def test_only_jobs_are_exported(mixed: Store) -> None:
    rows = talk(mixed.executor, Scan([mixed.keys], ALL).rows())
    assert [carry.line(*row) is None for row in rows] == [all_of(mixed)[0].foreign, False, False]


def test_it_goes_with_its_queue(mixed: Store) -> None:
    talk(mixed.executor, delete(mixed.keys.namespace, "q", force=True))
    assert mixed.command("EXISTS", mixed.keys.dead) == 0


def test_an_id_of_a_living_job_does_not_find_the_row_of_a_dead_one(store: Store) -> None:
    """Both streams count milliseconds, so that an entry of the one may be an id of the other."""
    store.make_group()
    store.command("XADD", store.keys.dead, "9000000000000-0", "id", "1-0")
    store.command("XADD", store.keys.stream, "9000000000000-0", "kind", "mail", "body", "{}")

    with pytest.raises(Refused, match="is not dead but waiting"):
        purge(store, "q:9000000000000-0")
