"""Listings of live jobs: all of a state, in the order in which they start, a page at a time."""

from collections.abc import Sequence
from typing import Any

import pytest

from streamjobs.client.talk import talk
from streamjobs.core.errors import InvalidOption, NotFound
from streamjobs.operate import jobs, limits, live
from streamjobs.operate.live import Cursor, Listing, Live, Selection
from streamjobs.operate.queues import several
from streamjobs.protocol import intake, upkeep
from streamjobs.protocol.calls import Request
from streamjobs.protocol.keys import QueueKeys
from tests.operate.driven import calls, driven
from tests.store.support import Store, death, delayed, job, job_of, later

ALL = Selection()


@pytest.fixture
def bare(store: Store) -> Store:
    """A queue without a group, before its first worker."""
    return store


@pytest.fixture
def joined(store: Store) -> Store:
    store.make_group()
    return store


def listing(
    store: Store, *states: Live, means: Selection = ALL, after: str = "", limit: int = 100, look: int = 1000,
    queues: Sequence[str] = ("q",),
) -> Listing:  # fmt: skip
    part = live.listing(store.keys.namespace, queues, states or list(Live), means, after=after, limit=limit, look=look)
    return talk(store.executor, part)


def ids(found: Listing) -> list[str]:
    return [one.id.removeprefix("q:") for one in found.jobs]


def walked(store: Store, *states: Live, limit: int, queues: Sequence[str] = ("q",)) -> list[list[str]]:
    """Follow a listing to its end; return the ids of each part."""
    parts, after = [], ""
    while True:
        found = listing(store, *states, after=after, limit=limit, queues=queues)
        parts.append([one.id for one in found.jobs])
        after = found.next
        if not after:
            return parts


def test_a_queue_that_has_nothing_yet(bare: Store) -> None:
    assert listing(bare) == Listing([], "", 0)


def test_waiting_jobs_without_a_group(bare: Store) -> None:
    waiting = bare.add(3)

    assert ids(listing(bare, Live.WAITING)) == waiting
    assert ids(listing(bare, Live.RUNNING)) == []


def test_each_job_is_in_the_state_that_it_has(joined: Store) -> None:
    names = joined.add(6)
    claims = joined.claim(count=4)
    joined.claim("b", count=1)
    joined.retry(later(claims[0], 60_000))
    joined.bury(death(claims[1]))
    joined.release(claims[2])
    [soon] = joined.schedule(delayed(1, delay_ms=60_000))

    assert ids(listing(joined, Live.RUNNING)) == [names[3], names[4]]
    assert ids(listing(joined, Live.WAITING)) == [names[2], names[5]]
    assert ids(listing(joined, Live.RETRYING)) == [names[0]]
    assert ids(listing(joined, Live.SCHEDULED)) == [soon]
    assert [one.worker for one in listing(joined, Live.RUNNING).jobs] == ["a", "b"]
    assert [one.place for one in listing(joined, Live.WAITING).jobs] == ["released", "stream"]
    assert ids(listing(joined)) == [names[3], names[4], names[2], names[5], names[0], soon]


def test_what_waits_for_a_limit_waits(joined: Store) -> None:
    names = joined.add(3)
    joined.admit(*joined.claim(count=2))

    found = listing(joined, Live.WAITING)

    assert ids(found) == names[1:]
    assert [one.place for one in found.jobs] == ["parked", "stream"]
    # However many are parked, who asks for running ones does not look at them.
    assert listing(joined, Live.RUNNING).looked == 1


def test_the_jobs_of_a_paused_queue_wait(joined: Store) -> None:
    names = joined.add(3)
    joined.claim(count=1)
    joined.run(upkeep.pause(joined.keys))

    assert ids(listing(joined, Live.WAITING)) == names[1:]
    assert ids(listing(joined, Live.RUNNING)) == names[:1]


def test_pages_have_every_job_once(joined: Store) -> None:
    names = joined.add(25)
    claims = [*joined.claim("a", count=5), *joined.claim("b", count=5)]
    joined.release(*claims[1:4])
    at = 1_900_000_000_000
    scheduled = joined.schedule(*(delayed(n, at_ms=at) for n in range(12)), delayed(99, at_ms=at - 5))

    for limit in (1, 2, 7, 100):
        parts = walked(joined, Live.WAITING, limit=limit)
        assert [one.removeprefix("q:") for part in parts for one in part] == [*names[1:4], *names[10:]]
        assert all(len(part) <= limit for part in parts)
    parts = walked(joined, Live.SCHEDULED, limit=5)
    assert [one.removeprefix("q:") for part in parts for one in part] == [scheduled[12], *sorted(scheduled[:12])]
    parts = walked(joined, Live.RUNNING, limit=3)
    assert [one.removeprefix("q:") for part in parts for one in part] == [names[0], *names[4:10]]


def test_a_listing_goes_on_where_the_job_that_it_ended_with_has_gone(joined: Store) -> None:
    waiting = joined.add(4)
    at = 1_900_000_000_000
    scheduled = joined.schedule(*(delayed(n, at_ms=at) for n in range(4)))
    first = listing(joined, Live.WAITING, limit=2)
    later_ = listing(joined, Live.SCHEDULED, limit=2)

    joined.cancel(waiting[1], scheduled[1])

    assert ids(listing(joined, Live.WAITING, after=first.next)) == waiting[2:]
    assert ids(listing(joined, Live.SCHEDULED, after=later_.next)) == scheduled[2:]


