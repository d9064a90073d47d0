"""Scenario `dedupe`: jobs that each hold a dedupe key, beside the same jobs without one.

`argument`: the kind makes the key of an argument. `named`: each enqueue names its own. `drain`: a worker
gives all the keys back.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Literal

from streamjobs import StreamJobs, UntilDone
from streamjobs.core.job import Job

from .document import Result
from .duel import Cycle, Duel, Size, fight
from .enqueue import counted
from .jobs import FIRST, KIND, QUEUE, TEXT, countdown
from .lab import Lab
from .measure import Meter, Order, Sample

PLAIN_LIMIT_US = 8.0
"""Of our own bulk without keys, or of our worker, which are no bare loops."""


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
    """Yield the results of adding and of draining."""
    for variant, side in (("argument", "enqueue_argument"), ("named", "enqueue_named")):
        yield fight(lab, _duel(variant, side, "enqueued"), size)
    yield fight(lab, _duel("drain", "enqueue_argument", "drained"), size)


def _duel(variant: str, side: str, measured: Literal["enqueued", "drained"]) -> Duel:
    return Duel(
        scenario="dedupe",
        variant=variant,
        ours=Cycle(side, "worker"),
        bare=Cycle("enqueue_many", "worker"),
        base="without keys",
        measured=measured,
        bare_limit_us=PLAIN_LIMIT_US,
    )
