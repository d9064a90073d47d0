"""plan and tick: where crons stand, and the jobs of their slots: each slot once, and none before its time."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from streamjobs.core.codec import decode_meta
from streamjobs.core.cron import Cron, Due, Every, Turn
from streamjobs.core.job import Job, Meta
from streamjobs.protocol import crons, leases, upkeep
from streamjobs.protocol.crons import Standing, Ticked
from tests.store.support import CLOCK, Store

HOUR_MS = 3_600_000
LAST = CLOCK // HOUR_MS * HOUR_MS
NEXT = LAST + HOUR_MS
CRON = Cron("hourly", Job("mail", b'{"n":1}', "q", meta=Meta(result_ttl_ms=5)), Every(3600))


def plan(store: Store, *planned: Cron, at: int = LAST, consumer: str = "a") -> list[Standing]:
    return store.run(crons.plan(store.keys, consumer, "10", planned or (CRON,), str(at)))


def tick(store: Store, *slots: int, last: int = 0, at: int = 0, passed: tuple[int, int] = (0, 0), **due: int) -> Ticked:
    """Tick as a worker does that knows `last`; by default at the last of the slots."""
    turn = Turn(tuple(Due(slot, due.get("due", slot), due.get("late", 0)) for slot in slots), *passed, 0)
    return store.run(crons.tick(store.keys, CRON, last, turn, str(at or max(slots))))


def row(store: Store) -> crons.Row:
    return store.run(crons.rows(store.keys))["hourly"]


def test_a_schedule_begins_when_it_is_first_planned(store: Store) -> None:
    first = plan(store, at=LAST + 5)
    again = plan(store, at=LAST + 9)

    assert first == again == [Standing(0, LAST + 5)]
    assert row(store) == crons.Row(0, LAST + 5, 0, 0, 0, "", "every 3600")


def test_case_D7_planning_again_changes_nothing(store: Store) -> None:
    for start in range(5):
        plan(store, at=LAST + start, consumer=f"start-{start}")

    assert store.command("HLEN", store.keys.cron) == 1
    assert row(store).since_ms == LAST


def test_a_schedule_that_was_planned_while_the_clock_was_ahead_begins_now(store: Store) -> None:
    plan(store, at=LAST + 900 * HOUR_MS)
    store.run(crons.resume(store.keys, "hourly", LAST + 900 * HOUR_MS))

    assert plan(store, at=LAST) == [Standing(0, LAST)]
    assert row(store).since_ms == LAST


def test_another_schedule_under_the_same_name_begins_anew_and_keeps_the_last_slot(store: Store) -> None:
    plan(store, at=LAST - 9)
    tick(store, LAST)

    [standing] = plan(store, msgspec.structs.replace(CRON, schedule=Every(60)), at=NEXT)

    assert standing == Standing(LAST, NEXT)
    assert row(store).runs == 1
    # The slots of the old one may still come, from workers that know no other.
    assert tick(store, NEXT, last=LAST).word == "OK"
    assert row(store).schedule == "every 3600"


def test_a_slot_becomes_a_job_with_arguments_and_meta(store: Store) -> None:
    plan(store)

    done = tick(store, NEXT)

    [claim] = store.claim()
    meta = decode_meta(claim.meta)
    assert done == Ticked("OK", NEXT, 0, [claim.entry.decode()])
    assert (claim.kind, claim.body, meta.result_ttl_ms) == (b"mail", b'{"n":1}', 5)
    assert meta.headers == {"cron": "hourly", "cron-slot": "2027-01-15T09:00:00.000Z"}
    assert row(store) == crons.Row(NEXT, LAST, 1, 0, 0, claim.entry.decode(), "every 3600")
    assert store.totals() == {"enqueued": 1}
    assert store.minute(NEXT) == {"enqueued:mail": 1}


def test_who_comes_second_is_told_and_changes_nothing(store: Store) -> None:
    plan(store)
    tick(store, NEXT)
    before = store.command("HGETALL", store.keys.cron)

    again = tick(store, NEXT, at=NEXT + 50)

    assert again == Ticked("DUPLICATE", NEXT, 0, [])
    assert store.depth() == 1
    assert store.command("HGETALL", store.keys.cron) == before


def test_what_was_decided_upon_an_older_state_is_void_as_a_whole(store: Store) -> None:
    """Else a slot that another one ran would be counted as passed over, or a late one run after it."""
    plan(store)
    tick(store, NEXT)

    assert tick(store, NEXT + HOUR_MS, passed=(1, NEXT)).word == "DUPLICATE"
    assert (store.depth(), row(store).skipped) == (1, 0)
    assert tick(store, NEXT + HOUR_MS, last=NEXT).word == "OK"


def test_many_at_once_make_one_job_of_a_slot(real: Store) -> None:
    plan(real)
    turn = Turn((Due(NEXT, NEXT),), 0, 0, 0)
    call = crons.tick(real.keys, CRON, 0, turn, str(NEXT))
    executors = [real.connections.sync() for _ in range(4)]

    with ThreadPoolExecutor(4) as pool:
        words = [done.word for done in pool.map(lambda executor: executor.run(call), executors * 10)]

    for executor in executors[1:]:
        executor.close()
    assert words.count("OK") == 1
    assert real.depth() == 1


@pytest.mark.parametrize("early", [1, 60_000])
def test_nothing_runs_before_its_time(store: Store, early: int) -> None:
    plan(store)

    assert tick(store, NEXT, at=NEXT - early) == Ticked("EARLY", 0, early, [])
    assert tick(store, NEXT, due=NEXT + 5000) == Ticked("EARLY", 0, 5000, [])
    assert (store.depth(), row(store).last_ms) == (0, 0)


def test_of_several_slots_those_run_whose_time_has_come(store: Store) -> None:
    plan(store)

    done = tick(store, NEXT, NEXT + HOUR_MS, NEXT + 2 * HOUR_MS, at=NEXT + HOUR_MS)

    assert (done.word, done.last_ms, done.wait_ms, len(done.jobs)) == ("OK", NEXT + HOUR_MS, HOUR_MS, 2)


def test_nothing_to_come_is_passed_over(store: Store) -> None:
    plan(store)

    assert tick(store, passed=(1, NEXT), at=NEXT - 1) == Ticked("EARLY", 0, 1, [])


def test_slots_that_are_passed_over_are_counted_and_late_ones_too(store: Store) -> None:
    plan(store)

    assert tick(store, passed=(2, NEXT + HOUR_MS), at=NEXT + HOUR_MS) == Ticked("OK", NEXT + HOUR_MS, 0, [])
    tick(store, NEXT + 2 * HOUR_MS, last=NEXT + HOUR_MS, late=30_000)

    at = row(store)
    assert (at.runs, at.late, at.skipped) == (1, 1, 2)


def test_a_paused_cron_passes_its_slots_over(store: Store) -> None:
    plan(store)
    store.run(crons.pause(store.keys, "hourly", LAST))

    done = tick(store, NEXT, NEXT + HOUR_MS)

    assert done == Ticked("PAUSED", NEXT + HOUR_MS, 0, [])
    assert (store.depth(), row(store).skipped) == (0, 2)
    assert store.run(crons.paused(store.keys)) == {"hourly"}


def test_a_resumed_cron_begins_after_that_instant(store: Store) -> None:
    plan(store)
    store.run(crons.pause(store.keys, "hourly", LAST))

    store.run(crons.resume(store.keys, "hourly", NEXT + 5))

    assert store.run(crons.paused(store.keys)) == set()
    assert plan(store, at=NEXT + 9) == [Standing(0, NEXT + 5)]
    assert tick(store, NEXT + HOUR_MS).word == "OK"


@pytest.mark.parametrize("value", [None, "", "no standing of ours"])
def test_a_cron_that_is_not_planned_is_unknown(store: Store, value: str | None) -> None:
    """The server was emptied, or somebody wrote into its keys."""
    if value is not None:
        store.command("HSET", store.keys.cron, "hourly", value)

    assert tick(store, NEXT) == Ticked("UNKNOWN", 0, 0, [])
    assert store.depth() == 0
    assert plan(store) == [Standing(0, LAST)]


def test_workers_say_what_they_schedule_and_those_that_are_gone_are_forgotten(store: Store) -> None:
    other = msgspec.structs.replace(CRON, name="other", jitter_ms=7)
    plan(store, consumer="gone")
    store.run(leases.retire(store.keys, ["gone"]))
    plan(store, consumer="a")
    plan(store, CRON, other, consumer="b")

    code = store.run(crons.code(store.keys))

    assert {worker: [one.name for one in found] for worker, found in code.items()} == {
        "a": ["hourly"],
        "b": ["hourly", "other"],
    }
    one = code["b"][1]
    assert (one.kind, bytes(one.body), one.schedule, one.catch_up, one.jitter_ms) == (
        "mail", b'{"n":1}', "every 3600", "once", 7,
    )  # fmt: skip
    assert one.meta == Meta(result_ttl_ms=5)
    assert store.run(upkeep.workers(store.keys)) == {"a": (LAST, "10"), "b": (LAST, "10")}


def test_what_cannot_be_read_is_not_shown(store: Store) -> None:
    plan(store)
    for key, value in ((store.keys.cron, "nonsense"), (store.keys.cron_code, "[{}]")):
        store.command("HSET", key, "other", value)

    assert list(store.run(crons.rows(store.keys))) == ["hourly"]
    assert list(store.run(crons.code(store.keys))) == ["a"]


@pytest.mark.parametrize(("size", "slots"), [(2, 100), (200_000, 5)])
def test_a_call_is_bounded_in_jobs_and_bytes(store: Store, size: int, slots: int) -> None:
    large = msgspec.structs.replace(CRON, job=Job("mail", b"x" * size, "q"))
    turn = Turn(tuple(Due(NEXT + n, NEXT + n) for n in range(150)), 0, 0, 0)
    plan(store)

    done: Any = store.run(crons.tick(store.keys, large, 0, turn, str(NEXT + 1000)))

    assert (len(done.jobs), done.last_ms) == (slots, NEXT + slots - 1)
