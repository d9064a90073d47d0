"""The whole picture from a real server: what it costs, that it only reads, and that nothing is hidden."""

from typing import Any

import pytest

from streamjobs.client.talk import Pause, talk
from streamjobs.core.errors import Rejected
from streamjobs.core.thresholds import Health, Thresholds
from streamjobs.operate.metrics import WINDOWS
from streamjobs.operate.overview import Overview, QueueView, overview
from streamjobs.protocol import config, intake, metrics, upkeep
from tests.store.support import Store, death, delayed, later


def look(store: Store, *names: str, **how: Any) -> Overview:
    return talk(store.executor, overview(store.keys.namespace, names or ["q"], **how))


def view(store: Store, **how: Any) -> QueueView:
    [found] = look(store, **how).queues
    return found


def about(view: QueueView) -> list[str]:
    return [reason.about for reason in view.verdict.reasons]


@pytest.fixture
def known(store: Store) -> Store:
    """A queue that has been announced, and has a group and a worker."""
    store.run(intake.announce(store.keys.namespace, [store.keys.queue]))
    store.make_group()
    meet(store)
    return store


def meet(store: Store, *, slots: int = 8) -> None:
    """Let a worker show itself."""
    store.run(upkeep.promote(store.keys, "a", rung=False, note=str(slots), room=1000))


def at(store: Store, age_ms: int) -> str:
    """Put a job on the stream that became ready so long ago; the stream must be empty."""
    entry = f"{store.run(upkeep.server_time()) - age_ms}-0"
    store.command("XADD", store.keys.stream, entry, "kind", "mail", "body", "{}")
    return entry


def test_an_idle_queue_is_ok(known: Store) -> None:
    found = look(known)

    assert found.health is Health.OK
    assert found.queues[0].verdict.reasons == ()
    assert 0 < found.latency_s < 10
    assert found.queues[0].drain_s == 0


def test_case_J2_a_job_that_others_always_pass_shows_its_age(known: Store) -> None:
    """In a queue that is read only when others are empty, or in the lane of a limit."""
    at(known, 3_600_000)
    assert 3_600_000 <= view(known).stats.oldest_ready_ms < 3_700_000

    [claim] = known.claim()
    assert view(known).stats.oldest_ready_ms == 0
    known.admit(*known.started(1), clock="")
    assert known.admit(claim) == ["PARKED"]

    parked = view(known)
    assert (parked.stats.waiting, parked.stats.limited) == (1, 1)
    assert 3_600_000 <= parked.stats.oldest_ready_ms < 3_700_000
    assert about(parked) == ["oldest"]


def test_case_J1_jobs_for_later_are_no_reason(known: Store) -> None:
    known.schedule(*(delayed(n, delay_ms=3_600_000) for n in range(20)))
    known.complete(*known.started(3))

    found = view(known)

    assert (found.stats.scheduled, found.stats.oldest_ready_ms) == (20, 0)
    assert found.verdict.health is Health.OK


def test_workers_that_vanished(known: Store) -> None:
    now_ms = known.run(upkeep.server_time())
    for n, ago_s in enumerate((5, 20, 300, 590, 700)):
        known.command("HSET", known.keys.workers, f"w{n}", f"{now_ms - ago_s * 1000} 8")

    found = view(known)

    assert (found.stats.workers, found.stats.vanished) == (2, 3)
    assert about(found) == ["crashes"]


def test_thresholds_of_the_queue_and_of_who_looks(known: Store) -> None:
    known.bury(death(known.started(1)[0]))
    assert about(view(known)) == ["dead"]

    known.run(config.declare_thresholds(known.keys, '{"dead":[2,3]}'))
    assert about(view(known)) == []
    assert view(known).thresholds == Thresholds(dead=(2, 3))

    assert view(known, thresholds={"dead": (1, 1)}).verdict.health is Health.CRITICAL


def test_a_full_queue(known: Store) -> None:
    known.run(config.declare(known.keys, config.MAX_WAITING, 5))
    known.add(4)
    assert about(view(known)) == []
    known.add(1)
    assert about(view(known)) == ["full"]
    known.run(config.override(known.keys, config.MAX_WAITING, config.OFF))

    assert (about(view(known)), view(known).stats.max_waiting) == ([], None)


