"""Scenario `mixed`: what is not a full queue of no-op jobs.

`both_ways`: a producer adds in bulk while a worker drains, from the first job sent to the last one done.
`io_…`: handlers that wait for 10 ms, at concurrency 100 and 1,000, beside as many tasks that wait the
same without any server. `cpu`: handlers that compute for a millisecond.
"""

import asyncio
from collections.abc import Iterator

from streamjobs import StreamJobs, WorkerOptions

from . import bare
from .document import Result
from .duel import Cycle, Duel, Size, fight
from .jobs import BUSY_S, KIND, QUEUE, busy
from .lab import Lab
from .measure import Meter, Order, Sample
from .work import drained

WAIT_S = 0.01
WAITERS = (100, 1000)
BARE_BUSY_US = 1e6 * BUSY_S * 1.3
BARE_WAIT_US = 40.0
BARE_BOTH_US = 6.0


async def _wait(number: int, text: str) -> None:
    await asyncio.sleep(WAIT_S)


def waiting(order: Order) -> Sample:
    """Drain jobs that wait, `waiters` of them at once."""
    return asyncio.run(_waiting(order))


async def _waiting(order: Order) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)
    app.job(name=KIND, queue=QUEUE)(_wait)
    return await drained(app, order, options=WorkerOptions(concurrency=int(order.how["waiters"])))


def tasks(order: Order) -> Sample:
    """Wait as often in `waiters` tasks, then drain the jobs, which is not measured."""
    return asyncio.run(_tasks(order))


async def _tasks(order: Order) -> Sample:
    waiters, meter = int(order.how["waiters"]), Meter(order.url)

    async def task(first: int) -> None:
        for number in range(first, order.jobs, waiters):
            await _wait(number, "")

    meter.start()
    await asyncio.gather(*map(task, range(waiters)))
    sample = meter.stop(order.jobs)
    await asyncio.to_thread(bare.drain, order)
    return sample


def computing(order: Order) -> Sample:
    """Drain jobs that compute."""
    return asyncio.run(_computing(order))


async def _computing(order: Order) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)
    app.job(name=KIND, queue=QUEUE)(busy)
    return await drained(app, order)


SIDES = {
    "worker_waiting": waiting,
    "bare_tasks": tasks,
    "worker_busy": computing,
    "bare_drain_busy": bare.drain_busy,
}


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield the results."""
    yield fight(lab, _both_ways(), size)
    for waiters in WAITERS:
        # Two seconds of waiting each, whatever the concurrency; quick a quarter of it.
        least_s = waiters * 2.0 / WAIT_S
        yield fight(lab, _io(waiters), Size(size.repeats, min(size.jobs, int(least_s) // (4 if size.quick else 1))))
    yield fight(lab, _cpu(), size.part(100))


def _both_ways() -> Duel:
    return Duel(
        scenario="mixed",
        variant="both_ways",
        ours=Cycle("enqueue_many", "worker", at_once=True),
        bare=Cycle("bare_enqueue", "bare_drain", at_once=True),
        measured="drained",
        bare_limit_us=BARE_BOTH_US,
    )


def _io(waiters: int) -> Duel:
    most = waiters / WAIT_S
    return Duel(
        scenario="mixed",
        variant=f"io_{waiters}",
        ours=Cycle("enqueue_many", "worker_waiting"),
        bare=Cycle("enqueue_many", "bare_tasks"),
        measured="drained",
        bare_limit_us=BARE_WAIT_US,
        base="tasks alone",
        how={"waiters": waiters},
        figures=lambda jobs_per_s: {f"of the {most:,.0f}/s that {waiters} waits of 10 ms allow": jobs_per_s / most},
    )


def _cpu() -> Duel:
    most = 1 / BUSY_S
    return Duel(
        scenario="mixed",
        variant="cpu",
        ours=Cycle("enqueue_many", "worker_busy"),
        bare=Cycle("enqueue_many", "bare_drain_busy"),
        measured="drained",
        bare_limit_us=BARE_BUSY_US,
        figures=lambda jobs_per_s: {"of the 1,000/s that 1 ms each allows": jobs_per_s / most},
    )
