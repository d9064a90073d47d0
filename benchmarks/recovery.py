"""Scenario `recovery`: a worker is killed with 50 jobs in hand; how long until all of them run again?

Another worker of the same queue runs beside it. `defaults`: a lease of 15 s and a sweep every 5 s, so 20 s at
most. `lease_2_s`: with a sweep every half second.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from functools import partial
from time import monotonic, sleep

import msgspec
import redis

from streamjobs import StreamJobs, WorkerOptions

from .document import Result
from .duel import Size, Void
from .jobs import FIRST, KIND, QUEUE, TEXT
from .lab import Lab
from .measure import Meter, Order, Sample
from .trial import trials

HELD = 50
LEASES = {"defaults": (15.0, 5.0), "lease_2_s": (2.0, 0.5)}
"""Lease and sweep, in seconds."""
START_S = 30.0


def hold(order: Order) -> Sample:
    """Start jobs that never end; until killed."""
    return asyncio.run(_hold(order))


async def _hold(order: Order) -> Sample:
    app, started = _app(order), redis.Redis.from_url(order.url, protocol=2)

    @app.job(name=KIND, queue=QUEUE)
    async def held(number: int, text: str) -> None:
        started.sadd(_started(order), number)
        await asyncio.Event().wait()

    async with app.worker([QUEUE], _options(order)):
        await app.enqueue_many(held.call(FIRST + number, TEXT) for number in range(order.jobs))
        await asyncio.Event().wait()
    raise AssertionError("nothing ends this but a kill")


def take(order: Order) -> Sample:
    """Run a worker, kill the process `pid`, and wait until its jobs have started here."""
    return asyncio.run(_take(order))


async def _take(order: Order) -> Sample:
    app, started, all_started = _app(order), set[int](), asyncio.Event()

    @app.job(name=KIND, queue=QUEUE)
    async def held(number: int, text: str) -> None:
        started.add(number)
        if len(started) == order.jobs:
            all_started.set()

    meter = Meter(order.url)
    async with app.worker([QUEUE], _options(order)):
        os.kill(int(order.how["pid"]), signal.SIGKILL)
        meter.start()
        await all_started.wait()
        sample = meter.stop(order.jobs)
    await app.aclose()
    return Sample(0, sample.seconds, 0.0, 0.0, {"s until all ran again": sample.seconds})


def _app(order: Order) -> StreamJobs:
    return StreamJobs(order.url, namespace=order.namespace)


def _options(order: Order) -> WorkerOptions:
    return WorkerOptions(concurrency=order.jobs, lease=order.how["lease"], sweep=order.how["sweep"])


def _started(order: Order) -> str:
    return f"{order.namespace}:started"


SIDES = {"recovery_hold": hold, "recovery_take": take}


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield the results."""
    for name, (lease_s, sweep_s) in LEASES.items():
        repeats = 1 if size.quick and name == "defaults" else size.repeats
        yield from trials("recovery", {name: partial(_once, lab, lease_s, sweep_s)}, repeats)


def _once(lab: Lab, lease_s: float, sweep_s: float) -> Sample:
    with lab.ordered(HELD, lease=lease_s, sweep=sweep_s) as order:
        with lab.started("recovery_hold", order) as victim:
            deadline = monotonic() + START_S
            while lab.server.scard(_started(order)) < HELD:
                if monotonic() > deadline:
                    raise Void(f"the jobs did not start within {START_S:g} s")
                sleep(0.01)
            return lab.run("recovery_take", msgspec.structs.replace(order, how={**order.how, "pid": victim.pid}))