def test_rates_and_drain_time(known: Store) -> None:
    known.add(600)
    known.complete(*known.claim(count=300))

    found = view(known)

    assert found.tally.in_per_s == pytest.approx(10, rel=0.1)
    assert found.tally.out_per_s == pytest.approx(5, rel=0.1)
    assert found.drain_s == float("inf")
    assert view(known, window=WINDOWS["5m"]).tally.in_per_s == pytest.approx(2)


def test_errors_and_times_by_kind(known: Store) -> None:
    [one, _] = known.started(2)
    known.retry(later(one))
    known.run(metrics.measure(known.keys, [("mail", "ran", 1), ("mail", "run_us", 900), ("mail", "run.60", 1)]))

    kinds = view(known, by_kind=True).kinds

    assert kinds is not None
    assert [(kind.kind, kind.tally.failed) for kind in kinds] == [("mail", 1)]
    assert kinds[0].run.mean == 0.9
    assert view(known).kinds is None


def commands(store: Store, *names: str, **how: Any) -> list[int]:
    """Return how many requests go in each round trip."""
    conversation = overview(store.keys.namespace, names, **how)
    rounds = []
    requests = next(conversation)
    try:
        while True:
            assert not isinstance(requests, Pause)
            rounds.append(len(requests))
            requests = conversation.send(store.executor.run_all(requests))
    except StopIteration:
        return rounds


@pytest.mark.parametrize("window", list(WINDOWS))
def test_requests_are_as_many_whatever_a_queue_holds(known: Store, window: str) -> None:
    """Also with kinds: they are not asked for one by one."""
    empty = commands(known, "q", window=WINDOWS[window], by_kind=True)
    for n in range(8):
        known.add(300, f"kind{n}")
    known.claim(count=500)
    known.schedule(*(delayed(n, delay_ms=99_000) for n in range(300)))
    known.bury(*(death(claim) for claim in known.claim(count=200)))

    full = commands(known, "q", window=WINDOWS[window], by_kind=True)

    # A minute more may have begun.
    assert len(full) == len(empty)
    assert all(abs(more - less) <= 2 for more, less in zip(full, empty, strict=True))
    assert max(full) <= 300


def test_several_queues_share_round_trips(known: Store) -> None:
    known.run(intake.announce(known.keys.namespace, ["a", "b"]))

    assert commands(known, "q") == [3, 17, 1, 21]
    assert commands(known, "q", "a", "b") == [3, 51, 3, 63]


def test_looking_changes_nothing(server_url: str, namespace: str) -> None:
    """Said by the server: a user who may only read sees it all."""
    store = Store(server_url, namespace)
    store.run(intake.announce(namespace, ["q"]))
    store.make_group()
    store.add(5)
    store.claim(count=2)
    user = f"reader-{namespace}"
    store.command(
        "ACL", "SETUSER", user, "on", ">secret", "~*", "+@read", "-@write", "+time", "+info", "+hello", "+client"
    )
    reader = Store(server_url.replace("unix://", f"unix://{user}:secret@"), namespace)
    try:
        found = look(reader, by_kind=True, window=WINDOWS["1h"])

        assert (found.queues[0].stats.waiting, found.queues[0].stats.running) == (3, 2)
        assert found.queues[0].stats.used_bytes
        with pytest.raises(Rejected, match="NOPERM"):
            reader.add(1)
    finally:
        reader.close()
        store.command("ACL", "DELUSER", user)
        store.close()


def test_a_server_that_keeps_its_memory_to_itself(server_url: str, namespace: str) -> None:
    store = Store(server_url, namespace)
    store.add(1)
    user = f"guest-{namespace}"
    store.command(
        "ACL", "SETUSER", user, "on", ">secret", "~*", "+@read", "-memory", "-info", "+time", "+hello", "+client"
    )
    guest = Store(server_url.replace("unix://", f"unix://{user}:secret@"), namespace)
    try:
        found = look(guest)

        assert (found.queues[0].stats.waiting, found.queues[0].stats.used_bytes) == (1, None)
        assert (found.server.version, found.verdict.health) == ("", Health.OK)
    finally:
        guest.close()
        store.command("ACL", "DELUSER", user)
        store.close()
