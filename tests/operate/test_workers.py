"""Workers as operators see them: who is there, who is gone, what an order came to, what the dead left behind."""

from typing import Any

import pytest

from streamjobs.client.talk import talk
from streamjobs.core.errors import InvalidOption, NotFound
from streamjobs.operate import workers as operate
from streamjobs.operate.workers import GONE, Pruned, Taken, WorkerStatus
from streamjobs.protocol import intake, leases, upkeep, workers
from streamjobs.protocol.calls import Request
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.workers import Note, Running
from tests.operate.driven import driven
from tests.store.support import Store


def now(store: Store) -> int:
    return store.run(upkeep.server_time())


def meet(store: Store, name: str, *, ago_ms: int = 0, queue: str = "q", **note: Any) -> None:
    """Let a worker show itself to a queue, and tell of itself."""
    keys = QueueKeys(store.keys.namespace, queue)
    at_ms = now(store) - ago_ms
    store.run(upkeep.promote(keys, name, rung=False, note="8", room=0, clock=str(at_ms)))
    if note:
        tell(store, name, **{"at_ms": at_ms, "state": "running", **note})


def tell(store: Store, name: str, **note: Any) -> None:
    store.run(workers.report(store.keys.namespace, name, Note(**note)))


def look(store: Store, *queues: str) -> list[WorkerStatus]:
    return talk(store.executor, operate.look(store.keys.namespace, queues)).workers


def test_nobody_is_there(store: Store) -> None:
    assert look(store) == []
    with pytest.raises(NotFound, match="queue q: there is none"):
        look(store, "q")


def test_who_works_and_who_is_gone(joined: Store) -> None:
    joined.run(intake.announce(joined.keys.namespace, ["r"]))
    meet(joined, "dead", ago_ms=60_000, pid=1)
    meet(joined, "b", pid=2, jobs=(Running("q:1-0", "mail", 5),))
    meet(joined, "b", queue="r")
    meet(joined, "silent")

    found = look(joined)

    assert [(one.name, one.state, one.queues, one.told) for one in found] == [
        ("b", "running", ("q", "r"), True),
        ("silent", "running", ("q",), False),
        ("dead", GONE, ("q",), True),
    ]
    assert found[0].note.jobs == (Running("q:1-0", "mail", 5),)
    assert [one.name for one in look(joined, "r")] == ["b"]


def test_one_that_stops_is_alive_while_it_tells_so(joined: Store) -> None:
    """It shows itself to its queues no more."""
    meet(joined, "a", ago_ms=60_000)
    tell(joined, "a", at_ms=now(joined), state="stopping")

    assert [(one.state, one.live) for one in look(joined)] == [("stopping", True)]


def test_an_order_that_was_not_taken_is_shown(joined: Store) -> None:
    meet(joined, "a", pid=1)
    joined.run(workers.order(joined.keys.namespace, "a", "quiet", "t"))
    assert [one.order for one in look(joined)] == ["quiet"]

    meet(joined, "a", pid=1, order="t", state="quiet")

    assert [(one.order, one.state) for one in look(joined)] == [("", "quiet")]


def test_what_it_costs_is_a_request_for_each_queue_and_worker(joined: Store) -> None:
    joined.run(intake.announce(joined.keys.namespace, ["r", "s"]))
    for n in range(5):
        meet(joined, f"w{n}", pid=n + 1)
    joined.add(500)
    sent: list[Request[Any]] = []

    driven(joined.executor, operate.look(joined.keys.namespace), sent.extend)

    assert len(sent) == 1 + 1 + 3 + 5


def test_a_part_of_a_name_is_enough_where_it_is_the_only_one(joined: Store) -> None:
    for name in ("host-1-aaaa", "host-2-bbbb", "host"):
        meet(joined, name)
    found = look(joined)

    assert operate.find(found, "aaaa").name == "host-1-aaaa"
    assert operate.find(found, "host").name == "host"
    with pytest.raises(InvalidOption, match="could be host-1-aaaa or host-2-bbbb"):
        operate.find(found, "host-")
    with pytest.raises(NotFound, match="worker x: there is none; there are host"):
        operate.find(found, "x")


