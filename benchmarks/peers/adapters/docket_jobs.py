"""Docket; fast keeps nothing of what is done and runs 32 at once: with more it runs out of connections."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import docket

from .base import FAST, TEXT, URL, main, mark


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


async def drain() -> None:
    async with _docket() as jobs, docket.Worker(jobs, concurrency=32 if FAST else 10) as worker:
        await worker.run_forever()


if __name__ == "__main__":
    main(add_awaited=add, drain=drain)
