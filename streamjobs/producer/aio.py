"""The producer for asyncio: concurrent callers share calls, without a timer and without tuning."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from typing import Generic, TypeAlias, TypeVar

from streamjobs.client.aio import AsyncExecutor
from streamjobs.client.talk import atalk
from streamjobs.core import tracing
from streamjobs.core.errors import StreamJobsError
from streamjobs.core.job import Job
from streamjobs.producer.batching import Lane, Shipment
from streamjobs.producer.cargo import Cargo
from streamjobs.producer.sending import Sender
from streamjobs.producer.spans import SendSpan

H = TypeVar("H")

UnderWay: TypeAlias = deque[tuple[Lane, Shipment, asyncio.Task[None]]]

AHEAD = 2
"""Shipments of a bulk under way at once: one is encoded while the other is at the server."""

_log = logging.getLogger("streamjobs.producer")


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
        return self._sender.result(lane, shipment, 0)

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
        under_way: UnderWay = deque()
        try:
            try:
                await self._load(cargo, under_way)
            except Exception:
                # What its iterable gave before it failed is sent all the same.
                await self._unload(cargo, under_way)
                raise
            await self._unload(cargo, under_way)
        finally:
            # Who cancels does not wait for answers, and what waits for room must not go in later.
            for *_, shipping in under_way:
                shipping.cancel()
            await asyncio.gather(*(shipping for *_, shipping in under_way), return_exceptions=True)
        return cargo.results

    async def _load(self, cargo: Cargo[H], under_way: UnderWay) -> None:
        for lane, shipment in cargo.shipments():
            under_way.append((lane, shipment, asyncio.ensure_future(self._ship(lane, shipment))))
            # The sender gets its turn here, so that the server works while the next part is encoded.
            await asyncio.sleep(0)
            await self._unload(cargo, under_way, AHEAD)

    async def _unload(self, cargo: Cargo[H], under_way: UnderWay, ahead: int = 0) -> None:
        """Wait until no more than so many shipments are under way; they end in their order."""
        while len(under_way) > ahead:
            lane, shipment, shipping = under_way[0]
            await shipping
            under_way.popleft()
            cargo.unload(lane, shipment)

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
        except BaseException as error:
            # Whatever it is, nobody may be left waiting.
            lane.give_up(error)
            if not isinstance(error, Exception):
                raise
            _log.exception("sending to %s failed", lane.keys.queue)
        finally:
            del self._tasks[lane]
