"""BullMQ for Python; fast removes what is done and runs 10 at once: with 100 it takes longer over each."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import bullmq

from .base import FAST, PORTION, TEXT, URL, Clock, main, mark

OPTIONS = {"removeOnComplete": True} if FAST else {}


async def run(job: Any, token: str) -> None:
    mark(job.data["number"])


@asynccontextmanager
async def _queue() -> AsyncIterator[Any]:
    queue = bullmq.Queue("jobs", {"connection": URL})
    await queue.getJobCounts()
    yield queue
    await queue.close()


@asynccontextmanager
async def add() -> AsyncIterator[Any]:
    async with _queue() as queue:
        yield lambda number: queue.add("noop", {"number": number, "text": TEXT}, OPTIONS)


async def bulk(jobs: int) -> None:
    async with _queue() as queue:
        with Clock(jobs):
            for first in range(0, jobs, PORTION):
                numbers = range(first, min(first + PORTION, jobs))
                await queue.addBulk([
                    {"name": "noop", "data": {"number": number, "text": TEXT}, "opts": OPTIONS} for number in numbers
                ])  # fmt: skip


async def drain() -> None:
    _worker = bullmq.Worker("jobs", run, {"connection": URL, **({"concurrency": 10} if FAST else {})})
    await asyncio.Event().wait()


if __name__ == "__main__":
    main(add_awaited=add, bulk=bulk, drain=drain)
