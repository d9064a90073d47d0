"""Scenario `growth`: does a job cost more where there is more of something?

`waiting_N`: N jobs wait, and stay waiting; others are added behind them, and as many drained before them.
`queues_N`: one worker serves N queues, over which the same jobs are spread. `idle_N`: N workers
have nothing to do on one queue. `claims_N`: another worker holds N jobs while these are added and drained.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from time import perf_counter
from typing import Any

import msgspec
import redis

from streamjobs import Job, StreamJobs, WorkerOptions
from streamjobs.protocol.keys import GROUP, QueueKeys

from .document import Result
from .duel import Size, Void, expect
from .jobs import FIRST, KIND, QUEUE, TEXT, countdown
from .lab import Lab
from .measure import Meter, Order, Sample
from .trial import trials
from .work import CONCURRENCY, Done, drained

WAITING = (10_000, 200_000, 2_000_000)
QUEUES = (10, 100, 1000)
IDLE = (1, 10, 100)
CLAIMS = (0, 50_000)
DRAINED = 50_000
IDLE_S = 60.0
SETTLE_S = 6.0
"""Until workers that have just started are as idle as they will be."""
PART = 5_000


def some(order: Order) -> Sample:
    """Drain so many jobs, and leave the others."""
    return asyncio.run(_some(order))


async def _some(order: Order) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)
    app.job(name=KIND, queue=QUEUE)(countdown(order.jobs)[0])
    done = Done(order)
    before = done.count()
    done.close()
    return await drained(app, order, before=before)


def spread(order: Order) -> Sample:
    """Add jobs over `queues` queues, and drain them all by one worker; only that is measured."""
    return asyncio.run(_spread(order))


async def _spread(order: Order) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)
    noop, ended = countdown(order.jobs)
    kind = app.job(name=KIND, queue=QUEUE)(noop)
    names = [f"{QUEUE}-{number}" for number in range(int(order.how["queues"]))]
    options = [kind.options(queue=name) for name in names]

    def one(number: int) -> Job:
        return options[number % len(options)].call(FIRST + number, TEXT)

    await app.enqueue_many(map(one, range(order.jobs)))
    meter = Meter(order.url)
    meter.start()
    async with app.worker(names, WorkerOptions(concurrency=CONCURRENCY)):
        await ended.wait()
        sample = meter.stop(order.jobs)
    await app.aclose()
    return sample


def idle(order: Order) -> Sample:
    """Run `workers` workers without any job, for `seconds`; count what they ask of the server."""
    return asyncio.run(_idle(order))


async def _idle(order: Order) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)
    app.job(name=KIND, queue=QUEUE)(countdown(1)[0])
    workers, seconds = int(order.how["workers"]), order.how["seconds"]
    meter = Meter(order.url)
    async with AsyncExitStack() as stack:
        for _ in range(workers):
            await stack.enter_async_context(app.worker([QUEUE], WorkerOptions(concurrency=CONCURRENCY)))
        await asyncio.sleep(SETTLE_S)
        meter.start()
        asked = await asyncio.to_thread(_requests, order, seconds)
        sample = meter.stop(1)
    await app.aclose()
    figures = {
        "requests a minute of a worker": asked * 60 / seconds / workers,
        "requests a minute of all": asked * 60 / seconds,
        "client CPU % of a worker": 100 * sample.client_s / seconds / workers,
    }
    return Sample(0, seconds, sample.client_s, sample.server_s, figures)


def _requests(order: Order, seconds: float) -> int:
    """Listen for so long; return how many requests came that name a key of the order, but for those of scripts."""
    found, deadline = 0, perf_counter() + seconds
    with redis.Redis.from_url(order.url, protocol=2) as server, server.monitor() as monitor:
        while (left := deadline - perf_counter()) > 0:
            if monitor.connection.can_read(left):
                said: Any = monitor.next_command()
                found += said["client_type"] != "lua" and order.namespace in said["command"]
    return found


SIDES = {"growth_some": some, "growth_spread": spread, "growth_idle": idle}


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield the results, those of each question beside one another; quick of the least and the most."""
    jobs = min(DRAINED, size.jobs // (5 if size.quick else 2))
    queues = _chosen(QUEUES, size)
    yield from _waiting(lab, size, jobs)
    yield from trials(
        "growth", {f"queues_{many}": partial(_spread_over, lab, many, jobs) for many in queues}, size.repeats
    )
    yield from trials(
        "growth", {f"claims_{many}": partial(_beside_claims, lab, many, jobs) for many in CLAIMS}, size.repeats
    )
    idling, seconds = (IDLE[-1:], IDLE_S / 10) if size.quick else (IDLE, IDLE_S)
    yield from trials("growth", {f"idle_{many}": partial(_idle_for, lab, many, seconds) for many in idling}, 1)


def _chosen(sizes: Sequence[int], size: Size) -> Sequence[int]:
    return list(dict.fromkeys((sizes[0], sizes[-1]))) if size.quick else sizes


def _waiting(lab: Lab, size: Size, jobs: int) -> Iterator[Result]:
    # Ten times the jobs of a repeat, quick half of it, or what was asked for.
    crowds = [min(many, (5 if size.quick else 10) * size.jobs) for many in _chosen(WAITING, size)]
    with ExitStack() as stack:
        orders = {many: stack.enter_context(lab.ordered(many)) for many in dict.fromkeys(crowds)}
        for order in orders.values():
            lab.run("bare_enqueue", order)
        variants = {f"waiting_{many}": partial(_behind, lab, order, jobs) for many, order in orders.items()}
        yield from trials("growth", variants, size.repeats)


def _behind(lab: Lab, order: Order, jobs: int) -> Sample:
    part = msgspec.structs.replace(order, jobs=jobs)
    added = lab.run("enqueue_many", part)
    done = lab.run("growth_some", part)
    # Those that were read ahead are done beyond what was asked for.
    if done.jobs < jobs:
        raise Void(f"{done.jobs} of {jobs} jobs were drained")
    both = {"client µs a job added and drained": added.client_us + done.client_us}
    both["server µs a job added and drained"] = added.server_us + done.server_us
    return msgspec.structs.replace(done, jobs=jobs, figures=both)


def _spread_over(lab: Lab, queues: int, jobs: int) -> Sample:
    with lab.ordered(jobs, queues=queues) as order:
        return lab.run("growth_spread", order)


def _beside_claims(lab: Lab, claims: int, jobs: int) -> Sample:
    with lab.ordered(jobs) as order:
        stream = QueueKeys(order.namespace, QUEUE).stream
        if claims:
            lab.run("bare_enqueue", msgspec.structs.replace(order, jobs=claims))
            lab.server.xgroup_create(stream, GROUP, "0")
            for _ in range(0, claims, PART):
                lab.server.xreadgroup(GROUP, "holder", {stream: ">"}, count=PART)
        lab.run("enqueue_many", order)
        sample = lab.run("growth_some", order)
        expect(claims, lab.waiting(order), "jobs left to another worker")
        return sample


def _idle_for(lab: Lab, workers: int, seconds: float) -> Sample:
    with lab.ordered(0, workers=workers, seconds=seconds) as order:
        return lab.run("growth_idle", order)
