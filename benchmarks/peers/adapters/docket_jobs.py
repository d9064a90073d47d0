"""Docket; fast keeps nothing of what is done and runs 32 at once: with more it runs out of connections."""

from datetime import timedelta
from typing import Any

import docket

from .base import FAST, TEXT, URL, Clock, callers, main, mark


async def noop(number: int, text: str) -> None:
    mark()


def _docket() -> Any:
    return docket.Docket(name="jobs", url=URL, **({"execution_ttl": timedelta(0)} if FAST else {}))


async def one_awaited(jobs: int) -> None:
    async with _docket() as jobs_docket:
        jobs_docket.register(noop)
        with Clock(jobs):
            for number in range(jobs):
                await jobs_docket.add(noop)(number, TEXT)


async def together(jobs: int) -> None:
    async with _docket() as jobs_docket:
        jobs_docket.register(noop)
        await callers(lambda number: jobs_docket.add(noop)(number, TEXT), jobs)


async def drain() -> None:
    async with _docket() as jobs_docket:
        jobs_docket.register(noop)
        async with docket.Worker(jobs_docket, concurrency=32 if FAST else 10) as worker:
            await worker.run_forever()


if __name__ == "__main__":
    main(one_awaited=one_awaited, together=together, drain=drain)
