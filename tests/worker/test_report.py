"""A worker tells of itself, and follows orders: quiet, run, stop."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from typing import Any

import pytest

from streamjobs import Context, State, StreamJobs, WorkerOptions, __version__
from streamjobs.client.talk import atalk
from streamjobs.operate import workers as operate
from streamjobs.operate.workers import Taken, WorkerStatus
from streamjobs.protocol import workers
from streamjobs.protocol.keys import worker as key_of
from streamjobs.worker import line, process
from tests.worker.bench import Gate
from tests.worker.support import FAST, WITHIN_S, Flag, Queue, make_app, messages, pause, within

SECRET = "payload-text"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjobs.worker.report.EVERY_S", 0.05)


async def look(app: StreamJobs) -> list[WorkerStatus]:
    return (await atalk(app.connections.aio(), operate.look(app.namespace))).workers


async def seen(app: StreamJobs, fits: Callable[[WorkerStatus], bool]) -> WorkerStatus:
    """Wait until there is a worker of which this holds."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            # The set of names is written by the worker's upkeep.
            for one in await look(app):
                if fits(one):
                    return one
            await pause(0.01)


async def order(app: StreamJobs, name: str, word: str) -> Taken:
    """Give an order to a worker that tells of itself, and wait until it has taken it."""
    await seen(app, lambda one: one.name == name and one.told)
    [taken] = await atalk(app.connections.aio(), operate.order(app.namespace, [name], word))
    assert taken.taken
    return taken


async def test_a_worker_tells_what_it_is_and_does(app: StreamJobs, gate: Gate, queue: Queue) -> None:
    async with app.worker(["q", "other"], FAST) as worker:
        handle = await gate.kind.enqueue(SECRET)
        await gate.started.wait()
        found = await seen(app, lambda one: one.note.running == 1)
        note = found.note
        gate.go_on.set()
        ended = await seen(app, lambda one: one.note.done == 1)

    assert (found.name, found.live, found.state, found.queues) == (worker.consumer, True, "running", ("other", "q"))
    assert (note.pid, note.supervisor, note.version, note.slots) == (os.getpid(), 0, __version__, 10)
    assert (note.queues, note.serves) == (("q", "other"), 2)
    assert [(one.id, one.kind) for one in note.jobs] == [(handle.id, "gate")]
    assert abs(note.at_ms - note.jobs[0].started_ms) < 10_000
    assert note.started_ms <= note.jobs[0].started_ms <= note.at_ms
    assert note.rss_bytes > 1_000_000
    assert (ended.note.running, ended.note.jobs) == (0, ())


async def test_nothing_of_arguments_is_told(real: StreamJobs, queue: Queue) -> None:
    started, go_on = Flag(), asyncio.Event()

    @real.job(result_ttl=0)
    async def waits(text: str) -> None:
        started.raise_()
        await go_on.wait()

    async with real.worker(options=FAST) as worker:
        with queue.monitored() as sent:
            await waits.options(dedupe_key=SECRET, headers={"h": SECRET}).enqueue(SECRET)
            await started.wait()
            before = await seen(real, lambda one: one.note.running == 1)
            await seen(real, lambda one: one.note.at_ms > before.note.at_ms)
        go_on.set()

    reports = [line for line in sent if worker.consumer.encode() in line and b'\\"host\\"' in line]
    assert reports
    assert not any(SECRET.encode() in line for line in reports)


async def test_what_is_told_is_bounded(real: StreamJobs, queue: Queue) -> None:
    started, go_on = Flag(), asyncio.Event()

    @real.job(name="k" * 200, result_ttl=0)
    async def waits() -> None:
        started.raise_()
        await go_on.wait()

    names = [f"q{n}" for n in range(60)]
    await real.enqueue_many(waits.call() for _ in range(100))
    async with real.worker(["q", *names], FAST, concurrency=100) as worker:
        await started.wait(100)
        found = await seen(real, lambda one: one.note.running == 100)
        size = queue.command("HSTRLEN", key_of(real.namespace, worker.consumer), "note")
        go_on.set()

    assert (len(found.note.jobs), len(found.note.queues), found.note.serves) == (20, 50, 61)
    starts = [one.started_ms for one in found.note.jobs]
    assert starts == sorted(starts)
    assert size < 10_000


