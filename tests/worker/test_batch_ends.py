"""Batches that end otherwise than by themselves: lost jobs, deadlines, stops, and jobs that kill their process."""

import asyncio
import threading
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from streamjobs import (
    Batch,
    BatchContext,
    JobFailed,
    Permanent,
    State,
    StreamJobs,
)
from streamjobs.worker.execution import Ending
from streamjobs.worker.winddown import end_run
from tests.worker.batches import FOR_EVER, ONCE, Doc, Index, claimed
from tests.worker.bench import Bench, crash_marked
from tests.worker.support import FAST, WITHIN_S, Flag, Queue, codes_of, drain, pause, within


async def test_a_job_that_another_worker_took_leaves_the_others_alone(app: StreamJobs, queue: Queue) -> None:
    """Its failure is dropped; the handler goes on for the others."""
    index = Index(app, Batch(3, FOR_EVER))
    cancelled = False

    async def answer(ctx: BatchContext[Any], docs: list[Doc]) -> list[Any]:
        nonlocal cancelled
        [entry, *_] = [row[0] for row in queue.pending()][1:]
        queue.command("XCLAIM", queue.keys.stream, "workers", "thief", 0, entry)
        try:
            await within(ctx.jobs[1].lost)
        except asyncio.CancelledError:
            cancelled = True
        return [ctx.jobs[0].lost.is_set(), Permanent("not mine"), ctx.jobs[2].lost.is_set()]

    index.answer = answer
    handles = await index.enqueue(app, 3)

    async with app.worker(options=FAST):
        assert [await handles[n].result(timeout=10) for n in (0, 2)] == [False, False]

    assert not cancelled
    assert [row[1] for row in queue.pending()] == [b"thief"]
    assert (queue.totals()["done"], queue.counts()["dead"]) == (2, 0)


async def test_a_cancelled_job_stays_so_whatever_its_batch_says(app: StreamJobs) -> None:
    index = Index(app, Batch(2, FOR_EVER))

    async def answer(ctx: BatchContext[Any], docs: list[Doc]) -> list[str]:
        await within(ctx.jobs[0].lost)
        return ["late", "in time"]

    index.answer = answer
    handles = await index.enqueue(app, 2)

    async with app.worker(options=FAST):
        await index.started.wait()
        assert await handles[0].cancel("enough")
        assert await handles[1].result(timeout=10) == "in time"

    assert (await handles[0].status()).state == State.CANCELLED


async def test_a_batch_is_cancelled_once_all_of_its_jobs_are_lost(app: StreamJobs, queue: Queue) -> None:
    index = Index(app, Batch(3, FOR_EVER))
    ended = Flag()

    async def answer(ctx: BatchContext[Any], docs: list[Doc]) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            # A second cancellation would end this.
            await pause(0.01)
            assert all(job.lost.is_set() for job in ctx.jobs)
            ended.raise_()
            raise

    index.answer = answer
    await index.enqueue(app, 3)

    async with app.worker(options=FAST):
        await index.started.wait()
        assert len(queue.steal()) == 3
        await ended.wait()

    assert [row[1] for row in queue.pending()] == [b"thief"] * 3


