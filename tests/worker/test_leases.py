"""Leases: kept while a job runs, whatever its handler does; lost to others when they are not."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streamjobs import Context, Fixed, JobCancelled, Retry, State, StreamJobs
from streamjobs.protocol import settle
from streamjobs.worker.fetch import Fetcher
from tests.worker.bench import Bench
from tests.worker.support import FAST, WITHIN_S, Flag, Queue, drain, make_app, messages, within

ROOT = Path(__file__).parents[2]
SHORT_LEASE_S = 0.3


async def test_case_A9_a_job_of_ten_leases_starts_once(
    real: StreamJobs, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    """Two workers sweep all the while, and no lease is ever seen to end."""
    caplog.set_level("INFO")
    lease_s, silent_ms = 0.5, [0]
    runs: list[str] = []

    @real.job
    async def takes_long() -> None:
        runs.append("async")
        await pause(10 * lease_s)

    @real.job
    def takes_long_in_a_thread() -> None:
        runs.append("plain")
        threading.Event().wait(10 * lease_s)

    other = real.worker(options=FAST, lease=lease_s, sweep=0.05)
    async with other, real.worker(options=FAST, lease=lease_s, sweep=0.05):
        handles = [await takes_long.enqueue(), await takes_long_in_a_thread.enqueue()]
        ended = asyncio.gather(*(handle.result(timeout=WITHIN_S) for handle in handles))
        while not ended.done():
            silent_ms += [row[2] for row in await asyncio.to_thread(queue.pending)]
            await pause(0.05)
        await ended

    assert sorted(runs) == ["async", "plain"]
    assert max(silent_ms) < lease_s * 1000
    assert "reclaimed" not in queue.totals()
    renewed = [int(text.split(", ")[-1].split(" ")[0]) for text in messages(caplog, "INFO") if "renewed" in text]
    assert sum(renewed) >= 2 * 8


async def pause(seconds: float) -> None:
    """Let time pass: leases end by it alone."""
    await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=seconds)


async def test_case_A10_a_handler_that_blocks_the_loop_keeps_its_job_and_is_named(
    real: StreamJobs, caplog: pytest.LogCaptureFixture, server_url: str, namespace: str
) -> None:
    runs = 0

    @real.job(name="blocks")
    async def blocks() -> None:
        nonlocal runs
        runs += 1
        threading.Event().wait(2.5)

    # In a thread and a loop of its own, so that it can sweep while this loop is blocked.
    sweeping, go_on = threading.Thread(target=lambda: asyncio.run(sweep())), threading.Event()
    rival = make_app(server_url, namespace)
    rival.job(name="blocks")(blocks.__wrapped__)

    async def sweep() -> None:
        async with rival.worker(options=FAST, concurrency=1, sweep=0.05):
            while not go_on.is_set():
                await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=0.05)
        await rival.aclose()

    async with real.worker(options=FAST):
        handle = await blocks.enqueue()
        while (await handle.status()).state != State.RUNNING:
            await asyncio.sleep(0)
        sweeping.start()
        await handle.result(timeout=15)
        go_on.set()
    sweeping.join()

    assert runs == 1
    warnings = [text for text in messages(caplog) if "the event loop has not moved" in text]
    assert warnings
    assert any(f"blocks (job {handle.id}) blocks it" in text for text in warnings)


async def test_a_loop_that_moves_is_not_complained_about(app: StreamJobs, caplog: pytest.LogCaptureFixture) -> None:
    @app.job
    async def waits() -> None:
        await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=1.5)

    # Rounds of the lease thread are a second apart here.
    async with app.worker(options=FAST, lease=6):
        await (await waits.enqueue()).result(timeout=10)

    assert not [text for text in messages(caplog) if "has not moved" in text]


async def test_case_A4_what_a_dead_worker_held_starts_at_the_next_sweep(app: StreamJobs, queue: Queue) -> None:
    """Also case A12: no registry of workers is asked."""

    @app.job
    async def look(ctx: Context[Any]) -> list[Any]:
        return [ctx.attempt, ctx.deliveries]

    queue.make_group()
    handles = [await look.enqueue() for _ in range(30)]
    queue.crash()
    queue.command("DEL", queue.keys.workers)

    async with app.worker(options=FAST, concurrency=3):
        results = [await handle.result(timeout=15) for handle in handles]

    assert results == [[2, 2]] * 30


async def test_case_A5_many_sweeps_at_once_start_each_job_once(app: StreamJobs, queue: Queue) -> None:
    starts: list[str] = []

    @app.job
    async def note(ctx: Context[Any]) -> None:
        starts.append(ctx.id)
        await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=0.05)

    queue.make_group()
    await app.enqueue_many(note.options(result_ttl=0).call() for _ in range(100))
    queue.crash()

    await asyncio.gather(*(drain(app, sweep=0.05) for _ in range(8)))

    assert (len(starts), len(set(starts))) == (100, 100)
    assert queue.totals()["reclaimed"] == 100


async def test_case_A8_what_is_read_ahead_and_what_waits_for_a_slot_is_not_delivered_again(
    app: StreamJobs, queue: Queue
) -> None:
    starts: list[int] = []
    held, silent_ms = [0], [0]

    @app.job
    async def slow(n: int) -> None:
        starts.append(n)
        await pause(0.2)

    async with app.worker(options=FAST, concurrency=1, read_ahead=1, lease=SHORT_LEASE_S, sweep=0.05) as worker:
        handles = [await slow.enqueue(n) for n in range(10)]
        ended = asyncio.gather(*(handle.result(timeout=WITHIN_S) for handle in handles))
        while not ended.done():
            own = [row for row in await asyncio.to_thread(queue.pending) if row[1] == worker.consumer.encode()]
            held.append(len(own))
            silent_ms += [row[2] for row in own]
            await pause(0.02)
        await ended

    assert sorted(starts) == list(range(10))
    assert max(held) > 1, "nothing was read ahead"
    assert max(silent_ms) < SHORT_LEASE_S * 1000
    assert "reclaimed" not in queue.totals()


async def test_case_B1_the_first_success_wins_and_a_late_one_is_counted(
    app: StreamJobs, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    @app.job(name="frozen")
    async def frozen() -> int:
        started.set()
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                # A process that was frozen knows of nothing.
                continue
        return 1

    async with app.worker(options=FAST):
        handle = await frozen.enqueue()
        await within(started)
        [claim] = queue.steal()
        local = claim.entry.decode()
        done = settle.Ending(claim.entry, claim.deliveries, local, "", 60_000, b'{"state":"done","value":2}')
        queue.run(settle.complete(queue.keys, [settle.Finished("frozen", full=[done])]))
        go_on.set()

        assert await handle.result(timeout=10) == 2
    assert (queue.totals()["done"], queue.totals()["lost"]) == (1, 1)
    assert any("came too late" in text and handle.id in text for text in messages(caplog))
    assert (await handle.status()).result == 2


@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
async def test_case_B2_who_has_lost_a_job_is_told_and_keeps_off(
    app: StreamJobs, queue: Queue, plain: bool, caplog: pytest.LogCaptureFixture
) -> None:
    started, told = Flag(), asyncio.Event()
    loop = asyncio.get_running_loop()

    async def in_the_loop(ctx: Context[Any]) -> None:
        started.raise_()
        try:
            await asyncio.Event().wait()
        finally:
            if ctx.lost.is_set():
                told.set()

    def in_a_thread(ctx: Context[Any]) -> None:
        loop.call_soon_threadsafe(started.raise_)
        never = threading.Event()
        while not ctx.lost.is_set():
            never.wait(0.01)
        loop.call_soon_threadsafe(told.set)
        raise ValueError("what this run does no longer counts")

    kind = app.job(name="lost")(in_a_thread if plain else in_the_loop)
    async with app.worker(options=FAST, sweep=3600):
        handle = await kind.enqueue()
        await started.wait()
        queue.steal()
        await within(told)

    assert queue.pending()[0][1] == b"thief"
    assert queue.counts() == {"waiting": 1, "scheduled": 0, "retries": 0, "dead": 0}
    assert (await handle.status()).worker == "thief"
    assert any("another worker has taken it over" in text for text in messages(caplog))


async def test_a_cancelled_job_ends_its_handler(app: StreamJobs) -> None:
    started, told = Flag(), asyncio.Event()

    @app.job
    async def waits(ctx: Context[Any]) -> None:
        started.raise_()
        try:
            await asyncio.Event().wait()
        finally:
            assert ctx.lost.is_set()
            told.set()

    async with app.worker(options=FAST):
        handle = await waits.enqueue()
        await started.wait()
        assert await handle.cancel("changed my mind") is True
        await within(told)
        with pytest.raises(JobCancelled, match="changed my mind"):
            await handle.result(timeout=10)


async def test_a_claim_of_its_own_that_a_sweep_finds_is_not_started_again(
    app: StreamJobs, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a server that was away longer than a lease: the run goes on under the new fence, uncharged."""
    monkeypatch.setattr(Fetcher, "rests", False)
    started = Flag()
    seen: list[tuple[int, int]] = []

    @app.job(retry=Retry(max_attempts=2, backoff=Fixed(0.001)))
    async def waits(ctx: Context[Any]) -> str:
        if started.raise_() == 1:
            while ctx.deliveries == 1:
                await asyncio.sleep(0)
            seen.append((ctx.attempt, ctx.deliveries))
            raise ValueError("once")
        return f"attempt {ctx.attempt}"

    async with app.worker(options=FAST, lease=60):
        handle = await waits.enqueue()
        await started.wait()
        queue.silence()

        assert await handle.result(timeout=10) == "attempt 2"
    assert seen == [(1, 2)]
    assert started.count == 2


