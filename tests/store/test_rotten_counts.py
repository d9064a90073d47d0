"""What somebody else wrote into the counters stops no move: counting is best effort, the end of a job is not."""

from collections.abc import Callable, Sequence

import pytest

from streamjobs.core.job import Claim
from streamjobs.protocol import config, leases, letters, upkeep
from streamjobs.protocol.metrics import MINUTE_MS
from tests.store import test_cron
from tests.store.support import CLOCK, Store, death, delayed, ending, job, job_of, later
from tests.store.test_handover import Case

WORDS = (
    "enqueued delayed replayed promoted done lost retried snoozed dead cancelled purged rescheduled restored handed "
    "trimmed reclaimed released regrouped vanished"
).split()


def each_key(store: Store) -> list[str]:
    """Return the keys in which is counted now, and will be if a minute ends meanwhile."""
    now_ms = store.run(upkeep.server_time())
    minutes = [now_ms // MINUTE_MS, now_ms // MINUTE_MS + 1, test_cron.LAST // MINUTE_MS, CLOCK // MINUTE_MS]
    return [store.keys.totals, *map(store.keys.minute, minutes)]


def rotten(store: Store) -> None:
    for key in each_key(store):
        store.command("DEL", key)
        names = [f"{word}{kind}" for word in WORDS for kind in ("", ":mail", ":")]
        store.command("HSET", key, *(part for name in names for part in (name, "abc")))
        store.command("PEXPIRE", key, 60_000)


def wrong_type(store: Store) -> None:
    for key in each_key(store):
        store.command("DEL", key)
        store.command("SET", key, "somebody's", "PX", 60_000)


Story = Callable[[Store, Callable[[], None]], str]
"""Prepares, lets the counters break, makes a move, and returns the job that it was about."""


def enqueue(store: Store, breaks: Callable[[], None]) -> str:
    breaks()
    return store.enqueue(job(1))[0]


def schedule(store: Store, breaks: Callable[[], None]) -> str:
    breaks()
    return store.schedule(delayed(1, delay_ms=60_000))[0]


def reschedule(store: Store, breaks: Callable[[], None]) -> str:
    [one] = store.schedule(delayed(1, delay_ms=60_000))
    breaks()
    assert store.run(upkeep.reschedule(store.keys, [upkeep.Reschedule(one, 90_000, 0)])) == ["OK"]
    return one


def promote(store: Store, breaks: Callable[[], None]) -> str:
    [one, other] = store.schedule(delayed(1, at_ms=1), delayed(2, at_ms=1))
    store.command("HDEL", store.keys.bodies, other)
    breaks()
    store.promote()
    return one


def settle(move: Callable[[Store, Sequence[Claim]], object]) -> Story:
    """Return the story of a move of two claims, the second of which somebody else has ended."""

    def story(store: Store, breaks: Callable[[], None]) -> str:
        one, other = store.enqueue(job(1), job(2))
        claims = store.claim()
        store.command("XACK", store.keys.stream, "workers", other)
        store.command("XDEL", store.keys.stream, other)
        breaks()
        move(store, claims)
        return one

    return story


def reclaim(store: Store, breaks: Callable[[], None]) -> str:
    [claim] = store.started(1)
    breaks()
    store.retaken([claim])
    return job_of(claim)


def join(store: Store, breaks: Callable[[], None]) -> str:
    [one] = store.add(1)
    store.lose_group()
    breaks()
    store.run(leases.join(store.keys, 15_000, again=True))
    return one


def died(store: Store) -> str:
    [claim] = store.started(1)
    store.bury(death(claim))
    return job_of(claim)


def replay(store: Store, breaks: Callable[[], None]) -> str:
    one = died(store)
    breaks()
    assert store.replay(one) == ["OK"]
    return one


def purge(store: Store, breaks: Callable[[], None]) -> str:
    one = died(store)
    breaks()
    assert store.purge(one) == ["OK"]
    return one


def restore(store: Store, breaks: Callable[[], None]) -> str:
    breaks()
    assert store.run(letters.restore(store.keys, [letters.Restore("1-0", {b"kind": b"mail"})])) == ["OK"]
    return "1-0"


def trim(store: Store, breaks: Callable[[], None]) -> str:
    one = died(store)
    store.run(config.declare(store.keys, config.KEEP_DEAD, "0"))
    breaks()
    assert store.run(letters.trim(store.keys)).deleted == 1
    return one


def begin_anew(store: Store, breaks: Callable[[], None]) -> str:
    case = Case(store, store)
    case.promise("q")
    breaks()
    became = case.adopt()
    assert case.hand_over(store.keys.job_id(became)) == "OK"
    return became


def tick(store: Store, breaks: Callable[[], None]) -> str:
    test_cron.plan(store)
    breaks()
    return test_cron.tick(store, test_cron.LAST).jobs[0]


STORIES: list[tuple[str, Story, str]] = [
    ("enqueue", enqueue, "waiting"),
    ("schedule", schedule, "scheduled"),
    ("reschedule", reschedule, "scheduled"),
    ("promote", promote, "waiting"),
    ("complete", settle(lambda store, claims: store.complete(*claims)), "finished"),
    ("complete full", settle(lambda store, claims: store.complete_full(*map(ending, claims))), "finished"),
    ("retry", settle(lambda store, claims: store.retry(*map(later, claims))), "scheduled"),
    ("snooze", settle(lambda store, claims: store.snooze(*map(later, claims))), "scheduled"),
    ("bury", settle(lambda store, claims: store.bury(*map(death, claims))), "dead"),
    ("release", settle(lambda store, claims: store.release(*claims)), "waiting"),
    ("cancel", settle(lambda store, claims: store.cancel(*map(job_of, claims))), "finished"),
    ("reclaim", reclaim, "running"),
    ("join", join, "waiting"),
    ("replay", replay, "waiting"),
    ("purge", purge, "finished"),
    ("restore", restore, "dead"),
    ("trim", trim, "finished"),
    ("adopt and handover", begin_anew, "waiting"),
    ("tick", tick, "waiting"),
]


@pytest.mark.parametrize("breaks", [rotten, wrong_type])
@pytest.mark.parametrize(("story", "state"), [one[1:] for one in STORIES], ids=[one[0] for one in STORIES])
def test_the_move_is_made(store: Store, story: Story, state: str, breaks: Callable[[Store], None]) -> None:
    one = story(store, lambda: breaks(store))

    assert store.state(one) == state
    store.command("DEL", *each_key(store))
