"""streamjobs; fast is with uvloop."""

import asyncio

from streamjobs import Job, StreamJobs

from .base import TEXT, URL, Clock, callers, main, mark

app = StreamJobs(URL)


@app.job(name="noop")
async def noop(number: int, text: str) -> None:
    mark()


def one(jobs: int) -> None:
    noop.options(queue="warm").enqueue_sync(0, TEXT)
    with Clock(jobs):
        for number in range(jobs):
            noop.enqueue_sync(number, TEXT)


async def one_awaited(jobs: int) -> None:
    await noop.options(queue="warm").enqueue(0, TEXT)
    with Clock(jobs):
        for number in range(jobs):
            await noop.enqueue(number, TEXT)


async def together(jobs: int) -> None:
    await noop.options(queue="warm").enqueue(0, TEXT)
    await callers(lambda number: noop.enqueue(number, TEXT), jobs)


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
    main(one=one, one_awaited=one_awaited, together=together, bulk=bulk, drain=drain)
