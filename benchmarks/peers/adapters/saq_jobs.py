"""SAQ; fast keeps no results and runs 100 at once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import saq

from .base import FAST, PLAIN, TEXT, URL, main, mark

OPTIONS = {"ttl": -1} if FAST else {}


async def awaited(ctx: Any, *, number: int, text: str) -> None:
    mark(number)


def plain(ctx: Any, *, number: int, text: str) -> None:
    mark(number)


@asynccontextmanager
async def add() -> AsyncIterator[Any]:
    queue = saq.Queue.from_url(URL)
    await queue.connect()
    yield lambda number: queue.enqueue("noop", number=number, text=TEXT, **OPTIONS)


async def drain() -> None:
    queue = saq.Queue.from_url(URL, **({"max_concurrent_ops": 100} if FAST else {}))
    handler: Any = plain if PLAIN else awaited
    await saq.Worker(queue, [("noop", handler)], concurrency=100 if FAST else 10).start()


if __name__ == "__main__":
    main(add_awaited=add, drain=drain)
