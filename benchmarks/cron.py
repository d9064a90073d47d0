"""Scenario `cron`: what schedules cost their workers and the server, and how punctual they are.

`slots`: what a worker computes at each slot of one schedule. `calls`: how long the two scripts hold the server, by the
number of crons of a queue. `idle`: what three workers with a hundred crons send while none is due. `every_1` and
`every_1_x100`: three workers with one cron for each second, and with a hundred; how long after its slot each job is
there, by the server's clock. Their queue is paused: the jobs lie where they were put, and tell when that was.
"""

import asyncio
import math
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import islice
from statistics import median
from time import process_time
from typing import Any

import redis

from streamjobs import StreamJobs, WorkerOptions
from streamjobs.client import Connections
from streamjobs.core.codec import decode_meta
from streamjobs.core.cron import Cron, Due, Every, Schedule, Turn, parse_schedule
from streamjobs.core.job import Job, enqueued_ms
from streamjobs.protocol import crons, scripts, upkeep
from streamjobs.protocol.keys import QueueKeys

from .document import Result
from .duel import QUICK, Size, Void
from .jobs import KIND, QUEUE
from .lab import Lab, SideFailed
from .measure import Meter, Order, Sample, Spread

BEGIN_MS = 1_767_225_600_000
"""The year 2026."""
SCHEDULES = (
    "every 1",
    "* * * * * UTC",
    "*/15 6-18 * * 1-5 Europe/Berlin",
    "30 2 * * * Europe/Berlin",
    "0 9 1 * * America/New_York",
)
SLOTS = 100
CRONS = (1, 100, 1000)
MANY = 100
WORKERS = 3
PLANS = 10
SECONDS, QUICK_SECONDS = 30, 10


def _schedule(order: Order, count: int, seconds: float) -> Sample:
    """Work for as many seconds as the order has jobs, with so many crons of one interval."""
    return asyncio.run(_work(order, count, seconds))


async def _work(order: Order, count: int, seconds: float) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)

    @app.job(name=KIND, queue=QUEUE)
    async def noop() -> None: ...

    for number in range(count):
        app.every(seconds, name=f"cron-{number}")(noop)
    meter = Meter(order.url)
    meter.start()
    async with app.worker([QUEUE], WorkerOptions()):
        await asyncio.sleep(order.jobs)
        sample = meter.stop(order.jobs)
    await app.aclose()
    return sample


SIDES: dict[str, Callable[[Order], Sample]] = {
    "cron_idle": partial(_schedule, count=MANY, seconds=366 * 86_400),
    "cron_one": partial(_schedule, count=1, seconds=1),
    "cron_many": partial(_schedule, count=MANY, seconds=1),
}


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield the results."""
    quick = size.repeats <= QUICK.repeats
    seconds = QUICK_SECONDS if quick else SECONDS
    measures: list[tuple[str, Callable[[], Result]]] = [
        ("slots", lambda: slots(size.repeats)),
        ("calls", lambda: calls(lab, size.repeats)),
        ("idle", lambda: idle(lab, seconds)),
        ("every_1", lambda: every(lab, "every_1", "cron_one", seconds)),
        ("every_1_x100", lambda: every(lab, "every_1_x100", "cron_many", seconds)),
    ]
    for variant, measure in measures:
        print(f"cron {variant}", file=sys.stderr, flush=True)
        try:
            yield measure()
        except (Void, SideFailed) as error:
            yield Result(scenario="cron", variant=variant, repeats=size.repeats, jobs=0, void=str(error))


def slots(repeats: int) -> Result:
    """Return the CPU time in which a worker decides on a slot and finds the next one, for each schedule."""
    figures = {
        f"µs at a slot of {text}": Spread.of((_slot_us(parse_schedule(text)) for _ in range(repeats)), 1)
        for text in SCHEDULES
    }
    return _result("slots", SLOTS, repeats, figures)


def _slot_us(schedule: Schedule) -> float:
    cron = Cron("bench", Job(KIND, b"{}", QUEUE), schedule)
    after_ms = BEGIN_MS
    due = list(islice(parse_schedule(schedule.text).after(BEGIN_MS), SLOTS))
    begun = process_time()
    for slot_ms in due:
        turn = cron.turn(after_ms, slot_ms)
        if [one.slot_ms for one in turn.runs] != [slot_ms]:
            raise Void(f"{schedule.text}: {turn} at {slot_ms}")
        after_ms = slot_ms
    return (process_time() - begun) / len(due) * 1e6


def calls(lab: Lab, repeats: int) -> Result:
    """Return how long the server is at a plan, which is all crons of a queue, and at a tick, which is one."""
    figures: dict[str, Spread] = {}
    for count in CRONS:
        rounds = [_calls_once(lab, count) for _ in range(repeats)]
        figures[f"µs of the server to plan {count:,}"] = Spread.of((plan for plan, _ in rounds), 1)
        figures[f"µs of the server for a tick, one of {count:,}"] = Spread.of((tick for _, tick in rounds), 1)
    return _result("calls", CRONS[-1], repeats, figures)


def _calls_once(lab: Lab, count: int) -> tuple[float, float]:
    order = lab.order(count)
    keys, due = QueueKeys(order.namespace, QUEUE), Due(BEGIN_MS + 1000, BEGIN_MS + 1000)
    known = [Cron(f"cron-{number}", Job(KIND, b"{}", QUEUE), Every(1)) for number in range(count)]
    clock, turn = str(due.at_ms), Turn((due,), 0, 0, 0)
    connections = Connections(order.url)
    executor, server = connections.sync(), redis.Redis.from_url(order.url, protocol=2)
    try:
        executor.run(crons.plan(keys, "warm", "1", known, str(BEGIN_MS)))
        begun = _script_us(server)
        for number in range(PLANS):
            executor.run(crons.plan(keys, f"worker-{number}", "1", known, str(BEGIN_MS)))
        planned = _script_us(server)
        done = [executor.run(crons.tick(keys, cron, 0, turn, clock)) for cron in known]
        ticked = _script_us(server)
        if any(one.word != "OK" for one in done):
            raise Void("a slot was refused")
        return (planned - begun) / PLANS, (ticked - planned) / count
    finally:
        server.close()
        connections.close()
        lab.wipe(order)


def _script_us(server: redis.Redis) -> float:
    return float(server.info("commandstats")["cmdstat_evalsha"]["usec"])


def idle(lab: Lab, seconds: int) -> Result:
    """Return how many requests three workers send in a minute in which no cron is due."""
    order = lab.order(seconds)
    try:
        with watching(order) as seen:
            _work_together(lab, "cron_idle", order)
        return judge_idle(seen)
    finally:
        lab.wipe(order)


@contextmanager
def watching(order: Order) -> Iterator[list[tuple[float, str]]]:
    """Fill a list with when each request for the order's namespace came, and the script that it calls, else ""."""
    names = {scripts.load(name).sha: name for name in scripts.names()}
    server, end = redis.Redis.from_url(order.url, protocol=2), secrets.token_hex(8)
    seen: list[tuple[float, str]] = []

    def listen(monitor: Any) -> None:
        for one in monitor.listen():
            words = one["command"].split(" ", 2)
            if end in words:
                return
            if one["client_type"] != "lua" and order.namespace in one["command"]:
                seen.append((float(one["time"]), names.get(words[1], "")))

    watch: Any = server.monitor
    with watch() as monitor, ThreadPoolExecutor(1) as pool:
        listening = pool.submit(listen, monitor)
        try:
            yield seen
        finally:
            server.echo(end)
            listening.result()
    server.close()


