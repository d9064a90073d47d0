"""Scenario `drain`: workers, as `streamjobs worker` builds them, empty a full queue.

No-op jobs at concurrency 100, defaults otherwise. The clock runs from the start of the worker, its
connections included, until the server has counted the last job done.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

from streamjobs import Context, Fixed, Retry, StreamJobs, Temporary

from . import bare
from .document import Result
from .duel import Cycle, Duel, Size, fight
from .jobs import KIND, QUEUE, countdown
from .lab import Lab
from .measure import Order, Sample
from .work import drained, keep_quiet

FAILING = 10
"""Of so many jobs one fails at its first attempt."""
KEPT_S = 3600


def worker(order: Order) -> Sample:
    """Drain by our worker."""
    return asyncio.run(_worker(order))


async def _worker(order: Order) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)
    noop, ended = countdown(order.jobs)
    app.job(name=KIND, queue=QUEUE)(noop)
    return await drained(app, order, ended=ended)


def shared(order: Order) -> Sample:
    """Drain by our worker beside others of its kind; each sees when all is done."""
    return asyncio.run(_with(order, countdown(order.jobs)[0]))


def threads(order: Order) -> Sample:
    """Drain by a plain function, which runs in threads."""

    def noop(number: int, text: str) -> None: ...

    return asyncio.run(_with(order, noop))


def kept(order: Order) -> Sample:
    """Drain with each job's result kept for an hour."""

    async def noop(number: int, text: str) -> int:
        return number

    return asyncio.run(_with(order, noop, result_ttl=KEPT_S))


def failing(order: Order) -> Sample:
    """Drain while one job in ten fails once, and is tried again as soon as it can be."""

    async def noop(ctx: Context[Any], number: int, text: str) -> None:
        if ctx.attempt == 1 and number % FAILING == 0:
            raise Temporary("meant")

    keep_quiet()
    return asyncio.run(_with(order, noop, retry=Retry(backoff=Fixed(0))))


async def _with(order: Order, handler: Any, **options: Any) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)
    app.job(name=KIND, queue=QUEUE, **options)(handler)
    return await drained(app, order)


SIDES = {"worker": worker, "bare_drain": bare.drain}
MORE_SIDES = {
    "worker_shared": shared,
    "worker_threads": threads,
    "worker_kept": kept,
    "worker_failing": failing,
}

BARE_LIMIT_US = 3.5
PLAIN_LIMIT_US = 12.0
"""Of our own worker, which is no bare loop."""

VARIANTS = (
    # variant, ours, base, what the base is, processes, jobs by
    ("async_noop", "worker", "bare_drain", "bare loop", 1, 1),
    ("two_workers", "worker_shared", "bare_drain", "bare loop", 2, 1),
    ("two_to_one", "worker_shared", "worker", "one worker", 2, 1),
    ("threads", "worker_threads", "bare_drain", "bare loop", 1, 4),
    ("results_kept", "worker_kept", "worker", "without results", 1, 2),
    ("failing_once", "worker_failing", "worker", "without failures", 1, 2),
)


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield a result for each kind of drain."""
    for variant, side, base, what, workers, divisor in VARIANTS:
        duel = Duel(
            scenario="drain",
            variant=variant,
            ours=Cycle("enqueue_many", side, workers),
            bare=Cycle("enqueue_many", base, 1 if base == "worker" else workers),
            measured="drained",
            bare_limit_us=PLAIN_LIMIT_US if base == "worker" else BARE_LIMIT_US * (1 if workers == 1 else 1.3),
            base=what,
        )
        yield fight(lab, duel, size.part(divisor))
