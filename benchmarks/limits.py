"""Scenario `limits`: what rates and concurrency cost, how exact they are, and how fair.

`rate_1000`: two workers drain jobs of a kind limited to 1,000 starts per second; the clock runs from
the first job done to the last. `keys_10000`: one worker drains jobs of 10,000 keys, each limited to one at
once, beside the same jobs without a limit. `fairness`: while one key has thousands of jobs waiting, jobs of
other keys are sent one after the other; beside the same without those that wait.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any

import msgspec
import redis

from streamjobs import Concurrency, Rate, StreamJobs, WorkerOptions
from streamjobs.protocol.keys import QueueKeys

from .document import Result
from .duel import Cycle, Size, Void, run_cycle
from .jobs import KIND, QUEUE
from .lab import Lab, SideFailed
from .measure import Meter, Order, Sample, Spread
from .trial import medians
from .work import CONCURRENCY, Done

PER_S = 1000
RATE_S, QUICK_RATE_S = 20, 10
KEYS = 10_000
HOG = 100_000
OTHERS = 500


def _app(order: Order, rate: Rate | None = None, concurrency: Concurrency | None = None) -> tuple[StreamJobs, Any]:
    app = StreamJobs(order.url, namespace=order.namespace)

    @app.job(name=KIND, queue=QUEUE, rate=rate, concurrency=concurrency)
    async def noop(number: int, key: str) -> None: ...

    return app, noop


@asynccontextmanager
async def _working(app: StreamJobs) -> AsyncIterator[None]:
    async with app.worker([QUEUE], WorkerOptions(concurrency=CONCURRENCY)):
        yield
    await app.aclose()


def enqueue_keys(order: Order) -> Sample:
    """Add jobs whose keys come in turn."""
    return asyncio.run(_enqueue(order, [str(number % KEYS) for number in range(order.jobs)]))


def enqueue_one_key(order: Order) -> Sample:
    """Add jobs of one key."""
    return asyncio.run(_enqueue(order, ["hog"] * order.jobs))


async def _enqueue(order: Order, keys: list[str]) -> Sample:
    app, noop = _app(order)
    meter = Meter(order.url)
    meter.start()
    await app.enqueue_many(noop.call(number, key) for number, key in enumerate(keys))
    sample = meter.stop(order.jobs)
    await app.aclose()
    return sample


def rate_drain(order: Order) -> Sample:
    """Drain under the rate, from the first job done to the last."""
    return asyncio.run(_drain(order, first=True, rate=Rate(PER_S)))


def keys_drain(order: Order) -> Sample:
    """Drain with each key limited to one job at once."""
    return asyncio.run(_drain(order, concurrency=Concurrency(1, key="key")))


def plain_drain(order: Order) -> Sample:
    """Drain the same jobs without a limit."""
    return asyncio.run(_drain(order))


async def _drain(order: Order, *, first: bool = False, **limits: Any) -> Sample:
    app, _ = _app(order, **limits)
    done, meter = Done(order), Meter(order.url)
    meter.start()
    async with _working(app):
        if first:
            while not done.count():
                await asyncio.sleep(0.001)
            before = done.count()
            meter.start()
        else:
            before = 0
        while done.count() < order.jobs:
            await asyncio.sleep(0.002)
        return meter.stop(order.jobs - before)


def fair(order: Order) -> Sample:
    """Send jobs of other keys one after the other, each when the one before has started; the time of all."""
    return asyncio.run(_fair(order))


async def _fair(order: Order) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)
    started, go_on = asyncio.Event(), asyncio.Event()

    @app.job(name=KIND, queue=QUEUE, concurrency=Concurrency(1, key="key"))
    async def job(number: int, key: str) -> None:
        if key == "hog":
            await go_on.wait()
        else:
            started.set()

    line, server = QueueKeys(order.namespace, QUEUE).line, redis.Redis.from_url(order.url, protocol=2)
    meter = Meter(order.url)
    meter.start()
    async with _working(app):
        begun = perf_counter()
        while server.zcard(line) < order.jobs - 1:
            await asyncio.sleep(0.01)
        if order.jobs > 1:
            print(f"{order.jobs:,} jobs parked in {perf_counter() - begun:.1f} s", file=sys.stderr)
        meter.start()
        for number in range(OTHERS):
            started.clear()
            await job.enqueue(number, str(number))
            await started.wait()
        sample = meter.stop(OTHERS)
        # The worker would wait half a minute for it.
        go_on.set()
    server.close()
    return sample


SIDES = {
    "enqueue_keys": enqueue_keys,
    "enqueue_one_key": enqueue_one_key,
    "rate_drain": rate_drain,
    "keys_drain": keys_drain,
    "plain_drain": plain_drain,
    "fair": fair,
}


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield the three results."""
    for variant, repeats, measure in (
        ("rate_1000", 1 if size.quick else size.repeats, rate),
        ("keys_10000", size.repeats, keys),
        ("fairness", 1 if size.quick else size.repeats, fairness),
    ):
        try:
            yield measure(lab, Size(repeats, size.jobs))
        except (Void, SideFailed) as error:
            yield Result(scenario="limits", variant=variant, repeats=repeats, jobs=size.jobs, void=str(error))


