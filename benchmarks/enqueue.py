"""Scenario `enqueue`: add jobs in every way there is, encoding included.

In bulk through each of the two clients, one after the other through each, by 100 and by 10,000 tasks
at once that each wait for their job, and by 8 threads that do not. The clock runs from the first job to the last
handle, with connection and script in place.
"""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from streamjobs import JobOptions, Kind, StreamJobs

from . import bare
from .document import Result
from .duel import Cycle, Duel, Size, fight
from .jobs import FIRST, KIND, QUEUE, TEXT, countdown
from .lab import Lab
from .measure import Meter, Order, Sample


def app_of(order: Order) -> tuple[StreamJobs, Kind[..., Any]]:
    """Return the app of an order, and the kind that does nothing."""
    durability = "fsync" if order.how.get("fsync") else "memory"
    app = StreamJobs(order.url, namespace=order.namespace, defaults=JobOptions(durability=durability))
    return app, app.job(name=KIND, queue=QUEUE)(countdown(order.jobs)[0])


def many(order: Order) -> Sample:
    """Add by `enqueue_many`; the sample counts the handles."""
    return asyncio.run(_many(order))


async def _many(order: Order) -> Sample:
    app, noop = app_of(order)
    meter = Meter(order.url)
    await noop.options(queue="warm").enqueue(FIRST, TEXT)
    meter.start()
    handles = await app.enqueue_many(noop.call(FIRST + number, TEXT) for number in range(order.jobs))
    sample = meter.stop(order.jobs)
    await app.aclose()
    return counted(sample, handles)


def many_sync(order: Order) -> Sample:
    """Add by `enqueue_many_sync`; the sample counts the handles."""
    app, noop = app_of(order)
    meter = Meter(order.url)
    noop.options(queue="warm").enqueue_sync(FIRST, TEXT)
    meter.start()
    handles = app.enqueue_many_sync(noop.call(FIRST + number, TEXT) for number in range(order.jobs))
    sample = meter.stop(order.jobs)
    app.close()
    return counted(sample, handles)


def together(order: Order) -> Sample:
    """Let `callers` tasks add one job after the other, each waiting for its handle."""
    return asyncio.run(_together(order))


async def _together(order: Order) -> Sample:
    app, noop = app_of(order)
    meter, callers = Meter(order.url), int(order.how["callers"])
    await noop.options(queue="warm").enqueue(FIRST, TEXT)

    async def call(first: int) -> None:
        for number in range(first, order.jobs, callers):
            await noop.enqueue(FIRST + number, TEXT)

    meter.start()
    await asyncio.gather(*map(call, range(callers)))
    sample = meter.stop(order.jobs)
    await app.aclose()
    return sample


def submit(order: Order) -> Sample:
    """Let `callers` threads hand over jobs, and wait for all in the end; a job that did not arrive is missed there."""
    app, noop = app_of(order)
    meter, callers = Meter(order.url), int(order.how["callers"])
    with app.producer() as producer:

        def call(first: int) -> None:
            for number in range(first, order.jobs, callers):
                producer.submit(noop.call(FIRST + number, TEXT))

        producer.submit(noop.options(queue="warm").call(FIRST, TEXT)).result()
        meter.start()
        with ThreadPoolExecutor(callers) as pool:
            list(pool.map(call, range(callers)))
        producer.flush()
        sample = meter.stop(order.jobs)
    app.close()
    return sample


def one_sync(order: Order) -> Sample:
    """Add one job after the other by `enqueue_sync`."""
    app, noop = app_of(order)
    meter = Meter(order.url)
    noop.options(queue="warm").enqueue_sync(FIRST, TEXT)
    meter.start()
    for number in range(order.jobs):
        noop.enqueue_sync(FIRST + number, TEXT)
    sample = meter.stop(order.jobs)
    app.close()
    return sample


SIDES = {
    "enqueue_many": many,
    "enqueue_many_sync": many_sync,
    "bare_enqueue": bare.enqueue,
    "bare_enqueue_sync": bare.enqueue_sync,
}
SINGLE_SIDES = {
    "enqueue_together": together,
    "enqueue_submit": submit,
    "enqueue_one_sync": one_sync,
    "bare_together": bare.together,
    "bare_one": bare.one_by_one,
    "bare_one_sync": bare.one_by_one_sync,
}
"""Those that add one job at a time, or take `callers`."""


def counted(sample: Sample, handles: Sequence[object]) -> Sample:
    """Return the sample as one of the jobs that are there."""
    jobs = sum(not isinstance(handle, BaseException) for handle in handles)
    return Sample(jobs, sample.seconds, sample.client_s, sample.server_s)


VARIANTS = (
    # variant, ours, bare, the most that bare may cost its client in µs, jobs by, callers
    ("many", "enqueue_many", "bare_enqueue", 1.3, 1, 0),
    ("many_sync", "enqueue_many_sync", "bare_enqueue_sync", 1.3, 1, 0),
    ("submit", "enqueue_submit", "bare_enqueue_sync", 1.3, 2, 8),
    ("one", "enqueue_together", "bare_one", 106.0, 25, 1),
    ("one_sync", "enqueue_one_sync", "bare_one_sync", 45.0, 25, 0),
    ("callers_100", "enqueue_together", "bare_together", 6.0, 5, 100),
    ("callers_10000", "enqueue_together", "bare_together", 8.0, 4, 10_000),
)


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield a result for each way, beside the bare loop that goes the same."""
    for variant, side, base, limit_us, divisor, callers in VARIANTS:
        # That a worker can run what was added is seen in bulk.
        drain = "" if divisor > 2 else "worker"
        duel = Duel(
            scenario="enqueue",
            variant=variant,
            ours=Cycle(side, drain),
            bare=Cycle(base, times=2),
            measured="enqueued",
            bare_limit_us=limit_us,
            how={"callers": callers},
        )
        yield fight(lab, duel, size.part(divisor))
