"""Handlers that wait for nothing, and what a job finds and leaves behind: in both ways in which tasks start."""

import asyncio
import gc
import sys
import weakref
from contextvars import ContextVar
from itertools import pairwise
from time import monotonic

import msgspec
import pytest

from streamjobs import Batch, Context, StreamJobs
from streamjobs.worker.start import TURN_S
from tests.worker.bench import Bench
from tests.worker.support import Queue, drain

mark: ContextVar[str] = ContextVar("mark", default="none")


class Item(msgspec.Struct):
    number: int


async def test_a_job_sees_no_context_variable_of_another(app: StreamJobs, queue: Queue) -> None:
    seen: list[str] = []

    @app.job
    async def sets() -> None:
        seen.append(mark.get())
        mark.set("left by another")

    await app.enqueue_many([sets.call() for _ in range(20)])
    await drain(app, concurrency=1)

    assert seen == ["none"] * 20


async def test_a_batch_sees_no_context_variable_of_another_job(app: StreamJobs, queue: Queue) -> None:
    seen: list[str] = []

    @app.job(batch=Batch(max_items=2, max_wait=0))
    async def sets(items: list[Item]) -> None:
        seen.append(mark.get())
        mark.set("left by another")

    await app.enqueue_many([app.kind(sets.name).call(number=number) for number in range(20)])
    await drain(app, concurrency=2)

    assert set(seen) == {"none"}
    assert len(seen) >= 10


async def test_what_has_ended_is_held_by_nothing(app: StreamJobs, queue: Queue) -> None:
    """Neither kept as running, nor left to the collector of cycles."""
    runs: list[weakref.ref[asyncio.Task[None]]] = []

    @app.job
    async def notes(number: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        runs.append(weakref.ref(task))
        if number % 2:
            await asyncio.sleep(0)

    await app.enqueue_many([notes.call(number) for number in range(10)])
    gc.collect()
    gc.disable()
    try:
        await drain(app)
        held = [ref for ref in runs if ref() is not None]
    finally:
        gc.enable()

    assert (len(runs), held) == (10, [])


async def test_a_run_is_seen_as_running_from_its_first_step_on(app: StreamJobs, queue: Queue) -> None:
    """As what blocks the loop is named by it, and told to operators."""
    seen = []

    @app.job
    async def looks(ctx: Context[None]) -> None:
        execution = ctx._execution
        seen.append((execution.runs, execution.task is asyncio.current_task()))

    await looks.enqueue()
    await drain(app)

    assert seen == [(True, True)]


eager = pytest.mark.skipif(sys.version_info < (3, 12), reason="a task begins in a later turn of the loop there")


@eager
async def test_handlers_that_compute_leave_others_their_turn(app: StreamJobs, queue: Queue) -> None:
    """However many fit, and however they came: what starts in one turn of the loop is bounded in time."""
    ran: list[int] = []
    turns: list[int] = []

    @app.job
    async def computes(number: int) -> None:
        ran.append(number)
        end = monotonic() + TURN_S
        while monotonic() <= end:
            pass

    await app.enqueue_many([computes.call(number) for number in range(8)])
    bench = Bench(app, queue)
    queue.make_group()
    claims = queue.read("me")
    for claim in claims:
        claim.claimed_at = monotonic()
    bench.starter.add(bench.queue, claims[:4])
    bench.starter.add(bench.queue, claims[4:])
    while len(ran) < 8:
        turns.append(len(ran))
        await asyncio.sleep(0)
    await bench.settled()

    assert max(after - before for before, after in pairwise([*turns, len(ran)])) == 1
    assert queue.length() == 0


@eager
async def test_a_handler_that_stops_its_worker_is_the_last_that_starts(app: StreamJobs, queue: Queue) -> None:
    ran: list[int] = []

    @app.job
    async def stops(number: int) -> None:
        ran.append(number)
        bench.starter.stop()

    await app.enqueue_many([stops.call(number) for number in range(3)])
    bench = Bench(app, queue)
    queue.make_group()
    bench.read()
    await bench.settled()

    assert ran == [0]
    assert queue.totals()["done"] == 1
    assert queue.command("SCARD", queue.keys.released) == 2
