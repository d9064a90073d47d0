"""Scenario `stats`: what a look at a queue costs with two million jobs waiting, beside one at an empty queue.

Both are looked at in turn, by the conversation behind `streamjobs stats`. With other requests for the one than for the
other the result is void: the cost must not depend on what a queue holds.
"""

import sys
from collections.abc import Iterator
from contextlib import closing
from statistics import median
from time import perf_counter

from streamjobs.client import Connections
from streamjobs.client.sync import SyncExecutor
from streamjobs.client.talk import Pause, Talk
from streamjobs.core.job import Job
from streamjobs.operate.overview import Overview, overview
from streamjobs.protocol import intake, leases
from streamjobs.protocol.calls import Call
from streamjobs.protocol.keys import QueueKeys

from .document import Result
from .duel import QUICK, Size, Void
from .jobs import KIND, QUEUE, body
from .lab import Lab, SideFailed
from .measure import Meter, Order, Sample, Spread

WAITING = 2_000_000
QUICK_WAITING = 200_000
LOOKS = 40
"""Looks at each in one repeat."""
BATCH = 500
CALLS = 20
"""Batches in one round trip."""


def fill(order: Order) -> Sample:
    """Add jobs as fast as the script takes them."""
    keys, number, meter = QueueKeys(order.namespace, QUEUE), 0, Meter(order.url)
    with closing(Connections(order.url)) as connections:
        server = connections.sync()
        server.run(intake.announce(order.namespace, [QUEUE]))
        server.run(leases.join(keys, 15_000))
        meter.start()
        calls: list[Call[intake.Accepted]] = []
        for first in range(0, order.jobs, BATCH):
            jobs = [Job(KIND, body(n), QUEUE) for n in range(first, min(first + BATCH, order.jobs))]
            number += 1
            calls.append(intake.enqueue(keys, jobs, intake.Batch("bench", number, "ab")))
            if len(calls) == CALLS:
                _send(server, calls)
        _send(server, calls)
        return meter.stop(order.jobs)


def _send(server: SyncExecutor, calls: "list[Call[intake.Accepted]]") -> None:
    for reply in server.run_all(calls):
        if isinstance(reply, Exception):
            raise reply
    calls.clear()


SIDES = {"fill": fill}


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield the one result."""
    jobs = QUICK_WAITING if size.repeats <= QUICK.repeats else WAITING
    full, empty = lab.order(jobs), lab.order(0)
    try:
        print(f"stats: adding {jobs:,} jobs", file=sys.stderr)
        lab.run("fill", full)
        lab.run("fill", empty)
        with closing(Connections(lab.url)) as connections:
            yield _compare(connections.sync(), full, empty, size.repeats)
    except (Void, SideFailed) as error:
        yield Result(scenario="stats", variant="waiting", jobs=jobs, repeats=size.repeats, void=str(error))
    finally:
        lab.wipe(full)
        lab.wipe(empty)


def _compare(server: SyncExecutor, full: Order, empty: Order, repeats: int) -> Result:
    times: dict[str, list[float]] = {full.namespace: [], empty.namespace: []}
    requests: set[int] = set()
    ratios = []
    for repeat in range(repeats):
        for _ in range(LOOKS):
            for order in (full, empty) if repeat % 2 else (empty, full):
                begun = perf_counter()
                requests.add(_look(server, order))
                times[order.namespace].append(1000 * (perf_counter() - begun))
        # Pair by pair: a slow moment of the machine hits both, or one pair among many.
        pairs = zip(times[full.namespace][-LOOKS:], times[empty.namespace][-LOOKS:], strict=True)
        ratios.append(median(mine / base for mine, base in pairs))
        print(f"stats {repeat + 1}/{repeats}: {ratios[-1]:.2f} of the time at an empty queue", file=sys.stderr)
    if len(requests) > 1:
        raise Void(f"some looks took {min(requests)} requests, and some {max(requests)}")
    return Result(
        scenario="stats",
        variant="waiting",
        jobs=full.jobs,
        repeats=repeats,
        figures={
            "of its time at an empty queue": Spread.of(ratios, 3),
            "ms a look with jobs waiting": Spread.of(times[full.namespace], 3),
            "ms a look at an empty queue": Spread.of(times[empty.namespace], 3),
            "requests a look, with and without": Spread.of(requests, 0),
        },
    )


def _look(server: SyncExecutor, order: Order) -> int:
    """Look once; return how many requests it took.

    Raises:
        Void: what was seen is not what is there.
    """
    conversation: Talk[Overview] = overview(order.namespace, [QUEUE])
    sent = 0
    try:
        step = next(conversation)
        while True:
            assert not isinstance(step, Pause)
            sent += len(step)
            step = conversation.send(server.run_all(step))
    except StopIteration as end:
        seen: Overview = end.value
    if (found := seen.queues[0].stats.waiting) != order.jobs:
        raise Void(f"stats saw {found:,} jobs waiting, there are {order.jobs:,}")
    return sent