async def test_case_A1_the_job_of_a_killed_worker_is_taken_over(
    real: StreamJobs, queue: Queue, server_url: str, namespace: str
) -> None:
    """Killed in mid-run."""

    @real.job(name="endless")
    async def endless(ctx: Context[Any]) -> list[int]:
        return [ctx.attempt, ctx.deliveries]

    handle = await endless.enqueue()
    words = ["-m", "streamjobs", "worker", "-A", "tests.worker.signalled:app", "--lease", "1"]
    environment = {**os.environ, "STREAMJOBS_URL": server_url, "STREAMJOBS_TEST_NAMESPACE": namespace}
    with subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == b"endless started\n"
        process.kill()
    loop = asyncio.get_running_loop()
    killed_at = loop.time()

    async with real.worker(options=FAST, sweep=0.2):
        assert await handle.result(timeout=20) == [2, 2]

    assert loop.time() - killed_at < 8
    assert queue.command("EXISTS", queue.keys.suspects) == 0


async def test_case_B4_a_deadline_and_a_lease_that_end_together_leave_one_job(app: StreamJobs, queue: Queue) -> None:
    started, go_on = Flag(), threading.Event()
    loop = asyncio.get_running_loop()

    @app.job(timeout=0.4, retry=Retry(max_attempts=3, backoff=Fixed(0.001)))
    def hangs_at_first(ctx: Context[Any]) -> str:
        loop.call_soon_threadsafe(started.raise_)
        if ctx.attempt == 1:
            go_on.wait(WITHIN_S)
        return "done"

    options = msgspec.structs.replace(FAST, lease=0.4, sweep=0.05, grace=0)
    handle = await hangs_at_first.enqueue()
    async with app.worker(options=options), app.worker(options=options):
        try:
            assert await handle.result(timeout=15) == "done"
        finally:
            go_on.set()

    assert started.count == 2
    assert queue.counts() == {"waiting": 0, "scheduled": 0, "retries": 0, "dead": 0}
    assert queue.totals()["done"] == 1


async def test_a_place_goes_with_its_run_though_the_workers_own_sweep_has_raised_the_fence(
    app: StreamJobs, queue: Queue
) -> None:
    started, go_on = Flag(), asyncio.Event()

    @app.job(name="work", concurrency=1)
    async def work() -> None:
        started.raise_()
        await go_on.wait()

    queue.make_group()
    await work.enqueue()
    bench = Bench(app, queue)
    bench.read()
    await started.wait()
    # It was frozen, and is the first to find that its job has been silent.
    queue.silence(consumer=b"me")
    assert len(bench.take_over()) == 1
    go_on.set()
    async with asyncio.timeout(10):
        while queue.length():
            await pause(0.01)
    await bench.settled()

    assert started.count == 1
    assert queue.command("ZCARD", queue.keys.slots) == 0