def test_an_order_is_waited_for_until_it_is_taken(joined: Store) -> None:
    meet(joined, "a", pid=1)
    meet(joined, "b", pid=2)
    told: list[Taken] = []
    looks = 0

    def work(requests: list[Request[Any]]) -> None:
        """Let both hear it: the one at the third look, the other as it ends."""
        nonlocal looks
        looks += 1
        if looks == 4:
            order = joined.run(workers.report(joined.keys.namespace, "a", Note(state="running")))
            tell(joined, "a", state="stopping", order=order.partition(" ")[2])
            joined.run(workers.forget(joined.keys.namespace, "b"))

    done = driven(joined.executor, operate.order(joined.keys.namespace, ["a", "b"], "stop", tell=told.append), work)

    assert [(one.name, one.taken, one.note and one.note.state) for one in done] == [
        ("a", True, "stopping"),
        ("b", True, None),
    ]
    assert told == done


def test_who_takes_no_order_is_named(joined: Store) -> None:
    meet(joined, "deaf", pid=1)
    meet(joined, "mute")

    done = talk(joined.executor, operate.order(joined.keys.namespace, ["deaf", "mute"], "quiet", within_s=0.1))

    assert sorted(done, key=lambda one: one.name) == [Taken("deaf", False), Taken("mute", False)]


def prune(store: Store, *, dry_run: bool = False) -> list[Pruned]:
    return talk(store.executor, operate.prune(store.keys.namespace, dry_run=dry_run))


def test_dead_workers_are_forgotten_with_what_they_told(joined: Store) -> None:
    meet(joined, "dead", ago_ms=60_000, pid=1)
    meet(joined, "b", pid=2)
    assert prune(joined, dry_run=True) == [Pruned("q", 1, 0)]
    assert len(look(joined)) == 2

    assert prune(joined) == [Pruned("q", 1, 0)]

    assert [one.name for one in look(joined)] == ["b"]
    assert joined.run(workers.told(joined.keys.namespace, "dead")) == workers.Told()
    assert joined.run(workers.told(joined.keys.namespace, "b")).note is not None


def test_no_claim_is_ever_dropped(joined: Store) -> None:
    """XGROUP DELCONSUMER would: the entry would never be delivered again."""
    claims = joined.started(2, consumer="dead")
    meet(joined, "dead", ago_ms=60_000, pid=1)

    assert prune(joined) == [Pruned("q", 0, 1)]

    assert len(joined.retaken(claims, "dead")) == 2


def test_what_was_given_back_stays(joined: Store) -> None:
    joined.release(*joined.started(2), mark=1)
    joined.admit(*joined.started(1, consumer="c"), lanes=("c:q",), limits={"c:q": "1"}, consumer="c")

    prune(joined)

    assert len(joined.take("b")) == 2


def test_consumers_that_no_queue_knows_are_forgotten_when_they_are_silent(
    joined: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined.complete(*joined.started(1, consumer="old"))
    assert prune(joined) == [Pruned("q", 0, 0)]
    monkeypatch.setattr(operate, "SILENT_MS", -1)

    assert prune(joined) == [Pruned("q", 1, 0)]

    assert joined.run(upkeep.consumers(joined.keys)) == {}


def test_one_that_stops_for_long_is_not_forgotten(joined: Store) -> None:
    meet(joined, "a", ago_ms=60_000)
    tell(joined, "a", at_ms=now(joined), state="stopping")

    assert prune(joined) == [Pruned("q", 0, 0)]
    assert len(look(joined)) == 1


def test_a_queue_without_a_group_has_nothing_to_prune(store: Store) -> None:
    store.run(intake.announce(store.keys.namespace, ["q"]))

    assert prune(store) == [Pruned("q", 0, 0)]
    assert leases.retire(store.keys, []).args == []


def test_a_lost_group_is_no_reason_to_fail(joined: Store) -> None:
    meet(joined, "dead", ago_ms=60_000, pid=1)
    joined.lose_group()

    assert prune(joined) == [Pruned("q", 0, 0)]
