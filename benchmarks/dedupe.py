"""Scenario `dedupe`: add jobs that each hold a dedupe key, beside the same jobs without one.

`argument`: the kind makes the key of an argument. `named`: each enqueue names its own. (What it costs a worker
to give the keys back is a variant of `drain`.)
"""

import asyncio
from collections.abc import Callable, Iterator

from streamjobs import StreamJobs, UntilDone
from streamjobs.core.job import Job

from .document import Result
from .duel import Cycle, Duel, Size, fight
from .enqueue import counted
from .jobs import FIRST, KIND, QUEUE, TEXT, countdown
from .lab import Lab
from .measure import Meter, Order, Sample

PLAIN_LIMIT_US = 8.0
"""Of our own bulk without keys, which is no bare loop."""


def argument(order: Order) -> Sample:
    """Add jobs whose kind makes a key of their number."""
    app = StreamJobs(order.url, namespace=order.namespace)
    noop = app.job(name=KIND, queue=QUEUE, dedupe=UntilDone(key="number"))(countdown(order.jobs)[0])
    return asyncio.run(_many(app, order, lambda number: noop.call(number, TEXT)))


def named(order: Order) -> Sample:
    """Add jobs, each with a key that its enqueue names."""
    app = StreamJobs(order.url, namespace=order.namespace)
    noop = app.job(name=KIND, queue=QUEUE)(countdown(order.jobs)[0])
    return asyncio.run(_many(app, order, lambda number: noop.options(dedupe_key=f"user:{number}").call(number, TEXT)))


async def _many(app: StreamJobs, order: Order, job: Callable[[int], Job]) -> Sample:
    meter = Meter(order.url)
    await app.send(KIND, {"number": FIRST, "text": TEXT}, queue="warm")
    meter.start()
    handles = await app.enqueue_many(job(FIRST + number) for number in range(order.jobs))
    sample = meter.stop(order.jobs)
    await app.aclose()
    return counted(sample, handles)


SIDES = {"enqueue_argument": argument, "enqueue_named": named}


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield a result for each way to a key."""
    for variant, side in (("argument", "enqueue_argument"), ("named", "enqueue_named")):
        duel = Duel(
            scenario="dedupe",
            variant=variant,
            ours=Cycle(side, "worker"),
            bare=Cycle("enqueue_many", "worker", times=2),
            base="without keys",
            measured="enqueued",
            bare_limit_us=PLAIN_LIMIT_US,
        )
        yield fight(lab, duel, size.part(2))
