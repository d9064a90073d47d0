"""Scenario `drain`: workers, as `streamjobs worker` builds them, empty a full queue.

No-op jobs at concurrency 100, defaults otherwise. The clock runs from the start of the worker, its
connections included, until the server has counted the last job done.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

from streamjobs import Batch, Context, Fixed, Retry, StreamJobs, Temporary

from . import bare, in_process
from .document import Result
from .duel import Cycle, Duel, Size, fight
from .jobs import KIND, QUEUE, Arguments, countdown
from .lab import Lab
from .measure import Order, Sample
from .work import drained, keep_quiet

FAILING = 10
"""Of so many jobs one fails at its first attempt."""
ITEMS = 100
"""So many at most in one call of a batch handler."""
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


def process(order: Order) -> Sample:
    """Drain by a plain function that runs in processes."""
    in_process.app.use(order.url, namespace=order.namespace)
    return asyncio.run(drained(in_process.app, order))


def batch(order: Order) -> Sample:
    """Drain by a handler that takes many jobs in one call."""

    async def noop(items: list[Arguments]) -> None: ...

    return asyncio.run(_with(order, noop, batch=Batch(ITEMS)))


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
    "worker_process": process,
    "worker_batch": batch,
    "worker_kept": kept,
    "worker_failing": failing,
}

BARE_LIMIT_US = 3.5
PLAIN_LIMIT_US = 12.0
"""Of our own worker, which is no bare loop."""
THREADS_LIMIT_US = 25.0

BARE = Cycle("enqueue_many", "bare_drain")
MANY_BARE = Cycle("enqueue_many", "bare_drain", times=2)
TWO_BARE = Cycle("enqueue_many", "bare_drain", 2, times=2)
ONE = Cycle("enqueue_many", "worker")
IN_THREADS = Cycle("enqueue_many", "worker_threads")
MANY_IN_THREADS = Cycle("enqueue_many", "worker_threads", times=7)

VARIANTS = (
    # variant, ours, base, what the base is, jobs by
    ("async_noop", ONE, BARE, "bare loop", 2),
    ("two_workers", Cycle("enqueue_many", "worker_shared", 2), TWO_BARE, "bare loop", 3),
    ("two_to_one", Cycle("enqueue_many", "worker_shared", 2), ONE, "one worker", 4),
    ("threads", IN_THREADS, MANY_BARE, "bare loop", 4),
    ("process", Cycle("enqueue_many", "worker_process"), MANY_IN_THREADS, "in threads", 50),
    ("batch", Cycle("enqueue_many", "worker_batch"), ONE, "job by job", 4),
    ("results_kept", Cycle("enqueue_many", "worker_kept"), ONE, "without results", 4),
    ("dedupe", Cycle("enqueue_argument", "worker"), ONE, "without keys", 4),
    ("failing_once", Cycle("enqueue_many", "worker_failing"), ONE, "without failures", 5),
)
_LIMITS = {BARE: BARE_LIMIT_US, MANY_BARE: BARE_LIMIT_US, ONE: PLAIN_LIMIT_US, MANY_IN_THREADS: THREADS_LIMIT_US}


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield a result for each kind of drain."""
    for variant, ours, base, what, divisor in VARIANTS:
        duel = Duel(
            scenario="drain",
            variant=variant,
            ours=ours,
            bare=base,
            measured="drained",
            bare_limit_us=_LIMITS.get(base, BARE_LIMIT_US * 1.3),
            base=what,
        )
        yield fight(lab, duel, size.part(divisor))
