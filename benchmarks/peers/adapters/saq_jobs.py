"""SAQ; fast keeps no results and runs 100 at once."""

from typing import Any

import saq

from .base import FAST, TEXT, URL, Clock, callers, main, mark

OPTIONS = {"ttl": -1} if FAST else {}


async def noop(ctx: Any, *, number: int, text: str) -> None:
    mark()


async def one_awaited(jobs: int) -> None:
    queue = saq.Queue.from_url(URL)
    await queue.connect()
    with Clock(jobs):
        for number in range(jobs):
            await queue.enqueue("noop", number=number, text=TEXT, **OPTIONS)


async def together(jobs: int) -> None:
    queue = saq.Queue.from_url(URL)
    await queue.connect()
    await callers(lambda number: queue.enqueue("noop", number=number, text=TEXT, **OPTIONS), jobs)


async def drain() -> None:
    queue = saq.Queue.from_url(URL, **({"max_concurrent_ops": 100} if FAST else {}))
    await saq.Worker(queue, [noop], concurrency=100 if FAST else 10).start()


if __name__ == "__main__":
    main(one_awaited=one_awaited, together=together, drain=drain)
