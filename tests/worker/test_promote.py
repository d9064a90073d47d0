"""Promotion by workers: a flood of due jobs is worked off beside the fresh ones, and to its end."""

import asyncio

from streamjobs import StreamJobs
from tests.worker.support import FAST, Flag, Queue, drain

DUE = 2000


async def test_case_D10_fresh_jobs_start_while_a_flood_of_due_ones_is_worked_off(app: StreamJobs, queue: Queue) -> None:
    due, started = Flag(), asyncio.Event()
    before: list[int] = []

    @app.job(result_ttl=0)
    async def late() -> None:
        due.raise_()
        # About 200 jobs a second here: what is ahead of a fresh one is worth half a second.
        await asyncio.wait([asyncio.ensure_future(started.wait())], timeout=0.05)

    @app.job(result_ttl=0)
    async def fresh() -> None:
        before.append(due.count)
        started.set()

    await app.enqueue_many(late.options(delay=0.001).call() for _ in range(DUE))
    async with app.worker(options=FAST):
        await due.wait(50)
        await fresh.enqueue()
        async with asyncio.timeout(20):
            await started.wait()

    assert before[0] < 50 + DUE // 4


async def test_burst_works_off_all_that_is_due(app: StreamJobs, queue: Queue) -> None:
    """More than there is room for at once; what is due later does not hold it."""

    @app.job(result_ttl=0)
    async def late() -> None:
        pass

    await app.enqueue_many(late.options(delay=0.001).call() for _ in range(500))
    await late.options(delay=3600).enqueue()

    await drain(app, concurrency=2)

    assert queue.totals()["done"] == 500
    assert queue.counts() == {"waiting": 0, "scheduled": 1, "retries": 0, "dead": 0}
