"""Scenario `enqueue`: add jobs in bulk, encoding included, through each of the two clients.

The clock runs from the first job to the last handle, with connection and script in place.
"""

import asyncio
from collections.abc import Iterator, Sequence

from streamjobs import StreamJobs

from . import bare
from .document import Result
from .duel import Cycle, Duel, Size, fight
from .jobs import FIRST, KIND, QUEUE, TEXT, countdown
from .lab import Lab
from .measure import Meter, Order, Sample

BARE_LIMIT_US = 1.3


def many(order: Order) -> Sample:
    """Add by `enqueue_many`; the sample counts the handles."""
    return asyncio.run(_many(order))


async def _many(order: Order) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)
    noop = app.job(name=KIND, queue=QUEUE)(countdown(order.jobs)[0])
    meter = Meter(order.url)
    await noop.options(queue="warm").enqueue(FIRST, TEXT)
    meter.start()
    handles = await app.enqueue_many(noop.call(FIRST + number, TEXT) for number in range(order.jobs))
    sample = meter.stop(order.jobs)
    await app.aclose()
    return counted(sample, handles)


def many_sync(order: Order) -> Sample:
    """Add by `enqueue_many_sync`; the sample counts the handles."""
    app = StreamJobs(order.url, namespace=order.namespace)
    noop = app.job(name=KIND, queue=QUEUE)(countdown(order.jobs)[0])
    meter = Meter(order.url)
    noop.options(queue="warm").enqueue_sync(FIRST, TEXT)
    meter.start()
    handles = app.enqueue_many_sync(noop.call(FIRST + number, TEXT) for number in range(order.jobs))
    sample = meter.stop(order.jobs)
    app.close()
    return counted(sample, handles)


SIDES = {
    "enqueue_many": many,
    "enqueue_many_sync": many_sync,
    "bare_enqueue": bare.enqueue,
    "bare_enqueue_sync": bare.enqueue_sync,
}


def counted(sample: Sample, handles: Sequence[object]) -> Sample:
    """Return the sample as one of the jobs that are there."""
    jobs = sum(not isinstance(handle, BaseException) for handle in handles)
    return Sample(jobs, sample.seconds, sample.client_s, sample.server_s)


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield a result for each client, beside the bare loop that uses the same one."""
    for variant, side, base in (
        ("many", "enqueue_many", "bare_enqueue"),
        ("many_sync", "enqueue_many_sync", "bare_enqueue_sync"),
    ):
        duel = Duel(
            scenario="enqueue",
            variant=variant,
            ours=Cycle(side, "worker"),
            bare=Cycle(base, "worker"),
            measured="enqueued",
            bare_limit_us=BARE_LIMIT_US,
        )
        yield fight(lab, duel, size)
