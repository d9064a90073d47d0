"""Crons of whole workers: on the server's own clock, at no cost while nothing is due, with arguments as in any job."""

import asyncio
import enum
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from streamjobs import Context, Permanent, StreamJobs
from streamjobs.client.talk import talk
from streamjobs.core.cron import Every
from streamjobs.core.options import CronOptions
from streamjobs.operate.replay import replay
from streamjobs.operate.scan import Scan
from streamjobs.operate.selection import Selection
from streamjobs.protocol import crons, upkeep
from streamjobs.worker.cron import Scheduler
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.service import until
from streamjobs.worker.station import Station
from tests.faults import server_faults
from tests.servers import Server
from tests.worker.slots import Fleet, slot_ms
from tests.worker.support import FAST, Arm, Flag, Queue, drain, make_app, messages, within


class Region(enum.Enum):
    EU = "eu"


@dataclass
class Span:
    since: datetime
    length: timedelta


async def test_case_H9_arguments_are_the_same_by_cron_by_enqueue_and_after_a_replay(
    app: StreamJobs, queue: Queue
) -> None:
    fleet = Fleet(app, queue)
    span = Span(datetime.fromisoformat("2026-03-29T02:30:00+02:00"), timedelta(hours=1))
    key = uuid.UUID(int=7)
    seen: list[Any] = []
    fails = True

    @app.every(60, name="c", args={"region": Region.EU, "span": span, "key": key, "ratio": 0.1})
    @app.job(name="report")
    async def report(ctx: Context[Any], region: Region, span: Span, key: uuid.UUID, *, ratio: float = 1.0) -> None:
        seen.append((region, span, key, ratio, ctx.headers.get("cron-slot")))
        if fails:
            raise Permanent("not yet")

    await fleet.run(one := fleet.start(), at=1)
    await fleet.run(one, at=60)
    [by_cron] = queue.command("XRANGE", queue.keys.stream, "-", "+")
    assert by_cron[1][3] == report.call(Region.EU, span, key, ratio=0.1).body
    await drain(app)
    fails = False
    executor = app.connections.sync()
    assert talk(executor, replay(app.namespace, Scan([queue.keys], Selection()))).done == 1
    await drain(app)

    assert seen == [(Region.EU, span, key, 0.1, "2027-01-15T12:01:00.000Z")] * 2


async def test_workers_that_come_and_go_run_each_second_once(app: StreamJobs) -> None:
    """Three of them on the server's own clock, all restarted again and again, a moment after a slot."""
    seen: list[int] = []
    early: list[str] = []
    ran = Flag()

    @app.every(1, catch_up="all")
    @app.job(name="c", result_ttl=0)
    async def note(ctx: Context[Any]) -> None:
        seen.append(slot_ms(ctx.headers))
        if ctx.enqueued_at * 1000 < seen[-1]:
            early.append(ctx.id)
        ran.raise_()

    for times in range(1, 5):
        async with app.worker(options=FAST), app.worker(options=FAST), app.worker(options=FAST):
            await ran.wait(times)
    await drain(app)

    assert early == []
    assert sorted(seen) == list(range(min(seen), max(seen) + 1, 1000))


async def test_what_a_worker_with_crons_costs_while_none_is_due(real: StreamJobs, queue: Queue) -> None:
    """One request at its start, and none after it until a slot comes."""
    real.cron("0 0 29 2 *", name="leap")(real.job(name="none")(lambda: None))
    with queue.monitored() as seen:
        async with real.worker(options=FAST) as worker:
            await within(worker.ready)
            await until(asyncio.Event(), 1.5)

    requests = [line for line in seen if b"{q}:cron" in line and b" lua]" not in line]
    assert len([line for line in requests if b'"EVALSHA"' in line]) == 1, requests


async def test_memory_that_is_full_delays_a_slot_and_loses_none(
    server_binary: Path, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[int] = []
    ran = Flag()
    with Server(server_binary) as server:
        app = make_app(server.url, namespace)

        @app.every(1, catch_up="all")
        @app.job(name="c", result_ttl=0)
        async def note(ctx: Context[Any]) -> None:
            seen.append(slot_ms(ctx.headers))
            ran.raise_()

        async with app.worker(options=FAST):
            await ran.wait(1)
            with server_faults.full_memory(server):
                async with asyncio.timeout(20):
                    while not any(text.startswith("cron: ") for text in messages(caplog)):
                        await until(asyncio.Event(), 0.05)
                had = ran.count
            await ran.wait(had + 2)
        await app.aclose()

    assert sorted(seen) == list(range(min(seen), max(seen) + 1, 1000))


async def test_the_time_is_the_servers(tmp_path: Path, server_binary: Path, namespace: str) -> None:
    """The clock of the server is wrong by two years and a few seconds; that of this process counts for nothing."""
    clock = server_faults.ShiftedClock(tmp_path)
    if why := clock.why_not():
        pytest.skip(why)
    ahead_s = 2 * 365 * 86_400 + 7
    clock.shift(ahead_s)
    seen: list[dict[str, str]] = []
    ran = Flag()
    with clock.installed():
        server = Server(server_binary).start()
    with server:
        app = make_app(server.url, namespace)

        @app.every(1)
        @app.job(name="c", result_ttl=0)
        async def note(ctx: Context[Any]) -> None:
            seen.append(ctx.headers)
            assert 0 <= ctx.enqueued_at * 1000 - slot_ms(ctx.headers) < 900
            ran.raise_()

        with server.client() as client:
            now_s = client.time()[0]
        async with app.worker(options=FAST):
            await ran.wait(3)
        await app.aclose()

    slots = [slot_ms(headers) // 1000 for headers in seen]
    assert slots == list(range(slots[0], slots[0] + len(slots)))
    assert 0 <= slots[0] - now_s < 10


@pytest.mark.parametrize("catch_up", ["once", "all"])
async def test_who_thinks_it_later_than_the_server_is_told_how_long_to_wait(
    app: StreamJobs, queue: Queue, failpoint: Arm, catch_up: Any
) -> None:
    cron = app.job(name="note")(lambda: None).cron(Every(3600), CronOptions(name="c", catch_up=catch_up))
    station = Station(app.connections.aio(), app.namespace, [WorkerQueue(queue.keys, 15_000)], FAST, "me", Random(1))
    scheduler = Scheduler(station, [cron])
    asked: list[None] = []

    def ask() -> None:
        asked.append(None)
        assert len(asked) <= 2

    failpoint("worker.before_tick", ask)
    for hours_ahead in (0, 3, 7):
        station.clock.sync(queue.run(upkeep.server_time()) + hours_ahead * 3_600_000)
        assert await scheduler.tick() > 0

    row = queue.run(crons.rows(queue.keys))["c"]
    assert (queue.length(), row.runs, row.skipped, len(asked)) == (0, 0, 0, 2)


@pytest.mark.parametrize(("options", "queues"), [({"burst": True}, None), ({}, ["other"])])
async def test_who_only_drains_or_serves_other_queues_schedules_nothing(
    app: StreamJobs, queue: Queue, options: dict[str, Any], queues: list[str] | None
) -> None:
    app.every(60, name="c", catch_up="all")(app.job(name="note")(lambda: None))
    worker = app.make_worker(queues, msgspec.structs.replace(FAST, **options))
    running = asyncio.ensure_future(worker.run())
    await within(worker.ready)
    worker.stop()
    await running

    assert queue.run(crons.code(queue.keys)) == {}
