"""Scenario `delayed`: how late jobs start that were sent to run later, by the server's clock.

`one_instant`: 20,000 due at once. `over_10_s`: as many, spread evenly. `far_ahead`: what a look for due jobs
costs the server beside a million that are not.
"""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from time import perf_counter

import msgspec
import redis

from streamjobs import Job, StreamJobs, WorkerOptions
from streamjobs.client import Connections
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.upkeep import promote

from .document import Result
from .duel import Size, Void
from .jobs import FIRST, KIND, QUEUE, TEXT, countdown
from .lab import Lab
from .measure import Meter, Order, Sample, lateness
from .trial import trials
from .work import CONCURRENCY

JOBS = 20_000
SPREAD_S = 10.0
AHEAD_S = 3.0
"""From the first enqueue to the first due time."""
FAR = 1_000_000
FAR_S = 86_400.0
LOOKS = 500
ROOM = 1000


def due(order: Order) -> Sample:
    """Send jobs for `spread` seconds of the future, run a worker, and say how late each started."""
    return asyncio.run(_due(order))


async def _due(order: Order) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)
    offset_s = _server_clock(order)
    late: list[float] = []
    ended = asyncio.Event()

    @app.job(name=KIND, queue=QUEUE)
    async def job(due_s: float, text: str) -> None:
        late.append(perf_counter() + offset_s - due_s)
        if len(late) == order.jobs:
            ended.set()

    # In whole milliseconds, as the server keeps it.
    first_s = round(perf_counter() + offset_s + AHEAD_S, 3)
    step_s = order.how["spread"] / order.jobs

    def one(number: int) -> Job:
        due_s = round(first_s + number * step_s, 3)
        return job.options(at=datetime.fromtimestamp(due_s, UTC)).call(due_s, TEXT)

    meter = Meter(order.url)
    meter.start()
    await app.enqueue_many(map(one, range(order.jobs)))
    scheduled_s = perf_counter() + offset_s
    async with app.worker([QUEUE], WorkerOptions(concurrency=CONCURRENCY)):
        await ended.wait()
        sample = meter.stop(order.jobs)
    await app.aclose()
    if scheduled_s > first_s:
        raise RuntimeError(f"the jobs took {scheduled_s - first_s:.1f} s too long to schedule")
    rate = order.jobs / (perf_counter() + offset_s - first_s - min(late))
    figures = {**lateness(late, "late"), "early": sum(one < 0 for one in late), "jobs/s from the first due": rate}
    return msgspec.structs.replace(sample, figures=figures)


def _server_clock(order: Order) -> float:
    """Return what the server's clock is ahead of ours, to half a round trip."""
    with redis.Redis.from_url(order.url, protocol=2) as server:
        server.ping()
        before = perf_counter()
        seconds, micros = server.time()
        return float(seconds + micros / 1e6 - (before + perf_counter()) / 2)


def look(order: Order) -> Sample:
    """Schedule `order.jobs` for tomorrow, then look for due jobs again and again."""
    return asyncio.run(_look(order))


async def _look(order: Order) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)
    noop = app.job(name=KIND, queue=QUEUE)(countdown(order.jobs)[0])
    later = noop.options(delay=FAR_S)
    await app.enqueue_many(later.call(FIRST, TEXT) for _ in range(int(order.how["far"])))
    meter, executor = Meter(order.url), Connections(order.url).sync()
    call = promote(QueueKeys(order.namespace, QUEUE), "look", rung=False, note="", room=ROOM)
    executor.run(call)
    meter.start()
    for _ in range(order.jobs):
        executor.run(call)
    sample = meter.stop(order.jobs)
    executor.close()
    await app.aclose()
    return msgspec.structs.replace(sample, figures={"µs of the server a look": sample.server_us})


SIDES = {"delayed_due": due, "delayed_look": look}


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield the results."""
    jobs, far = min(JOBS, size.jobs), min(FAR, 2 * size.jobs if size.quick else 5 * size.jobs)
    spread_s = SPREAD_S / 4 if size.quick else SPREAD_S
    yield from trials("delayed", {
        "one_instant": _once(lab, "delayed_due", jobs, spread=0.0),
        f"over_{spread_s:g}_s": _once(lab, "delayed_due", jobs, spread=spread_s),
    }, size.repeats)  # fmt: skip
    yield from trials("delayed", {
        "look_at_none": _once(lab, "delayed_look", LOOKS, far=0),
        f"look_at_{far}": _once(lab, "delayed_look", LOOKS, far=far),
    }, 1 if size.quick else size.repeats)  # fmt: skip


def _once(lab: Lab, side: str, jobs: int, **how: float) -> Callable[[], Sample]:
    def once() -> Sample:
        with lab.ordered(jobs, **how) as order:
            sample = lab.run(side, order)
            if left := lab.waiting(order):
                raise Void(f"{left} jobs are left")
            return sample

    return once
