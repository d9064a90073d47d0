"""arq; fast keeps no results, asks more often, and runs 500 at once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import arq
from arq.connections import RedisSettings
from arq.worker import Worker

from .base import FAST, TEXT, URL, main, mark

SETTINGS = RedisSettings.from_dsn(URL)


async def noop(ctx: Any, number: int, text: str) -> None:
    mark(number)


@asynccontextmanager
async def add() -> AsyncIterator[Any]:
    pool = await arq.create_pool(SETTINGS)
    await pool.ping()
    yield lambda number: pool.enqueue_job("noop", number, TEXT)


async def drain() -> None:
    fast = {"max_jobs": 500, "poll_delay": 0.01, "keep_result": 0} if FAST else {}
    await Worker(functions=[noop], redis_settings=SETTINGS, **fast).async_run()


if __name__ == "__main__":
    main(add_awaited=add, drain=drain)
