"""Ask the server of a claim for as long as it takes, and make the group again where that is what is missing."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from streamjobs.client.aio import AsyncExecutor
from streamjobs.core.errors import OutcomeUnknown, StreamJobsError, Unavailable
from streamjobs.protocol import leases
from streamjobs.protocol.calls import Call
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.service import HEALABLE, Backoff
from streamjobs.worker.station import Station

T = TypeVar("T")


async def heal(executor: AsyncExecutor, queue: WorkerQueue, error: StreamJobsError) -> None:
    """Make a queue's group again if an error says that it is gone. Never an error itself: who asks tries again.

    Who waits for an answer before it frees a slot must do so itself: claims of its kind may hold all slots, and
    then nobody reads, who would find that out too.
    """
    if isinstance(error, Unavailable) and error.word == "NOGROUP":
        await executor.run_all([leases.join(queue.keys, queue.lease_ms, again=True)])


async def insist(
    station: Station,
    queue: WorkerQueue,
    call: Call[T],
    *,
    stopping: Callable[[], bool],
    unsure: Callable[[], None] = lambda: None,
) -> T:
    """Make a call, one that may be sent twice, in as many tries as it takes.

    Args:
        station: whose call it is.
        queue: the queue that it is about.
        call: the call.
        stopping: whether to give up now, with the last error.
        unsure: called when a try may have been executed, and nobody knows.

    Raises:
        StreamJobsError: the server refuses for good; or the last error, when it was time to give up.
    """
    backoff = Backoff(station.random)
    while True:
        try:
            return await station.executor.run(call)
        except HEALABLE as error:
            if isinstance(error, OutcomeUnknown):
                unsure()
            if stopping():
                raise
            await heal(station.executor, queue, error)
        await asyncio.sleep(backoff.pause_s())
