"""The producer for asyncio: concurrent callers share calls, without a timer and without tuning."""

import asyncio
from collections import deque
from collections.abc import Iterable
from functools import partial
from random import Random
from time import monotonic
from typing import Generic, TypeVar

from streamjobs.client import Connections
from streamjobs.core.errors import StreamJobsError
from streamjobs.core.failpoints import failpoint
from streamjobs.core.job import Job
from streamjobs.producer.batching import Lane, Sending, Shipment
from streamjobs.producer.lanes import Cargo, Lanes, MakeHandle, outcome_error
from streamjobs.protocol import intake

H = TypeVar("H")

AHEAD = 2
"""Shipments of a bulk under way at once: one is encoded while the other is at the server."""


class AsyncProducer(Generic[H]):
    """Sends jobs from one event loop."""

    def __init__(
        self, connections: Connections, namespace: str, make_handle: MakeHandle[H], timeout_s: float
    ) -> None:
        """`timeout_s`: how long a job may wait to be sent, and an answer be awaited."""
        self._executor = connections.aio()
        self._namespace = namespace
        self._timeout_s = timeout_s
        self._lanes = Lanes(namespace, make_handle)
        self._senders: dict[Lane, asyncio.Task[None]] = {}
        self._random = Random()

    async def enqueue(self, job: Job) -> H:
        """Send one job together with whatever else is waiting; return its handle.

        A caller cancelled before its job was sent takes the job back; one cancelled later leaves it.

        Raises:
            NotSent: it was definitely not enqueued before the deadline.
            OutcomeUnknown: it may have been; `await error.retry()` finds out.
            Rejected: the server refuses it for good.
        """
        lane = self._lanes.lane(job)
        shipment = Shipment([job], monotonic() + self._timeout_s)
        await self._ship(lane, shipment)
        if error := outcome_error(shipment, partial(self._again, lane, shipment), 0):
            raise error
        return self._lanes.handle(lane, shipment, 0)

    async def enqueue_many(self, jobs: Iterable[Job]) -> list[H | StreamJobsError]:
        """Send any number of jobs in bounded batches; return a handle or the error of each, in order."""
        cargo = Cargo(self._lanes, jobs, lambda: monotonic() + self._timeout_s)
        under_way: deque[tuple[Lane, Shipment, asyncio.Task[None]]] = deque()
        try:
            for lane, shipment in cargo.shipments():
                under_way.append((lane, shipment, asyncio.ensure_future(self._ship(lane, shipment))))
                # The sender gets its turn here, so that the server works while the next part is encoded.
                await asyncio.sleep(0)
                if len(under_way) > AHEAD:
                    await self._unload(cargo, *under_way.popleft())
        finally:
            while under_way:
                await self._unload(cargo, *under_way.popleft())
        return cargo.results

    async def _unload(
        self, cargo: Cargo[H], lane: Lane, shipment: Shipment, shipping: asyncio.Task[None]
    ) -> None:
        await shipping
        cargo.unload(lane, shipment, partial(self._again, lane, shipment))

    async def _ship(self, lane: Lane, shipment: Shipment) -> None:
        arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not arrived.done():
                arrived.set_result(None)

        shipment.wake = wake
        lane.add(shipment)
        if lane not in self._senders:
            self._senders[lane] = asyncio.create_task(self._send_all(lane), name="streamjobs-send")
        try:
            await arrived
        except asyncio.CancelledError:
            shipment.abandoned = True
            raise

    async def _send_all(self, lane: Lane) -> None:
        try:
            await self._announce()
            while (sending := lane.next_batch(monotonic())) is not None:
                await self._send(lane, sending)
        finally:
            del self._senders[lane]

    async def _announce(self) -> None:
        names, self._lanes.unannounced = self._lanes.unannounced, set()
        if names:
            try:
                await self._executor.run(intake.announce(self._namespace, sorted(names)))
            except StreamJobsError:
                # The jobs themselves will tell; a worker announces its queues too.
                self._lanes.unannounced |= names

    async def _send(self, lane: Lane, sending: Sending) -> None:
        while True:
            try:
                failpoint("producer.before_send")
                accepted = await self._executor.run(sending.call)
                failpoint("producer.after_reply")
            except (StreamJobsError, intake.BatchRefused) as error:
                again = lane.failed(sending, error, monotonic())
                await asyncio.sleep(lane.pause_s(self._random.random()))
                if not again:
                    return
            except BaseException as error:
                lane.lose(sending, repr(error))
                raise
            else:
                lane.arrived(sending, accepted)
                return

    async def _again(self, lane: Lane, shipment: Shipment, index: int) -> H:
        sending = shipment.sending
        assert sending is not None
        if isinstance(shipment.outcome, StreamJobsError):
            try:
                sending.settle(await self._executor.run(sending.again(monotonic())))
            except StreamJobsError as error:
                raise outcome_error(shipment, partial(self._again, lane, shipment), index) or error from error
        return self._lanes.handle(lane, shipment, index)
