"""The producer for asyncio: concurrent callers share calls, without a timer and without tuning."""

import asyncio
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Generic, TypeVar

from streamjobs.client.aio import AsyncExecutor
from streamjobs.client.talk import atalk
from streamjobs.core import tracing
from streamjobs.core.errors import StreamJobsError
from streamjobs.core.job import Job
from streamjobs.producer.batching import Lane, Shipment
from streamjobs.producer.cargo import Cargo
from streamjobs.producer.sending import Retry, Sender
from streamjobs.producer.spans import SendSpan

H = TypeVar("H")

AHEAD = 2
"""Shipments of a bulk under way at once: one is encoded while the other is at the server."""


class AsyncProducer(Generic[H]):
    """Sends jobs from one event loop."""

    def __init__(self, executor: AsyncExecutor, sender: Sender[H]) -> None:
        """`sender`: this producer's own; no other may have it."""
        self._executor = executor
        self._sender = sender
        self._tasks: dict[Lane, asyncio.Task[None]] = {}

    async def enqueue(self, job: Job) -> H:
        """Send one job together with whatever else is waiting; return its handle.

        A caller cancelled before its job was sent takes the job back; one cancelled later leaves it.

        Raises:
            NotSent: it was definitely not enqueued before the deadline.
            OutcomeUnknown: it may have been; `await error.retry()` finds out.
            QueueFull: the queue holds its maximum, and did until the deadline if this app waits.
            Rejected: the server refuses it for good.
        """
        if tracer := tracing.tracer():
            with SendSpan(tracer) as span:
                handle = await self._enqueue(span.carry(job))
                span.sent(job, handle)
                return handle
        return await self._enqueue(job)

    async def _enqueue(self, job: Job) -> H:
        lane = self._sender.lane(job)
        shipment = self._sender.shipment([job])
        await self._ship(lane, shipment)
        self._sender.count(shipment)
        return self._sender.result(lane, shipment, 0, self._retry(lane, shipment))

    async def enqueue_many(self, jobs: Iterable[Job]) -> list[H | StreamJobsError]:
        """Send any number of jobs in bounded batches; return a handle or the error of each, in order."""
        if tracer := tracing.tracer():
            with SendSpan(tracer) as span:
                results = await self._enqueue_many(map(span.carry, jobs))
                span.sent_many(results)
                return results
        return await self._enqueue_many(jobs)

    async def _enqueue_many(self, jobs: Iterable[Job]) -> list[H | StreamJobsError]:
        cargo = Cargo(self._sender, jobs)
        under_way: deque[tuple[Lane, Shipment, asyncio.Task[None]]] = deque()
        try:
            for lane, shipment in cargo.shipments():
                under_way.append((lane, shipment, asyncio.ensure_future(self._ship(lane, shipment))))
                # The sender gets its turn here, so that the server works while the next part is encoded.
                await asyncio.sleep(0)
                if len(under_way) > AHEAD:
                    await self._unload(cargo, *under_way.popleft())
        except asyncio.CancelledError:
            # Who cancels does not wait for answers either.
            shippings = [shipping for *_, shipping in under_way]
            under_way.clear()
            for shipping in shippings:
                shipping.cancel()
            await asyncio.gather(*shippings, return_exceptions=True)
            raise
        finally:
            while under_way:
                await self._unload(cargo, *under_way.popleft())
        return cargo.results

    async def _unload(self, cargo: Cargo[H], lane: Lane, shipment: Shipment, shipping: asyncio.Task[None]) -> None:
        await shipping
        cargo.unload(lane, shipment, self._retry(lane, shipment))

    async def _ship(self, lane: Lane, shipment: Shipment) -> None:
        await self._hand_over(lane, shipment)
        rest, tries = shipment, 0
        while self._sender.waits(lane, rest):
            tries += 1
            again = await atalk(self._executor, self._sender.wait_for_room([rest], tries))
            if not again:
                return
            [rest] = again
            await self._hand_over(lane, rest)

    async def _hand_over(self, lane: Lane, shipment: Shipment) -> None:
        arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not arrived.done():
                arrived.set_result(None)

        shipment.wake = wake
        lane.add(shipment)
        if lane not in self._tasks:
            self._tasks[lane] = asyncio.create_task(self._send(lane), name="streamjobs-send")
        try:
            await arrived
        except asyncio.CancelledError:
            shipment.abandoned = True
            raise

    async def _send(self, lane: Lane) -> None:
        try:
            await atalk(self._executor, self._sender.send_waiting(lane))
        finally:
            del self._tasks[lane]

    def _retry(self, lane: Lane, shipment: Shipment) -> Retry:
        # No closure that names itself: in such a cycle the shipment would stay until a collection.
        return partial(self._again, lane, shipment)

    def _again(self, lane: Lane, shipment: Shipment, index: int) -> object:
        return atalk(self._executor, self._sender.again(lane, shipment, index, self._retry(lane, shipment)))
