"""streaQ; fast keeps no results and runs 100 at once."""

import streaq

from .base import FAST, PORTION, TEXT, URL, Clock, main, mark

worker = streaq.Worker(redis_url=URL, **({"concurrency": 100, "prefetch": 100} if FAST else {}))


async def run(number: int, text: str) -> None:
    mark()


noop = worker.task(name="noop", **({"ttl": 0} if FAST else {}))(run)


async def one_awaited(jobs: int) -> None:
    async with worker:
        with Clock(jobs):
            for number in range(jobs):
                await noop.enqueue(number, TEXT)


async def bulk(jobs: int) -> None:
    async with worker:
        with Clock(jobs):
            for first in range(0, jobs, PORTION):
                numbers = range(first, min(first + PORTION, jobs))
                await worker.enqueue_many([noop.enqueue(number, TEXT) for number in numbers])


async def drain() -> None:
    await worker.run_async()


if __name__ == "__main__":
    main(one_awaited=one_awaited, bulk=bulk, drain=drain)
