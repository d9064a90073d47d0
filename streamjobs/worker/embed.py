"""A worker inside another program: it works while a block of its code runs."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from streamjobs.protocol.workers import STOP
from streamjobs.worker.worker import Worker

log = logging.getLogger("streamjobs.worker")


@asynccontextmanager
async def running(worker: Worker) -> AsyncIterator[Worker]:
    """Run a worker beside other code: it works while the block runs and is stopped at its end.

    Raises:
        whatever ended the worker before.
    """

    def tell(ended: "asyncio.Task[bool]") -> None:
        _tell_of_an_early_end(worker, ended)

    task = asyncio.create_task(worker.run(), name="streamjobs-worker")
    ready = asyncio.create_task(worker.ready.wait())
    try:
        await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            # It has ended before it was ready: raises why.
            task.result()
        task.add_done_callback(tell)
        yield worker
    except asyncio.CancelledError:
        worker.abort()
        raise
    finally:
        ready.cancel()
        task.remove_done_callback(tell)
        worker.stop()
        await task


def _tell_of_an_early_end(worker: Worker, task: "asyncio.Task[bool]") -> None:
    """Log that a worker ended beside code that goes on; the block's end raises it only then."""
    error = None if task.cancelled() else task.exception()
    if error is None and worker.ordered == STOP:
        log.info("worker %s has ended, as it was ordered; what runs beside it goes on", worker.consumer)
    else:
        log.error("the worker has ended before it was stopped: %r", error)
