"""Docket; fast keeps nothing of what is done, looks more often whether one has ended, and runs 32 at once.

With more it runs out of connections.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import docket

from .base import FAST, TEXT, URL, Clock, main, mark


async def noop(number: int, text: str) -> None:
    mark(number)


@asynccontextmanager
async def _docket() -> AsyncIterator[Any]:
    async with docket.Docket(name="jobs", url=URL, **({"execution_ttl": timedelta(0)} if FAST else {})) as found:
        found.register(noop)
        yield found


@asynccontextmanager
async def add() -> AsyncIterator[Any]:
    async with _docket() as jobs:
        yield lambda number: jobs.add(noop)(number, TEXT)


async def bulk(jobs: int) -> None:
    async with _docket() as found:
        with Clock(jobs):
            await found.add_many(found.call(noop)(number, TEXT) for number in range(jobs))


async def drain() -> None:
    fast: Any = {"concurrency": 32, "minimum_check_interval": timedelta(milliseconds=10)} if FAST else {}
    async with _docket() as jobs, docket.Worker(jobs, **fast) as worker:
        await worker.run_forever()


if __name__ == "__main__":
    main(add_awaited=add, bulk=bulk, drain=drain)
