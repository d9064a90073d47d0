"""The group is gone (FLUSHALL, a failover, an operator): scripts say so, and nothing is lost by it."""

from collections.abc import Callable

import pytest

from streamjobs.core.errors import Unavailable
from streamjobs.core.job import Claim
from streamjobs.protocol import leases
from tests.store.support import Store, death, delayed, job_of, later

CALLS: dict[str, Callable[[Store, list[Claim]], object]] = {
    "take": lambda store, claims: store.take("b"),
    "reclaim": lambda store, claims: store.sweep("b"),
    "renew": lambda store, claims: store.renew(*claims),
    "suspect": lambda store, claims: store.suspect(*claims),
    "release": lambda store, claims: store.release(*claims, mark=1),
    "retry": lambda store, claims: store.retry(*map(later, claims)),
    "snooze": lambda store, claims: store.snooze(*map(later, claims)),
    "bury": lambda store, claims: store.bury(*map(death, claims)),
    "retire": lambda store, claims: store.run(leases.retire(store.keys, ["a"])),
    "read": lambda store, claims: store.claim("b"),
}


@pytest.mark.parametrize("name", CALLS)
def test_call_says_nogroup_and_no_job_is_lost(store: Store, name: str) -> None:
    claims = store.started(3)
    given_back = store.started(1)
    store.release(*given_back, mark=1)
    store.lose_group()

    with pytest.raises(Unavailable) as caught:
        CALLS[name](store, claims)

    assert caught.value.word == "NOGROUP"
    store.make_group()
    assert {job_of(claim) for claim in store.claim("b")} == {job_of(claim) for claim in claims + given_back}


@pytest.mark.parametrize("name", CALLS)
def test_without_the_stream_too(store: Store, name: str) -> None:
    claims = store.started(1)
    store.release(*store.started(1))
    store.command("DEL", store.keys.stream)

    with pytest.raises(Unavailable) as caught:
        CALLS[name](store, claims)

    assert caught.value.word == "NOGROUP"


def test_delayed_jobs_survive(store: Store) -> None:
    [one] = store.schedule(delayed(1, at_ms=1))
    store.lose_group()

    store.promote()

    store.make_group()
    assert [job_of(claim) for claim in store.claim()] == [one]


def test_operators_need_no_group(store: Store) -> None:
    ids = store.add(2)
    claims = store.claim()
    store.bury(death(claims[0]))
    store.lose_group()

    assert store.replay(ids[0]) == ["OK"]
    assert store.state(ids[0]) == "waiting"
    assert store.cancel(ids[1]) == ["WAITING"]


def test_lost_scripts_are_loaded_again(store: Store) -> None:
    """Case F13: after a failover the server knows none of them."""
    claims = store.started(2)
    store.command("SCRIPT", "FLUSH")

    assert store.complete(claims[0]) == {}
    store.command("SCRIPT", "FLUSH")
    assert store.retry(later(claims[1])) == {}
    assert store.depth() == 0