def test_parts_go_over_states_and_queues(joined: Store) -> None:
    other = Store.__new__(Store)
    other.__dict__ |= {**joined.__dict__, "keys": QueueKeys(joined.keys.namespace, "r")}
    names = [f"q:{one}" for one in joined.add(3)] + [f"r:{one}" for one in other.add(2)]
    names += [f"q:{one}" for one in joined.schedule(delayed(1, delay_ms=60_000))]

    for limit in (1, 2, 3, 5):
        parts = walked(joined, Live.WAITING, Live.SCHEDULED, limit=limit, queues=["q", "r"])
        assert [one for part in parts for one in part] == names
        assert all(parts[:-1]), "an empty part in the middle"


def test_selections_hold_and_what_was_looked_at_is_bounded(joined: Store) -> None:
    joined.enqueue(*(job(n, "web" if n % 100 == 99 else "mail") for n in range(300)))

    found = listing(joined, Live.WAITING, means=Selection(("web",)), look=200)

    assert [one.kind for one in found.jobs] == ["web", "web"]
    assert found.looked == 200
    rest = listing(joined, Live.WAITING, means=Selection(("web",)), after=found.next)
    assert (len(rest.jobs), rest.next) == (1, "")


def test_times_are_those_of_the_enqueue(joined: Store) -> None:
    """Whenever the entry was made in which the job lies by now."""
    [old] = joined.add(1)
    [claim] = joined.claim()
    joined.retry(later(claim, 1))
    joined.promote(clock="9000000000000")
    at = int(old.partition("-")[0])

    assert ids(listing(joined, Live.WAITING, means=Selection(since_ms=at, until_ms=at))) == [old]
    assert ids(listing(joined, Live.WAITING, means=Selection(until_ms=at - 1))) == []
    assert ids(listing(joined, Live.WAITING, means=Selection(since_ms=at + 1))) == []


def test_jobs_that_left_the_state_meanwhile_are_left_out(joined: Store) -> None:
    [one, two] = joined.add(2)
    part = live.listing(joined.keys.namespace, ["q"], [Live.WAITING], ALL)

    def before(requests: list[Request[Any]]) -> None:
        # Once what is there was read, and before it is looked up.
        if calls(requests, "lookup"):
            joined.cancel(one)

    found = driven(joined.executor, part, before)

    assert ids(found) == [two]


def test_entries_of_others_do_not_hide_the_rest(joined: Store) -> None:
    """Fields in any order, and what is no id in the meta, no time in a set's member."""
    joined.command("XADD", joined.keys.stream, "*", "kind", "mail", "body", "{}", "meta", '{"id":"nonsense"}')
    joined.command("XADD", joined.keys.stream, "*", "x", "y")
    joined.command("ZADD", joined.keys.scheduled, 1, "nonsense")
    joined.command("HSET", joined.keys.bodies, "nonsense", "no envelope")
    [last] = joined.add(1)

    assert ids(listing(joined, Live.WAITING))[-1] == last
    listing(joined, Live.SCHEDULED, means=Selection(since_ms=5))


@pytest.mark.parametrize(
    "text", ["x", "waiting", "waiting/q/x", "nonsense/q/1-0", "scheduled/q/x/d1-0", "waiting/r/1-0", "running/q/1-0"]
)
def test_what_is_no_place_in_a_listing_is_refused(joined: Store, text: str) -> None:
    with pytest.raises(InvalidOption, match="is no place in"):
        listing(joined, Live.WAITING, Live.SCHEDULED, after=text)


def test_places_are_written_as_they_are_read() -> None:
    for text in ("waiting/q/1-0", "scheduled/q/1000/d1-0", "running/q/"):
        assert str(Cursor.of(text)) == text


def test_what_a_page_costs_does_not_depend_on_what_waits(joined: Store) -> None:
    """Requests, that is: each is bounded by the size of the page."""

    def requests() -> int:
        counts: list[int] = []
        part = live.listing(joined.keys.namespace, ["q"], list(Live), ALL, limit=10)
        driven(joined.executor, part, lambda requests: counts.append(len(requests)))
        return sum(counts)

    joined.add(100)
    few = requests()
    for _ in range(10):
        joined.add(500)

    assert requests() == few


def test_queues_are_those_named_or_all(joined: Store) -> None:
    joined.run(intake.announce(joined.keys.namespace, ["b", "a"]))

    assert talk(joined.executor, several(joined.keys.namespace, [])) == ["a", "b"]
    assert talk(joined.executor, several(joined.keys.namespace, ["b"])) == ["b"]
    with pytest.raises(NotFound, match="queue c: there is none"):
        talk(joined.executor, several(joined.keys.namespace, ["a", "c"]))


def test_a_parked_job_knows_what_it_waits_for(joined: Store) -> None:
    joined.add(3)
    claims = joined.claim()
    joined.admit(*claims, lanes=("c:k:mail n 0", "c:q"), limits={"c:k:mail n": "5", "c:q": "1"})
    status = joined.run(jobs.lookup(joined.keys, job_of(claims[2])))

    assert status.place == "parked"
    assert talk(joined.executor, limits.waits_for(joined.keys, status)) == [
        limits.Wait("concurrency", "", "", "", before=1)
    ]
    status = joined.run(jobs.lookup(joined.keys, job_of(claims[0])))
    assert talk(joined.executor, limits.waits_for(joined.keys, status)) == []


def test_a_parked_job_waits_for_its_own_value_of_a_key(joined: Store) -> None:
    joined.enqueue(job(7), job(7))
    claims = joined.claim()
    joined.admit(*claims, lanes=("c:k:mail n 7",), limits={"c:k:mail n": "1"})
    status = joined.run(jobs.lookup(joined.keys, job_of(claims[1])))

    assert talk(joined.executor, limits.waits_for(joined.keys, status)) == [
        limits.Wait("concurrency", "mail", "n", "7", before=0)
    ]
