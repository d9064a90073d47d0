"""Our worker as `streamjobs worker` builds it, measured until the server has counted the last job done."""

import asyncio
import logging
from contextlib import suppress

import msgspec
import redis

from streamjobs import StreamJobs, WorkerOptions
from streamjobs.protocol.keys import QueueKeys
from streamjobs.worker.process import run_until_signalled

from .jobs import QUEUE
from .measure import Meter, Order, Sample

CONCURRENCY = 100
LAST_WRITE_S = 5.0
"""How long after the last handler its jobs may take to be counted; then the count is as wrong as it is."""


class Done:
    """The server's own count of finished jobs."""

    def __init__(self, order: Order) -> None:
        self._client = redis.Redis.from_url(order.url, protocol=2)
        self._key = QueueKeys(order.namespace, QUEUE).totals

    def count(self) -> int:
        """Return how many jobs are done."""
        return int(self._client.hget(self._key, "done") or 0)

    def close(self) -> None:
        """Give up the connection."""
        self._client.close()


def keep_quiet() -> None:
    """Log nothing of jobs that fail: they are meant to, and a line for each would be measured with them."""
    logging.getLogger("streamjobs").setLevel(logging.CRITICAL)


async def drained(
    app: StreamJobs,
    order: Order,
    *,
    ended: asyncio.Event | None = None,
    options: WorkerOptions | None = None,
    before: int = 0,
) -> Sample:
    """Run a worker until `before` and the order's jobs are done; the sample counts what the server's totals say.

    `ended` is set when the last handler has run: until then the server is not asked. Without it, it is asked
    every few milliseconds, which is what several workers on one queue do.
    """
    meter, done, goal = Meter(order.url), Done(order), before + order.jobs
    meter.start()
    worker = app.make_worker([QUEUE], options or WorkerOptions(concurrency=CONCURRENCY))
    running = asyncio.create_task(run_until_signalled(worker))
    if ended is not None:
        await asyncio.wait({running, asyncio.create_task(ended.wait())}, return_when=asyncio.FIRST_COMPLETED)
    with suppress(TimeoutError):
        async with asyncio.timeout(None if ended is None else LAST_WRITE_S):
            while done.count() < goal and not running.done():
                await asyncio.sleep(0.005 if ended is None else 0.001)
    sample = meter.stop(order.jobs)
    worker.stop()
    await running
    await app.aclose()
    counted = done.count() - before
    done.close()
    return msgspec.structs.replace(sample, jobs=counted)
