"""Over random histories: every count is the truth at rest, and the counters add up (invariant I19, case G7)."""

import os

import pytest
from hypothesis import settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from streamjobs.client.talk import talk
from streamjobs.operate.stats import QueueStats, Snapshot, snapshot
from streamjobs.protocol import intake, metrics, settle
from tests.conftest import BINARIES
from tests.model.machine import Histories, KeyedHistories
from tests.model.model import Model
from tests.store.support import Store, death, ending

COUNTED_BY_KIND = "enqueued replayed promoted done retried snoozed dead cancelled purged rescheduled".split()


def look(store: Store) -> Snapshot:
    return talk(store.executor, snapshot(store.keys.namespace, [store.keys.queue]))


def counted(store: Store) -> dict[str, int]:
    """Return the sum of each counter over all minutes and kinds."""
    found: dict[str, int] = {}
    cursor = b"0"
    while True:
        cursor, keys = store.command("SCAN", cursor, "MATCH", f"{store.keys.metrics}[0-9]*", "COUNT", 1000)
        for key in keys:
            for fields in store.run(metrics.read(key.decode())).values():
                for name, count in fields.items():
                    found[name] = found.get(name, 0) + count
        if cursor == b"0":
            return found


class Seen(Histories):
    """Histories that an operator looks at after every step."""

    @invariant()
    def stats_tell_the_truth(self) -> None:
        self.store.run(intake.announce(self.namespace, [self.store.keys.queue]))
        seen = look(self.store)
        [stats] = seen.queues
        check_counts(self.model, seen.at_ms, stats)
        check_identity(stats)
        minutes = counted(self.store)
        assert {name: minutes.get(name, 0) for name in COUNTED_BY_KIND} == {
            name: stats.totals.get(name, 0) for name in COUNTED_BY_KIND
        }


class SeenKeyed(Seen, KeyedHistories):
    """The same with dedupe keys of each mode: newer arguments follow as jobs of their own."""


def check_counts(model: Model, at_ms: int, stats: QueueStats) -> None:
    scheduled = model.at("scheduled")
    assert stats.retrying == sum(one.retrying for one in scheduled)
    assert stats.scheduled == len(scheduled) - stats.retrying
    assert stats.dead == len(model.at("dead"))
    running = model.at("running")
    assert (stats.waiting, stats.running) == (len(model.at("waiting", "released")), len(running))
    ready = model.at("waiting", "released") + ([] if stats.workers else running)
    oldest_ms = min((one.order[0] for one in ready), default=at_ms)
    assert stats.oldest_ready_ms == max(0, at_ms - oldest_ms)


def check_identity(stats: QueueStats) -> None:
    """As docs/protocol.md has it."""
    total = stats.totals.get
    live = stats.waiting + stats.running + stats.scheduled + stats.retrying
    ended = total("done", 0) + total("dead", 0) + total("cancelled", 0)
    assert total("enqueued", 0) + total("replayed", 0) == ended + live
    gone = sum(total(name, 0) for name in ("replayed", "purged", "handed", "trimmed"))
    assert stats.dead == total("dead", 0) + total("restored", 0) - gone


@pytest.mark.parametrize(("machine", "examples"), [(Seen, 30), (SeenKeyed, 30)])
@pytest.mark.parametrize("server_url", list(BINARIES), indirect=True)
def test_counts_of_every_history_are_exact_at_rest(server_url: str, machine: type[Histories], examples: int) -> None:
    class OnThisServer(machine):  # type: ignore[valid-type,misc]
        url = server_url

    run_state_machine_as_test(
        OnThisServer,
        settings=settings(max_examples=examples, stateful_step_count=30, derandomize=bool(os.environ.get("CI"))),
    )


def test_a_job_that_expired_or_was_purged_counts_once(store: Store) -> None:
    """Dropped it is cancelled, else dead; a purged one has left the dead, and is not taken back from what died."""
    store.make_group()
    store.run(intake.announce(store.keys.namespace, ["q"]))
    dropped, expired, purged, replayed, again = store.started(5)
    store.run(settle.cancel(store.keys, "a", [ending(dropped)]))
    store.bury(death(expired, "expired"), death(purged), death(replayed), death(again))
    store.purge(purged.entry.decode())
    for one in (replayed, again):
        store.replay(one.entry.decode())
    store.bury(death(store.claim()[1]))

    [stats] = look(store).queues

    totals = {name: stats.totals[name] for name in ("enqueued", "replayed", "cancelled", "dead", "purged")}
    assert totals == {"enqueued": 5, "replayed": 2, "cancelled": 1, "dead": 5, "purged": 1}
    assert (stats.dead, stats.running) == (2, 1)
    check_identity(stats)