def rate(lab: Lab, size: Size) -> Result:
    """Return how near two workers come to the rate together."""
    jobs = PER_S * (QUICK_RATE_S if size.quick else RATE_S)
    samples = [_rate_once(lab, jobs) for _ in range(size.repeats)]
    return medians("limits", "rate_1000", jobs, samples, {
        "of the limit": Spread.of((one.jobs_per_s / PER_S for one in samples), 4),
    })  # fmt: skip


def _rate_once(lab: Lab, jobs: int) -> Sample:
    order = lab.order(jobs)
    try:
        lab.run("enqueue_keys", order)
        one, other = lab.run_together(*[("rate_drain", order)] * 2)
        if lab.waiting(order):
            raise Void("not everything was drained")
        # Both counted all jobs; each has its own cost.
        return msgspec.structs.replace(one, client_s=one.client_s + other.client_s)
    finally:
        lab.wipe(order)


def keys(lab: Lab, size: Size) -> Result:
    """Return what a limit per key costs."""
    jobs = max(1, size.jobs // (4 if size.quick else 1))
    limited: list[Sample] = []
    plain: list[Sample] = []
    for repeat in range(size.repeats):
        sides = [("keys_drain", limited), ("plain_drain", plain)]
        for side, samples in sides if repeat % 2 else reversed(sides):
            done = run_cycle(lab, Cycle("enqueue_keys", side), lab.order(jobs)).drained
            assert done is not None
            samples.append(done)
            print(f"limits {side} {repeat + 1}/{size.repeats}: {samples[-1].jobs_per_s:,.0f} jobs/s", file=sys.stderr)
    ratio = Spread.of((a.jobs_per_s / b.jobs_per_s for a, b in zip(limited, plain, strict=True)), 3)
    return medians("limits", "keys_10000", jobs, limited, {"of the plain drain": ratio})


def fairness(lab: Lab, size: Size) -> Result:
    """Return how long a job of another key takes to start while one key's thousands wait, and without them."""
    beside: list[Sample] = []
    alone: list[Sample] = []
    for _ in range(size.repeats):
        for jobs, samples in ((HOG, beside), (1, alone)):
            order = lab.order(jobs)
            try:
                lab.run("enqueue_one_key", order)
                samples.append(lab.run("fair", order))
            finally:
                lab.wipe(order)
    return medians("limits", "fairness", HOG, beside, {
        "ms to start beside them": Spread.of((1000 * one.seconds / one.jobs for one in beside), 2),
        "ms to start without them": Spread.of((1000 * one.seconds / one.jobs for one in alone), 2),
    })  # fmt: skip
