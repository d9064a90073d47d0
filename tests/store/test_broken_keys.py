"""An error in the middle of a move (scripts do not roll back): a duplicate at worst, never a loss.

Each move writes the new place before it deletes the old one. Here one key of the new place has the
wrong type, so that the script fails exactly between the two.
"""

from collections.abc import Callable

import pytest

from streamjobs.core.errors import Rejected
from streamjobs.core.job import Claim
from streamjobs.protocol import leases
from tests.store.support import Store, death, delayed, job, job_of, later

Move = Callable[[Store, str], object]


def running(store: Store) -> str:
    [one] = store.enqueue(job(1, dedupe_key="k"))
    store.claim()
    return one


def scheduled(store: Store) -> str:
    return store.schedule(delayed(1, at_ms=1))[0]


def dead(store: Store) -> str:
    [claim] = store.started(1)
    store.bury(death(claim))
    return job_of(claim)


def held(store: Store) -> list[Claim]:
    return leases.claims(store.entries(), 0.0)


CASES: list[tuple[str, str, Callable[[Store], str], Move]] = [
    ("retry", "bodies", running, lambda store, _: store.retry(*map(later, held(store)))),
    ("retry", "retries", running, lambda store, _: store.retry(*map(later, held(store)))),
    ("snooze", "bodies", running, lambda store, _: store.snooze(*map(later, held(store)))),
    ("snooze", "scheduled", running, lambda store, _: store.snooze(*map(later, held(store)))),
    ("bury", "dead", running, lambda store, _: store.bury(*map(death, held(store)))),
    ("bury", "dead:ids", running, lambda store, _: store.bury(*map(death, held(store)))),
    ("release", "released", running, lambda store, _: store.release(*held(store), mark=1)),
    ("release", "suspects", running, lambda store, _: store.release(*held(store), mark=1)),
    ("promote", "moved", scheduled, lambda store, _: store.promote()),
    ("promote", "stream", scheduled, lambda store, _: store.promote()),
    ("replay", "moved", dead, lambda store, one: store.replay(one)),
    ("replay", "stream", dead, lambda store, one: store.replay(one)),
]


@pytest.mark.parametrize(
    ("key", "arrange", "move"), [case[1:] for case in CASES], ids=[f"{case[0]}-{case[1]}" for case in CASES]
)
def test_job_is_still_there(store: Store, key: str, arrange: Callable[[Store], str], move: Move) -> None:
    one = arrange(store)
    state = store.state(one)
    aside = store.keys.base + key
    store.command("DEL", aside)
    store.command("SET", aside, "broken", "PX", 60_000)

    with pytest.raises(Rejected) as caught:
        move(store, one)

    assert caught.value.word == "WRONGTYPE"
    store.command("DEL", aside)
    assert store.state(one) == state


def test_enqueue_that_failed_half_way_leaves_whole_jobs(store: Store) -> None:
    store.command("RPUSH", store.keys.dedupe("bad"), "x")

    with pytest.raises(Rejected):
        store.enqueue(job(1), job(2, dedupe_key="good"), job(3, dedupe_key="bad"), job(4, dedupe_key="later"))

    store.command("DEL", store.keys.dedupe("bad"))
    first, second = store.claim()
    assert (first.body, second.body) == (b'{"n":1}', b'{"n":2}')
    assert store.command("GET", store.keys.dedupe("good")) == second.entry
    assert store.command("EXISTS", store.keys.dedupe("later")) == 0