async def test_a_quiet_worker_starts_nothing_and_goes_on_with_what_it_has(
    app: StreamJobs, gate: Gate, queue: Queue
) -> None:
    async with app.worker(options=FAST) as worker:
        running = await gate.kind.enqueue("runs")
        await gate.started.wait()
        await order(app, worker.consumer, workers.QUIET)
        waiting = await gate.kind.enqueue("waits")
        found = await seen(app, lambda one: one.state == "quiet")
        await pause(0.3)
        assert gate.names == ["runs"]
        assert (worker.state, worker.live, found.note.running) == ("quiet", True, 1)
        gate.go_on.set()
        await running.wait(WITHIN_S)
        assert (await waiting.status()).state is State.WAITING

        await order(app, worker.consumer, workers.RUN)

        await waiting.wait(WITHIN_S)
        assert (worker.state, gate.names) == ("running", ["runs", "waits"])


async def test_a_quiet_worker_claims_nothing(real: StreamJobs, queue: Queue) -> None:
    """A read that waits on the server would bring what comes next, only to give it back."""
    gate = Gate(real)
    async with real.worker(options=FAST, block=30, sweep=60) as worker:
        await order(real, worker.consumer, workers.QUIET)
        await pause(0.2)
        await gate.kind.enqueue()
        await pause(0.2)
        assert queue.pending() == []


async def test_a_quiet_worker_has_no_slots_and_is_alive(app: StreamJobs, gate: Gate, queue: Queue) -> None:
    async with app.worker(options=FAST) as worker:
        await order(app, worker.consumer, workers.QUIET)
        name = worker.consumer.encode()
        async with asyncio.timeout(WITHIN_S):
            while not queue.command("HGET", queue.keys.workers, name).endswith(b" 0"):
                await pause(0.01)
        await order(app, worker.consumer, workers.RUN)
        async with asyncio.timeout(WITHIN_S):
            while not queue.command("HGET", queue.keys.workers, name).endswith(b" 10"):
                await pause(0.01)


async def test_a_quiet_worker_has_no_slots_where_it_schedules(real: StreamJobs, queue: Queue) -> None:
    """Who plans crons shows itself too: at a start, and where the server was emptied."""
    real.every(3600, name="hourly")(Gate(real).kind)
    worker = real.make_worker(options=FAST)
    worker.quiet()
    running = asyncio.create_task(worker.run())
    with queue.monitored() as seen:
        await within(worker.ready)
        async with asyncio.timeout(WITHIN_S):
            while not queue.command("HEXISTS", queue.keys.cron, "hourly"):
                await pause(0.01)
    worker.stop()
    await running
    shown = [line for line in seen if b'"HSET"' in line and queue.keys.workers.encode() in line]
    assert {line.split(b'"')[-2].partition(b" ")[2] for line in shown} == {b"0"}


async def test_what_a_quiet_worker_had_claimed_goes_to_others_at_once(
    app: StreamJobs, gate: Gate, queue: Queue
) -> None:
    """Nothing is swept here: it must be given back, and a worker that listens be told."""
    async with app.worker(options=FAST, concurrency=1, read_ahead=60, lease=60, sweep=60) as first:
        await gate.kind.enqueue("runs")
        await gate.started.wait()
        first.quiet()
        for _ in range(3):
            await gate.kind.enqueue("more")
        other = make_app(app.connections.target.text, app.namespace)
        starts = Flag()

        @other.job(name="gate", result_ttl=0)
        async def elsewhere(name: str = "") -> None:
            starts.raise_()

        async with other.worker(options=FAST, lease=60, sweep=60):
            await starts.wait(3)
        await other.aclose()
        assert gate.names == ["runs"]
        gate.go_on.set()


async def test_the_bell_is_left_to_those_who_start_jobs(real: StreamJobs) -> None:
    """A quiet worker that heard it would keep it from others until their next look, 5 s later."""
    gate = Gate(real)
    quiet = real.make_worker(options=WorkerOptions(concurrency=10, lease=60, sweep=60))
    running = asyncio.create_task(quiet.run())
    await within(quiet.ready)
    quiet.quiet()
    await seen(real, lambda one: one.state == "quiet")
    loop = asyncio.get_running_loop()
    async with real.worker(options=WorkerOptions(concurrency=10, lease=60, sweep=60)):
        late = []
        for n in range(1, 6):
            due = loop.time() + 0.3
            await gate.kind.options(delay=0.3).enqueue()
            await gate.started.wait(n)
            late.append(loop.time() - due)
        gate.go_on.set()
    quiet.stop()
    await running

    assert sorted(late)[2] < 0.5, late


async def test_a_worker_that_is_ordered_to_stop_ends_cleanly_beside_code_that_goes_on(
    app: StreamJobs, gate: Gate, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "streamjobs")
    async with app.worker(options=FAST) as worker:
        handle = await gate.kind.enqueue("runs")
        await gate.started.wait()
        await order(app, worker.consumer, workers.STOP)
        found = await seen(app, lambda one: one.state == "stopping")
        assert (worker.state, found.note.running) == ("stopping", 1)
        gate.go_on.set()
        await handle.wait(WITHIN_S)
        async with asyncio.timeout(WITHIN_S):
            while worker.state != "ended":
                await pause(0.01)
        assert queue.command("EXISTS", key_of(app.namespace, worker.consumer)) == 0

    assert queue.totals()["done"] == 1
    assert messages(caplog, "ERROR") == []
    assert any("has ended, as it was ordered" in line for line in messages(caplog, "INFO"))