def judge_idle(seen: Sequence[tuple[float, str]]) -> Result:
    """Return the result of what was seen from the last worker's plan to the first one's end."""
    plans = [when for when, name in seen if name == "plan"]
    ends = [when for when, name in seen if name == "retire"]
    if len(plans) < WORKERS or not ends or ends[0] <= plans[WORKERS - 1]:
        raise Void("the workers were not there together")
    begin, end = plans[WORKERS - 1], ends[0]
    between = Counter(name for when, name in seen if begin < when < end)
    per_minute = 60 / (end - begin)
    return _result("idle", 0, 1, {
        "requests a minute for crons": _one((between["plan"] + between["tick"]) * per_minute),
        "requests a minute of the three workers in all": _one(between.total() * per_minute),
    })  # fmt: skip


def every(lab: Lab, variant: str, side: str, seconds: int) -> Result:
    """Return how long after its slot each job of crons of a second is there."""
    order = lab.order(seconds)
    keys, connections = QueueKeys(order.namespace, QUEUE), Connections(order.url)
    server = redis.Redis.from_url(order.url, protocol=2)
    try:
        connections.sync().run(upkeep.pause(keys))
        _work_together(lab, side, order)
        late_ms = lateness_ms(server.xrange(keys.stream) or ())
        return _result(variant, len(late_ms), 1, {
            "ms from a slot to its job, median": _one(median(late_ms)),
            "ms, 99 of 100": _one(late_ms[math.ceil(0.99 * len(late_ms)) - 1]),
            "ms, the longest": _one(late_ms[-1]),
        })  # fmt: skip
    finally:
        server.close()
        connections.close()
        lab.wipe(order)


def lateness_ms(entries: Iterable[Any]) -> list[int]:
    """Return how long after its slot each entry was made, sorted.

    Raises:
        Void: there is none, one came early, or a slot of a cron is missing or there twice.
    """
    late_ms: list[int] = []
    slots_s: dict[str, list[int]] = {}
    for entry, fields in entries:
        headers = decode_meta(fields[b"meta"]).headers or {}
        slot_s = round(datetime.fromisoformat(headers["cron-slot"]).timestamp())
        slots_s.setdefault(headers["cron"], []).append(slot_s)
        late_ms.append(enqueued_ms(entry.decode()) - slot_s * 1000)
    if not late_ms:
        raise Void("no slot came")
    if min(late_ms) < 0:
        raise Void(f"a job came {-min(late_ms)} ms before its slot")
    for name, found in slots_s.items():
        if found != list(range(found[0], found[-1] + 1)):
            raise Void(f"{name}: not every slot once: {found}")
    return sorted(late_ms)


def _work_together(lab: Lab, side: str, order: Order) -> None:
    lab.run_together(*[(side, order)] * WORKERS)


def _one(value: float) -> Spread:
    return Spread.of([value], 1)


def _result(variant: str, jobs: int, repeats: int, figures: dict[str, Spread]) -> Result:
    return Result(scenario="cron", variant=variant, jobs=jobs, repeats=repeats, figures=figures)
