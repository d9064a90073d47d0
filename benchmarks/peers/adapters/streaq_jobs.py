"""streaQ; fast keeps no results and runs 100 at once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import streaq

from .base import FAST, PLAIN, PORTION, TEXT, URL, Clock, main, mark

worker = streaq.Worker(redis_url=URL, **({"concurrency": 100, "prefetch": 100} if FAST else {}))


async def awaited(number: int, text: str) -> None:
    mark(number)


def plain(number: int, text: str) -> None:
    mark(number)


noop = worker.task(name="noop", **({"ttl": 0} if FAST else {}))(plain if PLAIN else awaited)


@asynccontextmanager
async def add() -> AsyncIterator[Any]:
    async with worker:
        yield lambda number: noop.enqueue(number, TEXT)


async def bulk(jobs: int) -> None:
    async with worker:
        with Clock(jobs):
            for first in range(0, jobs, PORTION):
                numbers = range(first, min(first + PORTION, jobs))
                await worker.enqueue_many([noop.enqueue(number, TEXT) for number in numbers])


async def drain() -> None:
    await worker.run_async()


if __name__ == "__main__":
    main(add_awaited=add, bulk=bulk, drain=drain)
