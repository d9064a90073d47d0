"""Scenario `latency`: from the enqueue of a job to the start of its handler, at a fixed rate of arrivals.

The loop is open: jobs are sent when they are due, whether those before have been answered or not. A job
counts from its call; from when it was due if its producer was late by more than a timer may be, so that a
producer that stood still does not hide what it missed. Producer and worker are two processes on this
machine, whose clock both read.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from time import perf_counter
from typing import Any

import msgspec
from redis.asyncio import Redis

from streamjobs import StreamJobs, WorkerOptions
from streamjobs.protocol.keys import QueueKeys

from .bare import Coalescer, read
from .document import Result
from .duel import Size, Void
from .jobs import KIND, QUEUE, TEXT
from .lab import Lab
from .measure import Meter, Order, Sample, lateness
from .trial import trials
from .work import CONCURRENCY

RATES = (100, 1000)
TIMER_S = 0.002
"""How late a timer of the event loop may be."""
WARM = 50
"""The first jobs, which count for nothing."""
PROBE_JOBS = 20_000
SENDERS = 100
Send = Callable[[float], Awaitable[object]]


class Stamped(msgspec.Struct):
    """The arguments: when the job counts from, and text up to 100 bytes."""

    at: float
    text: str


def produce(order: Order) -> Sample:
    """Send at `rate` a second."""
    return asyncio.run(_produce(order))


async def _produce(order: Order) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)

    @app.job(name=KIND, queue=QUEUE)
    async def stamped(at: float, text: str) -> None: ...

    await stamped.options(queue="warm").enqueue(0.0, TEXT)
    sample = await _open_loop(order, lambda at: stamped.enqueue(at, TEXT))
    await app.aclose()
    return sample


def produce_bare(order: Order) -> Sample:
    """Send the same without anything of ours."""
    return asyncio.run(_produce_bare(order))


async def _produce_bare(order: Order) -> Sample:
    client = Redis.from_url(order.url, protocol=2)
    sender = Coalescer(client, QueueKeys(order.namespace, QUEUE).stream)
    encode = msgspec.json.encode
    sample = await _open_loop(order, lambda at: sender.add(encode(Stamped(at, TEXT))))
    await client.aclose()
    return sample


async def _open_loop(order: Order, send: Send) -> Sample:
    rate, meter = order.how["rate"], Meter(order.url)
    if not rate:
        return await _as_fast_as_can_be(order, send, meter)
    under_way: set[asyncio.Future[object]] = set()
    late = 0.0
    meter.start()
    begun = perf_counter()
    for number in range(order.jobs):
        due = begun + number / rate
        while (now := perf_counter()) < due:
            await asyncio.sleep(due - now)
        late = max(late, now - due)
        sending = asyncio.ensure_future(send(now if now - due < TIMER_S else due))
        under_way.add(sending)
        sending.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)
    sample = meter.stop(order.jobs)
    return msgspec.structs.replace(sample, figures={"ms that the producer was late, max": 1000 * late})


async def _as_fast_as_can_be(order: Order, send: Send, meter: Meter) -> Sample:
    async def sender(first: int) -> None:
        for _ in range(first, order.jobs, SENDERS):
            await send(perf_counter())

    meter.start()
    await asyncio.gather(*map(sender, range(SENDERS)))
    return meter.stop(order.jobs)


def start(order: Order) -> Sample:
    """Note when each job starts."""
    return asyncio.run(_start(order))


async def _start(order: Order) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)
    found: list[float] = []
    ended = asyncio.Event()

    @app.job(name=KIND, queue=QUEUE)
    async def stamped(at: float, text: str) -> None:
        found.append(perf_counter() - at)
        if len(found) == order.jobs:
            ended.set()

    meter = Meter(order.url)
    meter.start()
    async with app.worker([QUEUE], WorkerOptions(concurrency=CONCURRENCY)):
        await ended.wait()
        sample = meter.stop(order.jobs)
    await app.aclose()
    return _figures(sample, found)


def start_bare(order: Order) -> Sample:
    """Note the same in a loop of reads."""
    return asyncio.run(_start_bare(order))


async def _start_bare(order: Order) -> Sample:
    client, key = Redis.from_url(order.url, protocol=2), QueueKeys(order.namespace, QUEUE).stream
    decode, meter = msgspec.json.Decoder(Stamped).decode, Meter(order.url)
    found: list[float] = []

    async def handler(at: float) -> None:
        found.append(perf_counter() - at)

    meter.start()
    async for entries in read(client, key):
        for _, fields in entries:
            await handler(decode(fields[b"body"]).at)
        if entries:
            settled: Any = client.pipeline(transaction=False)
            settled.xack(key, "workers", *(entry for entry, _ in entries))
            settled.xdel(key, *(entry for entry, _ in entries))
            await settled.execute()
        if len(found) >= order.jobs:
            break
    sample = meter.stop(len(found))
    await client.aclose()
    return _figures(sample, found)


def _figures(sample: Sample, found: list[float]) -> Sample:
    counted = found[min(WARM, len(found) // 2) :]
    return msgspec.structs.replace(sample, figures=lateness(counted, "from enqueue to start"))


SIDES = {
    "latency_produce": produce,
    "latency_produce_bare": produce_bare,
    "latency_start": start,
    "latency_start_bare": start_bare,
}


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield what each rate gives, ours and bare."""
    seconds = 2.0 if size.quick else 10.0
    for rate in RATES:
        yield from _at(lab, size, str(rate), rate, seconds)
    found = list(trials("latency", {"most": lambda: _once(lab, "", 0, PROBE_JOBS)}, 1))
    if (most := found[0].jobs_per_s) is None:
        yield from found
        return
    yield from _at(lab, size, "half_of_most", most.median / 2, seconds)


def _at(lab: Lab, size: Size, name: str, rate: float, seconds: float) -> Iterator[Result]:
    # Of less than a thousand p99.9 is the latest of all.
    jobs = min(size.jobs, max(int(rate * seconds), WARM * 4))
    yield from trials("latency", {
        f"{name}": lambda: _once(lab, "", rate, jobs),
        f"{name}_bare": lambda: _once(lab, "_bare", rate, jobs),
    }, size.repeats)  # fmt: skip


def _once(lab: Lab, which: str, rate: float, jobs: int) -> Sample:
    with lab.ordered(jobs, rate=rate) as order:
        sent, started = lab.run_together((f"latency_produce{which}", order), (f"latency_start{which}", order))
        if started.jobs != jobs or lab.waiting(order):
            raise Void(f"{started.jobs} of {jobs} jobs started, {lab.waiting(order)} are left")
        figures = {**started.figures, **sent.figures}
        return msgspec.structs.replace(started, client_s=sent.client_s + started.client_s, figures=figures)
