"""Schedulers on a clock of the test's: each slot runs once, whoever dies and comes back; missed ones as was said."""

import uuid
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamjobs import StreamJobs
from streamjobs.core.cron import Every
from streamjobs.core.options import CronOptions
from streamjobs.protocol import crons
from tests.worker.slots import MINUTE_MS, NOON_MS, Fleet, Killed
from tests.worker.support import Arm, Queue, messages


@pytest.fixture
def fleet(app: StreamJobs, queue: Queue) -> Fleet:
    return Fleet(app, queue)


def every_minute(app: StreamJobs, catch_up: Any = "once", **options: Any) -> None:
    app.every(60, name="c", catch_up=catch_up, **options)(app.job(name="note")(lambda: None))


async def test_case_D5_three_schedulers_restarted_at_a_slot_make_one_job_of_it(app: StreamJobs, fleet: Fleet) -> None:
    every_minute(app)
    await fleet.run(*(fleet.start() for _ in range(3)), at=1)

    for minute in range(1, 6):
        await fleet.run(*(fleet.start() for _ in range(3)), at=60 * minute + 0.2)

    assert fleet.slots() == [60, 120, 180, 240, 300]
    assert (fleet.row().late, fleet.row().skipped) == (0, 0)


@pytest.mark.parametrize(
    ("catch_up", "slots", "late", "skipped"), [("once", [60], 1, 0), ("none", [], 0, 1), ("all", [60], 1, 0)]
)
async def test_case_D6_a_slot_at_which_no_worker_was_there(
    app: StreamJobs,
    fleet: Fleet,
    caplog: pytest.LogCaptureFixture,
    catch_up: str,
    slots: list[int],
    late: int,
    skipped: int,
) -> None:
    every_minute(app, catch_up)
    await fleet.run(fleet.start(), at=1)

    back = fleet.start()
    await fleet.run(back, fleet.start(), at=90)

    assert fleet.slots() == slots
    assert [headers.get("cron-late") for headers in fleet.headers()] == ["30"] * late
    assert (fleet.row().late, fleet.row().skipped) == (late, skipped)
    said = "is job q:" if late else "1 missed slots were passed over"
    assert [said in text for text in messages(caplog)] == [True]

    await fleet.run(back, at=120)
    assert fleet.slots() == [*slots, 120]


async def test_of_many_missed_slots_one_is_run_or_all(app: StreamJobs, fleet: Fleet) -> None:
    kind = app.job(name="note")(lambda: None)
    for catch_up in ("once", "none", "all"):
        app.every(60, name=catch_up, catch_up=catch_up)(kind)  # type: ignore[arg-type]
    await fleet.run(fleet.start(), at=1)

    await fleet.run(fleet.start(), fleet.start(), at=3600 * 5 + 30)

    names = [headers["cron"] for headers in fleet.headers()]
    assert [names.count(name) for name in ("once", "none", "all")] == [1, 0, 300]
    assert [fleet.row(name).skipped for name in ("once", "none", "all")] == [299, 300, 0]
    assert fleet.row("all").late == 300


async def test_case_D7_a_cron_stands_once_however_often_workers_start(
    app: StreamJobs, fleet: Fleet, queue: Queue
) -> None:
    every_minute(app)
    for _ in range(5):
        await fleet.run(fleet.start(), at=1)

    await fleet.run(fleet.start(), at=61)

    assert list(queue.run(crons.rows(queue.keys))) == ["c"]
    assert fleet.slots() == [60]


async def test_a_cron_that_is_seen_for_the_first_time_has_missed_nothing(app: StreamJobs, fleet: Fleet) -> None:
    every_minute(app, "all")

    await fleet.run(fleet.start(), at=59)

    assert fleet.slots() == []
    await fleet.run(fleet.start(), at=60)
    assert fleet.slots() == [60]


async def test_two_schedulers_killed_at_every_slot_for_ten_minutes(
    app: StreamJobs, fleet: Fleet, failpoint: Arm
) -> None:
    """Both of them, before the request or with its reply under way; and back at once, or after a while."""
    every_minute(app)
    chance = Random(5)
    running, kills = [fleet.start(), fleet.start()], 0
    await fleet.run(*running, at=1)
    for minute in range(1, 11):
        await fleet.run(*running, at=60 * minute - 0.001)
        for n in range(2):
            failpoint(chance.choice(["worker.before_tick", "worker.after_tick"]), _kill)
            try:
                await fleet.run(running[n], at=60 * minute + chance.choice([0, 0.001, 0.2]))
            except Killed:
                kills += 1
                running[n] = fleet.start()
            for name in ("worker.before_tick", "worker.after_tick"):
                failpoint(name, lambda: None)
        await fleet.run(*running, at=60 * minute + chance.choice([0.2, 5, 9]))

    assert fleet.slots() == [60 * minute for minute in range(1, 11)]
    assert (fleet.row().runs, fleet.row().late, fleet.row().skipped) == (10, 0, 0)
    assert kills == 20


def _kill() -> None:
    raise Killed


moves = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.sampled_from([1, 200, 9_000, 30_000, 59_999, 60_000, 150_000])),
        st.tuples(st.just("run"), st.integers(0, 1)),
        st.tuples(st.just("restart"), st.integers(0, 1)),
        st.tuples(st.just("die before"), st.integers(0, 1)),
        st.tuples(st.just("die after"), st.integers(0, 1)),
    ),
    max_size=40,
)


