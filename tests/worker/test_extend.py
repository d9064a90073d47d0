"""`ctx.extend`: a run whose deadline moves as the work shows how long it takes."""

import asyncio
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from streamjobs import Batch, BatchContext, Context, InvalidOption, JobFailed, Retry, StreamJobs
from tests.worker.support import FAST, pause

ONCE = Retry(max_attempts=1)


@dataclass
class Number:
    n: int


async def test_a_run_that_extends_its_deadline_goes_on_beyond_its_timeout(app: StreamJobs) -> None:
    @app.job(timeout=0.3)
    async def long(ctx: Context[Any]) -> str:
        for _ in range(10):
            ctx.extend(5)
            await pause(0.1)
        return "done"

    async with app.worker(options=FAST):
        assert await (await long.enqueue()).result(timeout=10) == "done"


async def test_the_new_deadline_is_kept_and_told(app: StreamJobs) -> None:
    @app.job(timeout=60, retry=ONCE)
    async def hangs(ctx: Context[Any]) -> None:
        ctx.extend(0.05)
        await asyncio.Event().wait()

    async with app.worker(options=FAST):
        with pytest.raises(JobFailed, match=r"still running after 0\.0[5-9]"):
            await (await hangs.enqueue()).result(timeout=10)


async def test_a_kind_without_a_timeout_gets_none(app: StreamJobs) -> None:
    @app.job(timeout=None)
    async def endless(ctx: Context[Any]) -> str:
        ctx.extend(0.001)
        await pause(0.3)
        return "done"

    async with app.worker(options=FAST):
        assert await (await endless.enqueue()).result(timeout=10) == "done"


async def test_a_plain_function_that_is_late_may_still_extend(app: StreamJobs) -> None:
    @app.job(timeout=0.05, retry=ONCE)
    def late(ctx: Context[Any]) -> str:
        threading.Event().wait(0.3)
        ctx.extend(5)
        threading.Event().wait(0.8)
        return "done"

    async with app.worker(options=FAST, grace=0.6):
        assert await (await late.enqueue()).result(timeout=10) == "done"


@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
async def test_a_batch_has_one_deadline(app: StreamJobs, plain: bool) -> None:
    async def in_the_loop(ctx: BatchContext[Any], numbers: list[Number]) -> None:
        ctx.extend(5)
        await pause(0.5)

    def in_a_thread(ctx: BatchContext[Any], numbers: list[Number]) -> None:
        ctx.jobs[1].extend(5)
        threading.Event().wait(0.5)

    decorate = app.job(name="batch", batch=Batch(2, 60), timeout=0.2, retry=ONCE)
    kind = decorate(in_a_thread if plain else in_the_loop)
    async with app.worker(options=FAST, grace=0.1):
        handles = [await kind.enqueue(Number(n)) for n in (1, 2)]
        assert [await handle.result(timeout=10) for handle in handles] == [None, None]


@pytest.mark.parametrize("seconds", [-1, 0, float("nan"), float("inf"), 86_401, "5", True])
async def test_what_is_no_time_to_come_is_refused(app: StreamJobs, seconds: Any) -> None:
    @app.job
    async def wrong(ctx: Context[Any]) -> str:
        with pytest.raises(InvalidOption, match="seconds="):
            ctx.extend(seconds)
        return "refused"

    async with app.worker(options=FAST):
        assert await (await wrong.enqueue()).result(timeout=10) == "refused"
