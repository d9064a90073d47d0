"""The end of a worker: nothing new starts, what was claimed goes back at once, what runs gets its grace time."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streamjobs import Context, State, StreamJobs, Temporary, WorkerOptions
from streamjobs.worker.mark import Marker
from tests.worker.support import FAST, WITHIN_S, Flag, Queue, drain, within

ROOT = Path(__file__).parents[2]
LONG = {"lease": 60, "sweep": 60}
"""Nothing can be taken over by a sweep: only what is given back is found."""


async def test_case_I1_a_worker_that_stops_starts_nothing_more(app: StreamJobs, queue: Queue) -> None:
    starts, go_on = Flag(), asyncio.Event()

    @app.job(result_ttl=0)
    async def waits() -> None:
        starts.raise_()
        await go_on.wait()

    await app.enqueue_many(waits.call() for _ in range(100))
    async with app.worker(options=FAST, concurrency=5, **LONG) as worker:
        await starts.wait(5)
        worker.stop()
        go_on.set()

    assert starts.count == 5
    assert queue.length() == 95
    # Whatever was claimed and not started is given back, not left behind.
    assert {row[1] for row in queue.pending()} <= {b"released"}


@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
async def test_case_I2_what_does_not_end_in_time_starts_elsewhere_at_once_and_uncharged(
    app: StreamJobs, queue: Queue, plain: bool
) -> None:
    starts: list[tuple[int, float]] = []
    started, go_on = Flag(), threading.Event()
    loop = asyncio.get_running_loop()

    async def in_the_loop(ctx: Context[Any]) -> int:
        starts.append((ctx.attempt, loop.time()))
        if started.raise_() == 1:
            await asyncio.Event().wait()
        return ctx.attempt

    def in_a_thread(ctx: Context[Any]) -> int:
        starts.append((ctx.attempt, loop.time()))
        loop.call_soon_threadsafe(started.raise_)
        if len(starts) == 1:
            go_on.wait(WITHIN_S)
        return ctx.attempt

    kind = app.job(name="long")(in_a_thread if plain else in_the_loop)
    first = app.make_worker(options=msgspec.structs.replace(FAST, **LONG))
    running = asyncio.create_task(first.run())
    await within(first.ready)
    handle = await kind.enqueue()
    await started.wait()
    async with app.worker(options=FAST, **LONG):
        first.stop()
        first.abort()
        assert await running is False
        stopped = loop.time()
        try:
            assert await handle.result(timeout=10) == 1
        finally:
            go_on.set()
    assert [attempt for attempt, _ in starts] == [1, 1]
    assert starts[1][1] - stopped < 1


async def test_what_ends_within_the_grace_time_is_done(app: StreamJobs) -> None:
    started, go_on = Flag(), asyncio.Event()

    @app.job
    async def waits() -> str:
        started.raise_()
        await go_on.wait()
        return "done"

    worker = app.make_worker(options=FAST)
    running = asyncio.create_task(worker.run())
    handle = await waits.enqueue()
    await started.wait()
    worker.stop()
    go_on.set()

    assert await running is True
    assert await handle.result(timeout=10) == "done"


async def test_a_worker_cancelled_from_outside_gives_back_what_it_held(app: StreamJobs, queue: Queue) -> None:
    started = Flag()

    @app.job
    async def waits() -> None:
        started.raise_()
        await asyncio.Event().wait()

    running = asyncio.create_task(app.make_worker(options=FAST).run())
    await waits.enqueue()
    await started.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert running.cancelled()
    assert queue.command("SCARD", queue.keys.released) == 1


async def test_case_I8_short_jobs_do_not_wait_behind_a_long_one(app: StreamJobs) -> None:
    go_on = asyncio.Event()

    @app.job
    async def long() -> None:
        await go_on.wait()

    @app.job
    async def short() -> None:
        return None

    async with app.worker(options=FAST, concurrency=1), app.worker(options=FAST, concurrency=1):
        first = await long.enqueue()
        handles = [await short.enqueue() for _ in range(10)]
        for handle in handles:
            await handle.result(timeout=5)
        assert (await first.status()).state == State.RUNNING
        go_on.set()
        await first.result(timeout=5)


async def test_one_slot_never_hoards_long_jobs(app: StreamJobs, queue: Queue) -> None:
    """Not even after a thousand short ones, whose rate allowed to read far ahead."""
    started, go_on = Flag(), asyncio.Event()

    @app.job(result_ttl=0)
    async def short() -> None:
        return None

    @app.job(result_ttl=0)
    async def long() -> None:
        started.raise_()
        await go_on.wait()

    await app.enqueue_many([short.call() for _ in range(1000)] + [long.call() for _ in range(50)])
    async with app.worker(options=FAST, concurrency=1):
        await started.wait()
        # What was read ahead at the old rate goes back within moments.
        while len([row for row in queue.pending() if row[1] != b"released"]) > 1:
            await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=0.05)
        go_on.set()


async def test_a_burst_ends_when_nothing_waits_runs_or_retries(app: StreamJobs, queue: Queue) -> None:
    runs = Flag()

    @app.job
    async def note(ctx: Context[Any]) -> None:
        if runs.raise_() % 2:
            raise Temporary(after=0.01)

    await note.options(delay=3600).enqueue()
    await app.enqueue_many(note.call() for _ in range(20))
    await drain(app)

    assert queue.counts() == {"waiting": 0, "scheduled": 1, "retries": 0, "dead": 0}
    assert runs.count == 40


async def test_a_burst_on_an_empty_queue_ends_soon(app: StreamJobs) -> None:
    app.job(name="none")(lambda: None)
    loop = asyncio.get_running_loop()
    began = loop.time()

    assert await app.make_worker(options=WorkerOptions(burst=True)).run()

    assert loop.time() - began < 2


async def test_nothing_of_a_worker_is_left(app: StreamJobs, queue: Queue) -> None:
    """Threads, children and warnings are seen by the checks around every test; tasks and consumers here."""

    @app.job
    def plain() -> None:
        return None

    before = asyncio.all_tasks()
    for _ in range(3):
        async with app.worker(options=FAST):
            await (await plain.enqueue()).result(timeout=10)
    await app.aclose()
    await asyncio.sleep(0)

    assert asyncio.all_tasks() - before == set()
    consumers = queue.command("XINFO", "CONSUMERS", queue.keys.stream, "workers")
    assert [row[1] for row in consumers if row[1] != b"released"] == []


@pytest.mark.parametrize(
    ("signals", "code", "job"),
    [
        ([signal.SIGTERM], 0, "quick"),
        ([signal.SIGINT], 1, "endless"),
        ([signal.SIGTERM, signal.SIGTERM], 143, "endless"),
        ([signal.SIGINT, signal.SIGTERM], 143, "endless"),
        ([signal.SIGTERM, signal.SIGINT], 130, "endless"),
    ],
    ids=["clean", "grace-over", "TERM-TERM", "INT-TERM", "TERM-INT"],
)
def test_case_I3_a_second_signal_ends_it_at_once(
    server_url: str, namespace: str, queue: Queue, signals: list[signal.Signals], code: int, job: str
) -> None:
    grace = "0.3" if len(signals) == 1 else "60"
    words = ["-m", "streamjobs", "worker", "-A", "tests.worker.signalled:app", "--grace", grace]
    environment = {**os.environ, "STREAMJOBS_URL": server_url, "STREAMJOBS_TEST_NAMESPACE": namespace}
    with subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        queue.make_group() if not queue.command("EXISTS", queue.keys.stream) else None
        queue.add("kind", job, "body", "{}")
        assert process.stdout.readline() == f"{job} started\n".encode()
        process.send_signal(signals[0])
        for number in signals[1:]:
            # The first has been taken in when the worker says so.
            while b"stopping" not in (line := process.stderr.readline()) and line:
                pass
            process.send_signal(number)
        _, rest = process.communicate(timeout=20)

    assert process.returncode == code, rest
    assert b"Traceback" not in rest
    assert queue.command("SCARD", queue.keys.released) == (job == "endless")
    assert queue.counts()["retries"] == 0


async def test_a_claim_that_is_being_marked_when_the_end_comes_at_once_goes_back_uncharged(
    real: StreamJobs, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Left alone it would wait out its lease, and its mark would count as one start more that never ended."""
    attempts: list[int] = []

    @real.job(name="job")
    async def job(ctx: Context[None]) -> None:
        attempts.append(ctx.attempt)

    queue.make_group()
    await job.enqueue()
    queue.read("dead")
    queue.silence()
    asked = asyncio.Event()
    marking = Marker._say_started

    async def mark_and_hang(self: Marker, execution: Any) -> Any:
        await marking(self, execution)
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Marker, "_say_started", mark_and_hang)
    worker = real.make_worker(options=FAST)
    running = asyncio.create_task(worker.run())
    await within(asked)
    worker.abort()
    await running
    monkeypatch.undo()

    assert queue.command("SCARD", queue.keys.released) == 1
    await drain(real)
    assert attempts == [2]