async def test_an_order_is_followed_once(app: StreamJobs, gate: Gate) -> None:
    """It stays where the worker hears it; who goes on by its own code's wish is not held up by it."""
    orders: list[str] = []
    async with app.worker(options=FAST) as worker:
        worker.on_order = orders.append
        await order(app, worker.consumer, workers.QUIET)
        worker.go_on()
        await (await gate.kind.enqueue()).status()
        await gate.started.wait()
        await order(app, worker.consumer, workers.QUIET)
        assert worker.state == "quiet"
        gate.go_on.set()

    assert orders == ["quiet", "quiet"]


async def test_orders_of_a_newer_version_are_told_and_not_followed(
    app: StreamJobs, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    async with app.worker(options=FAST) as worker:
        await seen(app, lambda one: one.told)
        await app.connections.aio().run(workers.order(app.namespace, worker.consumer, "dance", "t"))
        await seen(app, lambda one: one.note.order == "t")
        assert worker.state == "running"

    assert any("does not know the order 'dance'" in line for line in messages(caplog))


async def test_a_worker_that_is_quiet_from_the_start(app: StreamJobs, gate: Gate, queue: Queue) -> None:
    handle = await gate.kind.enqueue()
    worker = app.make_worker(options=FAST)
    worker.quiet()
    running = asyncio.create_task(worker.run())
    await within(worker.ready)
    await seen(app, lambda one: one.state == "quiet")
    await pause(0.2)
    assert gate.names == []
    assert queue.pending() == []

    worker.go_on()

    await gate.started.wait()
    gate.go_on.set()
    await handle.wait(WITHIN_S)
    worker.stop()
    assert await running


async def test_a_child_begins_quiet_where_its_supervisor_says_so(app: StreamJobs, gate: Gate) -> None:
    worker, orphaned = app.make_worker(options=FAST), asyncio.Event()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.send(line.QUIET)
        process._on_words(worker, theirs, orphaned)
        running = asyncio.create_task(worker.run())
        await within(worker.ready)
        assert worker.state == "quiet"
        ours.send(line.QUIET + line.STOP)
        process._on_words(worker, theirs, orphaned)
        assert await running


@pytest.mark.parametrize("word", ["stop", "abort"])
async def test_a_quiet_worker_ends(app: StreamJobs, gate: Gate, queue: Queue, word: str) -> None:
    worker = app.make_worker(options=FAST)
    running = asyncio.create_task(worker.run())
    await within(worker.ready)
    await gate.kind.enqueue()
    await gate.started.wait()
    worker.quiet()
    gate.go_on.set()

    getattr(worker, word)()

    await running
    assert worker.state == "ended"
    assert queue.command("EXISTS", key_of(app.namespace, worker.consumer)) == 0
    assert queue.command("HLEN", queue.keys.workers) == 0


async def test_a_worker_that_may_not_tell_works_all_the_same(
    real: StreamJobs, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    namespace, where = real.namespace, real.connections.target.text
    rules = [f"~{namespace}:{{*", f"~{namespace}:queues", "resetchannels", f"&{namespace}:*", "+@all"]
    queue.command("ACL", "SETUSER", namespace, "reset", "on", ">pw", *rules)
    app = make_app(where.replace("unix://", f"unix://{namespace}:pw@"), namespace)

    @app.job
    async def add(ctx: Context[Any]) -> int:
        return 3

    async with app.worker(options=FAST):
        assert await (await add.enqueue()).result(WITHIN_S) == 3
        await pause(0.2)
    await app.aclose()
    queue.command("ACL", "DELUSER", namespace)

    assert len([line for line in messages(caplog) if "operators cannot see this worker" in line]) == 1


async def test_a_lagging_event_loop_is_told(app: StreamJobs, gate: Gate) -> None:
    blocked = Flag()

    @app.job(name="blocks", result_ttl=0)
    async def blocks() -> None:
        until = asyncio.get_running_loop().time() + 0.6
        while asyncio.get_running_loop().time() < until:
            pass
        blocked.raise_()

    async with app.worker(options=FAST):
        await blocks.enqueue()
        await blocked.wait()
        found = await seen(app, lambda one: one.note.lag_ms > 400)

    assert found.note.lag_ms < 60_000
