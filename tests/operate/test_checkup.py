"""What a doctor says of queues: workers that are gone, jobs that go nowhere, keys that are left."""

import pytest

from streamjobs.client.talk import talk
from streamjobs.core.server import About, Finding, Level
from streamjobs.operate import checkup
from streamjobs.operate.checkup import QueueFacts, Walk
from streamjobs.protocol.inspect import Held
from tests.store.support import Store

MINUTE = 60_000


def found(about: About, *queues: QueueFacts) -> list[Finding]:
    return [finding for finding in checkup.judge(queues) if finding.about is about]


def test_without_queues_all_is_well() -> None:
    assert {finding.level for finding in checkup.judge([])} == {Level.OK}


def test_each_queue_with_a_fault_is_named_and_no_other() -> None:
    named = found(About.BACKLOG, QueueFacts("a", waiting=2), QueueFacts("b"), QueueFacts("c", waiting=1))

    assert [one.what for one in named] == [
        "queue a: 2 jobs waiting, and no worker is subscribed",
        "queue c: 1 job waiting, and no worker is subscribed",
    ]


@pytest.mark.parametrize(
    ("consumers", "live", "level", "said"),
    [
        ({}, (), Level.OK, ""),
        ({"w": (MINUTE // 2, 3)}, (), Level.OK, ""),
        ({"w": (2 * MINUTE, 3), "v": (3 * MINUTE, 1)}, (), Level.WARN, "4 jobs left behind by 2 workers"),
        ({"w": (2 * MINUTE, 3)}, ("w",), Level.OK, ""),
        ({"w": (2 * MINUTE, 3)}, ("v",), Level.WARN, "3 jobs left behind by 1 worker"),
        ({"released": (99 * MINUTE, 3), "parked": (99 * MINUTE, 3)}, (), Level.OK, ""),
        ({f"w{n}": (11 * MINUTE, 0) for n in range(99)}, (), Level.OK, ""),
        ({f"w{n}": (11 * MINUTE, 0) for n in range(100)}, (), Level.WARN, "100 consumers of workers that are gone"),
        ({f"w{n}": (9 * MINUTE, 0) for n in range(100)}, (), Level.OK, ""),
        (None, (), Level.UNKNOWN, "may not see"),
    ],
)
def test_consumers(
    consumers: dict[str, tuple[int, int]] | None, live: tuple[str, ...], level: Level, said: str
) -> None:
    [finding] = found(About.CONSUMERS, QueueFacts("q", consumers=consumers, live=live))

    assert (finding.level, said in finding.what) == (level, True)


def test_who_is_to_take_over_depends_on_whether_anybody_is_there() -> None:
    gone = {"w": (2 * MINUTE, 3)}

    assert "start a worker" in found(About.CONSUMERS, QueueFacts("q", consumers=gone))[0].advice
    assert "live workers" in found(About.CONSUMERS, QueueFacts("q", consumers=gone, live=("v",)))[0].advice


def test_a_long_lease_is_waited_for() -> None:
    gone = {"w": (2 * MINUTE, 3)}

    assert found(About.CONSUMERS, QueueFacts("q", consumers=gone, lease_ms=MINUTE))[0].level is Level.OK


def test_claims_that_go_nowhere_are_counted_and_three_are_named() -> None:
    held = [Held(f"{n}-0", "w", 0, 21) for n in range(5)]

    [finding] = found(About.CLAIMS, QueueFacts("q", held=(*held, Held("9-0", "w", 0, 20))))

    assert finding.what.endswith("0-0 (21 times), 1-0 (21 times), 2-0 (21 times) and 2 more")


def test_a_paused_queue_needs_no_worker_and_a_worked_one_may_have_a_backlog() -> None:
    assert "it is paused" in found(About.BACKLOG, QueueFacts("q", waiting=2, paused=True))[0].what
    assert found(About.BACKLOG, QueueFacts("q", waiting=2, live=("w",)))[0].level is Level.OK
    assert (
        "all its workers are quiet" in found(About.BACKLOG, QueueFacts("q", waiting=2, live=("w",), quiet=True))[0].what
    )


@pytest.mark.parametrize(("notes", "quiet"), [([], False), (["0"], True), (["0", "0"], True), (["0", "8"], False)])
def test_workers_without_slots_are_quiet(store: Store, notes: list[str], quiet: bool) -> None:
    store.make_group()
    for number, note in enumerate(notes):
        store.command("HSET", store.keys.workers, f"w{number}", f"{MINUTE} {note}")

    [facts] = talk(store.executor, checkup.read([store.keys], MINUTE))

    assert facts.quiet is quiet


def test_facts_of_a_queue(store: Store) -> None:
    store.make_group()
    [claim, *_] = store.started(3)
    store.release(claim)
    store.add(2)
    [now_ms] = [int(store.command("TIME")[0]) * 1000]
    store.command("HSET", store.keys.workers, "w", f"{now_ms} 10", "old", f"{now_ms - 60_000} 10")

    [facts] = talk(store.executor, checkup.read([store.keys], now_ms))

    assert (facts.waiting, facts.live, facts.lease_ms, facts.wrong) == (3, ("w",), 15_000, ())
    assert facts.consumers is not None
    assert {name: held for name, (_, held) in facts.consumers.items()} == {"a": 2, "released": 1}
    assert facts.held is not None
    assert len(facts.held) == 3


@pytest.mark.parametrize("minute", [False, True])
def test_counters_that_nothing_can_be_added_to_are_named(store: Store, minute: bool) -> None:
    key = store.keys.minute(1) if minute else store.keys.totals
    store.command("HSET", key, "done", "abc", "dead", "12", "lost", "9" * 19)
    store.command("PEXPIRE", key, 60_000)

    facts = talk(store.executor, checkup.read([store.keys], MINUTE))

    [finding] = found(About.TYPES, *facts)
    store.command("DEL", key)
    assert (finding.level, finding.what) == (
        Level.WARN,
        f"no number, so that nothing is counted there: done of {key}, lost of {key}",
    )


def test_a_lease_that_is_none_is_named(store: Store) -> None:
    store.command("HSET", store.keys.config, "lease_ms", "soon")

    facts = talk(store.executor, checkup.read([store.keys], MINUTE))

    [finding] = found(About.TYPES, *facts)
    assert (finding.level, f"'soon' (lease_ms of {store.keys.config})" in finding.what) == (Level.FAIL, True)


def test_a_minute_of_a_wrong_type_is_named(store: Store) -> None:
    store.command("SET", store.keys.minute(1), "x", "PX", 60_000)

    facts = talk(store.executor, checkup.read([store.keys], MINUTE))

    [finding] = found(About.TYPES, *facts)
    assert (finding.level, "is a string, not a hash" in finding.what) == (Level.FAIL, True)


def test_a_queue_that_is_not_there_has_no_faults(store: Store) -> None:
    facts = talk(store.executor, checkup.read([store.keys], 0))

    assert {finding.level for finding in checkup.judge(facts)} == {Level.OK}


def test_many_queues_are_read_in_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "AT_ONCE", 2)

    facts = talk(store.executor, checkup.read([store.keys] * 5, 0))

    assert len(facts) == 5


def test_a_walk_sees_only_this_namespace(store: Store) -> None:
    store.make_group()
    store.add(1)
    other = Store("memory://", f"{store.keys.namespace}x")
    other.connections, other.executor = store.connections, store.executor
    other.command("SET", other.keys.dedupe("k"), "1-0")

    seen = talk(store.executor, checkup.walk(store.keys.namespace, ["q"]))

    other.command("DEL", other.keys.dedupe("k"))
    assert seen is not None
    assert (seen.whole, seen.strange, seen.endless, seen.unlisted) == (True, [], [], set())
    assert seen.keys >= 3


def test_what_goes_by_itself_outlives_its_queue(store: Store) -> None:
    """After a `queue delete` nothing is wrong with results that are kept still."""
    store.command("SET", store.keys.result("1-1"), "{}", "PX", 60_000)
    store.command("SET", store.keys.dedupe("k"), "1-1", "PX", 60_000)

    seen = talk(store.executor, checkup.walk(store.keys.namespace, []))

    assert seen is not None
    assert (seen.keys, seen.unlisted) == (2, set())
    store.add(1)
    seen = talk(store.executor, checkup.walk(store.keys.namespace, []))
    assert seen is not None
    assert seen.unlisted == {"q"}


def test_long_names_are_cut_and_many_are_counted() -> None:
    walk = Walk(endless=[f"sj:{{q}}:dedupe:{n}{'x' * 200}" for n in range(5)])

    [finding] = checkup.judge_walk(walk)

    assert finding.what.endswith("… and 2 more")
    assert len(finding.what) < 400
