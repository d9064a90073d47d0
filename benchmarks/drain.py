"""Scenario `drain`: one worker, as `streamjobs worker` builds it, empties a full queue.

No-op async jobs at concurrency 100, defaults otherwise. The clock runs from the start of the
worker, its connections included, until the server has counted the last job done.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import redis

from streamjobs import StreamJobs, WorkerOptions
from streamjobs.protocol.keys import QueueKeys
from streamjobs.worker.process import run_until_signalled

from . import bare
from .document import Result
from .duel import Cycle, Duel, Size, fight
from .jobs import KIND, QUEUE, countdown
from .lab import Lab
from .measure import Meter, Order, Sample

CONCURRENCY = 100
BARE_LIMIT_US = 3.5
LAST_WRITE_S = 5.0
"""How long after the last handler its jobs may take to be counted; then the count is as wrong as it is."""


def worker(order: Order) -> Sample:
    """Drain by our worker; the sample counts what the server's totals say is done after its stop."""
    return asyncio.run(_worker(order))


async def _worker(order: Order) -> Sample:
    app = StreamJobs(order.url, namespace=order.namespace)
    noop, ended = countdown(order.jobs)
    app.job(name=KIND, queue=QUEUE)(noop)
    meter, done = Meter(order.url), Done(order)
    meter.start()
    worker = app.make_worker([QUEUE], WorkerOptions(concurrency=CONCURRENCY))
    running = asyncio.create_task(run_until_signalled(worker))
    await asyncio.wait({running, asyncio.create_task(ended.wait())}, return_when=asyncio.FIRST_COMPLETED)
    with suppress(TimeoutError):
        async with asyncio.timeout(LAST_WRITE_S):
            while done.count() < order.jobs:
                await asyncio.sleep(0.001)
    sample = meter.stop(order.jobs)
    worker.stop()
    await running
    await app.aclose()
    return Sample(done.count(), sample.seconds, sample.client_s, sample.server_s)


class Done:
    """The server's own count of finished jobs."""

    def __init__(self, order: Order) -> None:
        self._client = redis.Redis.from_url(order.url, protocol=2)
        self._key = QueueKeys(order.namespace, QUEUE).totals

    def count(self) -> int:
        """Return how many jobs are done."""
        return int(self._client.hget(self._key, "done") or 0)


SIDES = {"worker": worker, "bare_drain": bare.drain}


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield the result of the one variant."""
    duel = Duel(
        scenario="drain",
        variant="async_noop",
        ours=Cycle("enqueue_many", "worker"),
        bare=Cycle("enqueue_many", "bare_drain"),
        measured="drained",
        bare_limit_us=BARE_LIMIT_US,
    )
    yield fight(lab, duel, size)
