"""Scenario `memory`: what jobs take on the server, and what processes take that see many.

`waiting`, `running`, `scheduled`, `dead`: bytes per job, with bodies of 100 bytes and of 1 KiB. `held`: what
each of the few long jobs takes whose neighbours have all been drained. `processes`: how much a producer and a
worker grow over two million jobs.
"""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import redis

from streamjobs import Permanent, StreamJobs
from streamjobs.protocol.keys import GROUP, QueueKeys

from .document import Result
from .duel import Size, Void
from .jobs import FIRST, KIND, QUEUE, TEXT, countdown
from .lab import Lab
from .measure import Meter, Order, Sample
from .trial import trials
from .work import CONCURRENCY, drained, keep_quiet

JOBS = 20_000
LONG_ONE_IN = 100
BODIES = {"100 B": len(TEXT), "1 KiB": 1024 - 100 + len(TEXT)}
STATES = ("waiting", "running", "scheduled", "dead")
FAR_S = 86_400.0
MANY = 2_000_000
PORTION = 20_000
PAGE = 4096


def add(order: Order) -> Sample:
    """Add jobs with a text of `text` characters, due in `delay` seconds."""
    return asyncio.run(_add(order))


async def _add(order: Order) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)
    noop = app.job(name=KIND, queue=QUEUE)(countdown(order.jobs)[0])
    kind, text = noop.options(delay=order.how["delay"] or None), "x" * int(order.how["text"])
    await app.enqueue_many(kind.call(FIRST + number, text) for number in range(order.jobs))
    await app.aclose()
    return Sample(order.jobs, 1.0, 0.0, 0.0)


def die(order: Order) -> Sample:
    """Let all jobs die."""
    return asyncio.run(_die(order))


async def _die(order: Order) -> Sample:
    keep_quiet()
    app = StreamJobs(order.url, namespace=order.namespace)
    left, ended = order.jobs, asyncio.Event()

    @app.job(name=KIND, queue=QUEUE)
    async def fail(number: int, text: str) -> None:
        nonlocal left
        left -= 1
        if not left:
            ended.set()
        raise Permanent("meant")

    async with app.worker([QUEUE], concurrency=CONCURRENCY):
        await ended.wait()
    await app.aclose()
    return Sample(order.jobs, 1.0, 0.0, 0.0)


def produce(order: Order) -> Sample:
    """Add jobs portion by portion, never far ahead of those who drain; say how much this process grew."""
    return asyncio.run(_produce(order))


async def _produce(order: Order) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)
    noop = app.job(name=KIND, queue=QUEUE)(countdown(order.jobs)[0])
    growth, meter = Growth(order.jobs), Meter(order.url)
    server, stream = redis.Redis.from_url(order.url, protocol=2), QueueKeys(order.namespace, QUEUE).stream
    meter.start()
    for first in range(0, order.jobs, PORTION):
        await app.enqueue_many(noop.call(FIRST + number, TEXT) for number in range(first, first + PORTION))
        growth.note(first + PORTION)
        while int(server.xlen(stream)) > PORTION:
            await asyncio.sleep(0.01)
    sample = meter.stop(order.jobs)
    server.close()
    await app.aclose()
    return msgspec.structs.replace(sample, figures=growth.figures("producer"))


def work(order: Order) -> Sample:
    """Drain jobs as they come; say how much this process grew."""
    return asyncio.run(_work(order))


async def _work(order: Order) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)
    growth, ran = Growth(order.jobs), 0

    @app.job(name=KIND, queue=QUEUE)
    async def noop(number: int, text: str) -> None:
        nonlocal ran
        ran += 1
        if ran % PORTION == 0:
            growth.note(ran)

    sample = await drained(app, order)
    return msgspec.structs.replace(sample, figures=growth.figures("worker"))


class Growth:
    """The resident memory of this process, from when a tenth of the jobs are done to the end."""

    def __init__(self, jobs: int) -> None:
        self._warm = jobs // 10
        self._found: list[int] = []

    def note(self, done: int) -> None:
        """Look, if the warm-up is over."""
        if done >= self._warm:
            self._found.append(int(Path("/proc/self/statm").read_text("ascii").split()[1]) * PAGE)

    def figures(self, whose: str) -> dict[str, float]:
        """Return the growth of the greatest over the first, and the last in MB."""
        if not self._found:
            return {}
        first, last, most = self._found[0], self._found[-1], max(self._found)
        return {f"MB of the {whose} at the end": last / 1e6, f"% the {whose} grew": 100 * (most / first - 1)}


SIDES = {"memory_add": add, "memory_die": die, "memory_produce": produce, "memory_work": work}


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield the results."""
    jobs = min(JOBS, size.jobs)
    repeats = 1 if size.quick else size.repeats
    variants: dict[str, Callable[[], Sample]] = {state: partial(_state, lab, state, jobs) for state in STATES}
    yield from trials("memory", {**variants, "held": partial(_held, lab, jobs)}, repeats)
    many = min(MANY, 3 * size.jobs if size.quick else 10 * size.jobs) // PORTION * PORTION
    yield from trials("memory", {"processes": partial(_processes, lab, max(many, PORTION))}, 1)


def _state(lab: Lab, state: str, jobs: int) -> Sample:
    figures = {}
    for name, text in BODIES.items():
        with lab.ordered(jobs, text=text, delay=FAR_S if state == "scheduled" else 0.0) as order:
            before = lab.used_memory()
            lab.run("memory_add", order)
            if state == "running":
                _claim(lab, order)
            elif state == "dead":
                lab.run("memory_die", order)
                if lab.waiting(order):
                    raise Void("not all jobs died")
            figures[f"bytes a job, body of {name}"] = (lab.used_memory() - before) / jobs
    return Sample(0, 1.0, 0.0, 0.0, figures)


def _claim(lab: Lab, order: Order) -> list[str]:
    stream = QueueKeys(order.namespace, QUEUE).stream
    lab.server.xgroup_create(stream, GROUP, "0")
    found: list[str] = []
    while reply := _read(lab, stream):
        found += [entry for entry, _ in reply[0][1]]
    return found


def _read(lab: Lab, stream: str) -> Any:
    return lab.server.xreadgroup(GROUP, "holder", {stream: ">"}, count=1000)


def _held(lab: Lab, jobs: int) -> Sample:
    with lab.ordered(jobs, text=BODIES["100 B"], delay=0.0) as order:
        before = lab.used_memory()
        lab.run("memory_add", order)
        entries = _claim(lab, order)
        stream = QueueKeys(order.namespace, QUEUE).stream
        for number, entry in enumerate(entries):
            if number % LONG_ONE_IN:
                lab.server.xack(stream, GROUP, entry)
                lab.server.xdel(stream, entry)
        left = len(entries[::LONG_ONE_IN])
        bytes_a_job = (lab.used_memory() - before) / left
        return Sample(0, 1.0, 0.0, 0.0, {f"bytes a job left of {LONG_ONE_IN}": bytes_a_job})


def _processes(lab: Lab, jobs: int) -> Sample:
    with lab.ordered(jobs) as order:
        sent, done = lab.run_together(("memory_produce", order), ("memory_work", order))
        return msgspec.structs.replace(done, figures={**sent.figures, **done.figures})
