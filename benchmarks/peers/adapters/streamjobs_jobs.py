"""streamjobs; fast is with uvloop."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from streamjobs import Job, Kind, StreamJobs

from .base import PLAIN, TEXT, URL, Clock, main, mark

app = StreamJobs(URL)


async def awaited(number: int, text: str) -> None:
    mark(number)


def plain(number: int, text: str) -> None:
    mark(number)


noop: Kind[[int, str], None] = app.job(name="noop")(plain) if PLAIN else app.job(name="noop")(awaited)


@contextmanager
def add() -> Iterator[Any]:
    noop.options(queue="warm").enqueue_sync(0, TEXT)
    yield lambda number: noop.enqueue_sync(number, TEXT)


@asynccontextmanager
async def add_awaited() -> AsyncIterator[Any]:
    await noop.options(queue="warm").enqueue(0, TEXT)
    yield lambda number: noop.enqueue(number, TEXT)


async def bulk(jobs: int) -> None:
    await noop.options(queue="warm").enqueue(0, TEXT)

    def job(number: int) -> Job:
        return noop.call(number, TEXT)

    with Clock(jobs):
        await app.enqueue_many(map(job, range(jobs)))


async def drain() -> None:
    async with app.worker(["default"]):
        await asyncio.Event().wait()


if __name__ == "__main__":
    main(add=add, add_awaited=add_awaited, bulk=bulk, drain=drain)