async def test_at_its_deadline_all_time_out_and_its_handler_is_cancelled_once(app: StreamJobs, queue: Queue) -> None:
    index = Index(app, Batch(3, FOR_EVER), timeout=0.1, retry=ONCE)
    tidied = Flag()

    async def answer(ctx: BatchContext[Any], docs: list[Doc]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            # A second cancellation would end this.
            await pause(0.01)
            tidied.raise_()

    index.answer = answer
    handles = await index.enqueue(app, 3)

    async with app.worker(options=FAST):
        for handle in handles:
            with pytest.raises(JobFailed, match=r"still running after 0.1 s"):
                await handle.result(timeout=10)

    assert (tidied.count, len(queue.dead())) == (1, 3)


async def test_a_batch_that_does_not_end_is_abandoned_and_its_slots_given_to_others(
    app: StreamJobs, queue: Queue
) -> None:
    go_on = threading.Event()

    @app.job(name="hangs", batch=Batch(3, FOR_EVER), timeout=0.05, retry=ONCE)
    def hangs(docs: list[Doc]) -> None:
        go_on.wait(WITHIN_S)

    @app.job
    async def other() -> str:
        return "ran"

    async with app.worker(options=FAST, concurrency=3, grace=0.1):
        handles = await app.enqueue_many(hangs.call(Doc(n)) for n in range(3))
        for handle in handles:
            assert not isinstance(handle, Exception)
            with pytest.raises(JobFailed, match="still running"):
                await handle.result(timeout=10)
        assert await (await other.enqueue()).result(timeout=10) == "ran"
        go_on.set()

    assert [dead["reason"] for dead in queue.dead()] == [b"exhausted"] * 3


async def test_a_stop_gives_back_at_once_what_was_gathered_and_charges_nothing(app: StreamJobs, queue: Queue) -> None:
    index = Index(app, Batch(5, FOR_EVER))
    await index.enqueue(app, 3)

    began = monotonic()
    async with app.worker(options=FAST, grace=FOR_EVER, lease=FOR_EVER):
        await claimed(queue, 3)

    assert monotonic() - began < WITHIN_S
    assert (index.calls, queue.command("SCARD", queue.keys.released)) == ([], 3)
    await app.enqueue_many(index.kind.call(Doc(n)) for n in (3, 4))
    await drain(app)
    assert [sorted(call) for call in index.calls] == [[0, 1, 2, 3, 4]]
    assert index.attempts == [[1] * 5]


async def test_a_quiet_worker_gives_back_what_it_gathered_and_gathers_again(app: StreamJobs, queue: Queue) -> None:
    index = Index(app, Batch(5, FOR_EVER))
    await index.enqueue(app, 3)

    async with app.worker(options=FAST) as worker:
        await claimed(queue, 3)
        worker.quiet()
        async with asyncio.timeout(WITHIN_S):
            while queue.command("SCARD", queue.keys.released) < 3:
                await pause(0.01)
        assert index.calls == []
        worker.go_on()
        await app.enqueue_many(index.kind.call(Doc(n)) for n in (3, 4))
        await index.started.wait()

    assert [sorted(call) for call in index.calls] == [[0, 1, 2, 3, 4]]
    assert index.attempts == [[1] * 5]


async def test_a_batch_that_runs_beyond_the_grace_time_goes_back_uncharged(app: StreamJobs) -> None:
    index = Index(app, Batch(2, FOR_EVER))
    tidied = Flag()

    async def answer(ctx: BatchContext[Any], docs: list[Doc]) -> None:
        try:
            if len(index.calls) == 1:
                await asyncio.Event().wait()
        finally:
            await pause(0.01)
            tidied.raise_()

    index.answer = answer
    await index.enqueue(app, 2)
    async with app.worker(options=FAST, grace=0.1):
        await index.started.wait()

    assert tidied.count == 1
    await drain(app)
    assert index.attempts == [[1, 1]] * 2


@pytest.mark.parametrize("lost", [True, False], ids=["lost", "lapsed"])
async def test_what_is_lost_while_it_was_gathered_does_not_start(app: StreamJobs, queue: Queue, lost: bool) -> None:
    """Another holds it; or may, after a freeze of the process."""
    index = Index(app, Batch(2, FOR_EVER))
    bench = Bench(app, queue)
    queue.make_group()
    await index.enqueue(app, 1)
    bench.read()
    [first] = bench.queue.held.values()
    if lost:
        bench.queue.drop(first)
    else:
        first.claim.claimed_at -= 100

    await index.kind.enqueue(Doc(5))
    bench.read()
    await index.started.wait()
    await bench.settled()

    assert (index.calls, bench.runner.running) == ([[5]], 0)
    assert queue.command("SMEMBERS", queue.keys.released) == ([] if lost else [first.claim.entry])


async def test_a_batch_that_is_lost_before_its_first_step_leaves_its_slots(app: StreamJobs, queue: Queue) -> None:
    index = Index(app, Batch(2, FOR_EVER))
    bench = Bench(app, queue)
    queue.make_group()
    await index.enqueue(app, 2)
    bench.read()
    for execution in bench.queue.held.values():
        end_run(execution, Ending.LOST)

    async with asyncio.timeout(WITHIN_S):
        while bench.runner.running:
            await asyncio.sleep(0)
    await bench.settled()

    assert (bench.starter.free(), bench.queue.held) == (10, {})


async def test_with_two_unsettled_starts_a_job_is_a_batch_of_its_own(app: StreamJobs, queue: Queue) -> None:
    index = Index(app, Batch(10, 0.05))
    bench = Bench(app, queue)
    queue.make_group()
    await index.enqueue(app, 2)
    queue.crash()
    crash_marked(queue, "second")

    for _ in range(2):
        bench.take_over(1)
        await index.started.wait(len(index.calls) + 1)
        await bench.settled()
    await index.enqueue(app, 2)
    bench.read()
    await index.started.wait(3)
    await bench.settled()

    assert (index.calls, index.attempts) == ([[0], [1], [0, 1]], [[3], [3], [1, 1]])


async def test_a_suspect_does_not_wait_for_those_that_are_gathered(app: StreamJobs, queue: Queue) -> None:
    index = Index(app, Batch(10, FOR_EVER))
    bench = Bench(app, queue)
    queue.make_group()
    await index.kind.enqueue(Doc(0))
    queue.crash()
    crash_marked(queue, "second")
    await index.kind.enqueue(Doc(1))
    bench.read()

    bench.take_over()
    await index.started.wait(2)
    await bench.settled()

    assert index.calls == [[1], [0]]


def test_a_job_that_kills_its_batch_is_dead_after_three_starts_and_the_others_are_done(
    server_url: str, namespace: str, queue: Queue, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    codes = codes_of("tests.worker.batch_killer", server_url, namespace, str(starts))

    [dead] = queue.dead()
    assert codes == [137, 137, 137, 0]
    lines = starts.read_text().splitlines()
    assert lines[:2] == ["0 1 2 3 4"] * 2
    assert (lines.count("2"), sorted(lines[2:])) == (1, ["0", "1", "2", "3", "4"])
    assert (dead["reason"], dead["attempts"], dead["body"]) == (b"crash_limit", b"3", b'{"n":2}')
    assert (queue.length(), queue.totals()["done"]) == (0, 4)