@settings(max_examples=40)
@given(moves=moves, catch_up=st.sampled_from(["once", "none", "all"]))
async def test_whatever_happens_no_slot_comes_twice_or_early_and_all_are_accounted_for(
    app: StreamJobs, queue: Queue, failpoint: Arm, moves: list[tuple[str, int]], catch_up: Any
) -> None:
    queue.command("DEL", queue.keys.stream, queue.keys.cron, queue.keys.cron_code)
    fleet = Fleet(app, queue)
    cron = app.job(name=f"n{uuid.uuid4().hex}")(lambda: None).cron(Every(60), _options(catch_up))
    running = [fleet.start(cron), fleet.start(cron)]
    await fleet.run(*running, at=1)
    for move, n in [*moves, ("wait", 1), ("run", 0), ("run", 1)]:
        if move == "wait":
            fleet.now_ms += n
        elif move == "restart":
            running[n] = fleet.start(cron)
        else:
            failpoint("worker.before_tick", _kill if move == "die before" else lambda: None)
            failpoint("worker.after_tick", _kill if move == "die after" else lambda: None)
            before = len(fleet.slots())
            try:
                await running[n].tick()
            except Killed:
                running[n] = fleet.start(cron)
            assert all(NOON_MS + slot * 1000 <= fleet.now_ms for slot in fleet.slots()[before:])

    slots, row = fleet.slots(), fleet.row()
    passed = (fleet.now_ms - NOON_MS) // MINUTE_MS
    assert slots == sorted(set(slots))
    assert (len(slots), len(slots) + row.skipped) == (row.runs, passed)
    assert catch_up != "all" or row.skipped == 0


def _options(catch_up: Any) -> Any:
    return CronOptions(name="c", catch_up=catch_up)


async def test_versions_that_differ_share_a_name_and_no_slot_comes_twice(app: StreamJobs, fleet: Fleet) -> None:
    """A rolling deploy: while both are there each runs its own slots, and those that both have once."""
    kind = app.job(name="note")(lambda: None)
    old, new = (kind.cron(Every(seconds), _options("once")) for seconds in (60, 90))
    await fleet.run(before := fleet.start(old), at=1)
    await fleet.run(after := fleet.start(new), at=2)

    for seconds in (60, 90, 120, 180):
        await fleet.run(before, after, at=seconds)
    both = fleet.slots()
    await fleet.run(fleet.start(new), at=210)
    for seconds in (240, 270):
        await fleet.run(after, at=seconds)

    assert both == [60, 90, 120, 180]
    assert fleet.slots()[4:] == [270]


async def test_another_schedule_does_not_catch_up_slots_that_it_never_had(app: StreamJobs, fleet: Fleet) -> None:
    kind = app.job(name="note")(lambda: None)
    await fleet.run(fleet.start(kind.cron(Every(3600), _options("all"))), at=1)

    await fleet.run(new := fleet.start(kind.cron(Every(60), _options("all"))), at=1800)

    assert fleet.slots() == []
    await fleet.run(new, at=1860)
    assert fleet.slots() == [1860]


async def test_a_cron_that_is_gone_from_the_code_stops(app: StreamJobs, fleet: Fleet) -> None:
    kind = app.job(name="note")(lambda: None)
    kept, removed = (app.every(60, name=name)(kind) and app.registry.crons()[name] for name in ("kept", "removed"))
    await fleet.run(fleet.start(kept, removed), at=1)
    await fleet.run(new := fleet.start(kept), at=2)

    for seconds in (60, 120):
        await fleet.run(new, at=seconds)

    assert [headers["cron"] for headers in fleet.headers()] == ["kept", "kept"]


async def test_a_paused_cron_goes_on_with_the_first_slot_after_it_is_resumed(
    app: StreamJobs, fleet: Fleet, queue: Queue
) -> None:
    every_minute(app, "all")
    await fleet.run(one := fleet.start(), at=1)
    queue.run(crons.pause(queue.keys, "c", fleet.now_ms))
    await fleet.run(one, at=60)
    queue.run(crons.resume(queue.keys, "c", NOON_MS + 200_000))

    # The slots at 120 and 180 fell into the pause, and nobody was there to pass them over.
    await fleet.run(fleet.start(), at=250)

    assert fleet.slots() == [240]
    assert fleet.row().skipped == 1


async def test_an_emptied_server_is_planned_anew(app: StreamJobs, fleet: Fleet, queue: Queue) -> None:
    every_minute(app, "all")
    await fleet.run(one := fleet.start(), at=1)
    await fleet.run(one, at=60)
    queue.command("DEL", queue.keys.cron, queue.keys.cron_code, queue.keys.stream)

    await fleet.run(one, at=120)
    await fleet.run(one, at=121)
    await fleet.run(one, at=180)

    assert fleet.slots() == [180]


async def test_a_clock_that_was_years_ahead_for_a_moment_holds_up_nothing(app: StreamJobs, fleet: Fleet) -> None:
    every_minute(app)
    year = 365 * 86_400
    await fleet.run(one := fleet.start(), at=1)
    await fleet.run(one, at=year)
    await fleet.run(one, at=61)

    for seconds in (120, 180):
        await fleet.run(one, fleet.start(), at=seconds)

    assert fleet.slots() == [year, 120, 180]


async def test_a_clock_that_was_set_back_runs_no_slot_again(app: StreamJobs, fleet: Fleet) -> None:
    every_minute(app)
    await fleet.run(one := fleet.start(), at=1)
    for seconds in (60, 120, 180, 30, 60, 120, 180, 240):
        await fleet.run(one, fleet.start(), at=seconds)

    assert fleet.slots() == [60, 120, 180, 240]


async def test_sleeps_until_the_next_slot_and_never_long(app: StreamJobs, fleet: Fleet) -> None:
    every_minute(app)
    one = fleet.start()
    await one.tick()

    fleet.now_ms = NOON_MS + 57_000
    soon = await one.tick()
    fleet.now_ms = NOON_MS + 30_000
    later = await one.tick()

    assert (soon, later) == (3.001, 5.0)
