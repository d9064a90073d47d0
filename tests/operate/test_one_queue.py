"""Everything about one queue, at a cost that does not grow with what it holds."""

from typing import Any

import pytest

from streamjobs.client.talk import talk
from streamjobs.core.errors import NotFound
from streamjobs.operate import one_queue as operate
from streamjobs.operate.one_queue import OneQueue
from streamjobs.operate.queues import several
from streamjobs.protocol import config, upkeep, workers
from streamjobs.protocol.calls import Request
from streamjobs.protocol.workers import Note
from tests.operate.driven import driven
from tests.store.support import Store


def overview(store: Store) -> OneQueue:
    return talk(store.executor, operate.one_queue(store.keys.namespace, "q"))


def test_all_of_it_is_there(joined: Store) -> None:
    joined.add(3)
    joined.admit(*joined.claim(count=1), lanes=("c:q",), limits={"c:q": "4"})
    joined.limit("c:q", "2")
    joined.run(upkeep.promote(joined.keys, "w", rung=False, note="8", room=0))
    joined.run(workers.report(joined.keys.namespace, "w", Note(slots=8)))

    found = overview(joined)

    assert (found.stats.waiting, found.stats.running, found.stats.slots) == (2, 1, 8)
    [limit] = found.limits
    assert (str(limit), limit.by_operator, limit.code) == ("2", True, "4")
    assert [(one.name, one.note.slots) for one in found.workers] == [("w", 8)]
    assert found.crons == []
    if found.memory is not None:
        assert {"stream", "config", "limits", "workers", "totals"} <= found.memory.keys()
        assert min(found.memory.values()) > 0


def test_a_maximum_of_the_code_is_told_beside_the_operators(joined: Store) -> None:
    joined.run(config.declare(joined.keys, config.MAX_WAITING, 7))
    [limit] = overview(joined).limits
    assert (limit.places, limit.code) == (7, "")

    joined.run(config.override(joined.keys, config.MAX_WAITING, "9"))

    [limit] = overview(joined).limits
    assert (limit.places, limit.by_operator, limit.code) == (9, True, "7")


def test_it_costs_the_same_whatever_the_queue_holds(joined: Store) -> None:
    def requests() -> int:
        sent: list[Request[Any]] = []
        driven(joined.executor, operate.one_queue(joined.keys.namespace, "q"), sent.extend)
        return len(sent)

    few = requests()
    for _ in range(10):
        joined.add(500)

    assert requests() == few


def test_a_queue_that_is_not_there(store: Store) -> None:
    with pytest.raises(NotFound, match="queue q: there is none"):
        overview(store)


def test_a_queue_that_nobody_listed_is_there_once_it_has_a_job(store: Store) -> None:
    """Somebody has added it by a plain XADD, and no worker came yet."""
    store.command("XADD", store.keys.stream, "*", "kind", "mail", "body", "{}")
    namespace = store.keys.namespace

    assert overview(store).stats.waiting == 1
    assert talk(store.executor, several(namespace, ["q"])) == ["q"]
    with pytest.raises(NotFound, match="queue other"):
        talk(store.executor, several(namespace, ["q", "other"]))
