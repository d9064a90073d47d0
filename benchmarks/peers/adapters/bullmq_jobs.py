"""BullMQ for Python; fast removes what is done and runs 100 at once."""

import asyncio
from typing import Any

import bullmq

from .base import FAST, PORTION, TEXT, URL, Clock, callers, main, mark

OPTIONS = {"removeOnComplete": True} if FAST else {}


async def run(job: Any, token: str) -> None:
    mark()


def _queue() -> Any:
    return bullmq.Queue("jobs", {"connection": URL})


async def one_awaited(jobs: int) -> None:
    queue = _queue()
    await queue.getJobCounts()
    with Clock(jobs):
        for number in range(jobs):
            await queue.add("noop", {"number": number, "text": TEXT}, OPTIONS)
    await queue.close()


async def together(jobs: int) -> None:
    queue = _queue()
    await queue.getJobCounts()
    await callers(lambda number: queue.add("noop", {"number": number, "text": TEXT}, OPTIONS), jobs)
    await queue.close()


async def bulk(jobs: int) -> None:
    queue = _queue()
    await queue.getJobCounts()
    with Clock(jobs):
        for first in range(0, jobs, PORTION):
            numbers = range(first, min(first + PORTION, jobs))
            await queue.addBulk([
                {"name": "noop", "data": {"number": number, "text": TEXT}, "opts": OPTIONS} for number in numbers
            ])  # fmt: skip
    await queue.close()


async def drain() -> None:
    _worker = bullmq.Worker("jobs", run, {"connection": URL, **({"concurrency": 100} if FAST else {})})
    await asyncio.Event().wait()


if __name__ == "__main__":
    main(one_awaited=one_awaited, together=together, bulk=bulk, drain=drain)
