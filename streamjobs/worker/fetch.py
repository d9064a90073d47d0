"""Fetch claims, in turn: what was given back, what fell silent, what is fresh.

Only what can start is claimed: free slots, and a read-ahead worth at most `read_ahead` seconds at
the rate measured here, so that no-op jobs come 500 at a time and a ten-minute job is never hoarded.
"""

import asyncio
from collections.abc import Sequence
from time import monotonic
from typing import Any, TypeVar

from streamjobs.client.aio import AsyncExecutor
from streamjobs.client.connect import REPLY_SECONDS
from streamjobs.core.errors import StreamJobsError, Unavailable
from streamjobs.core.failpoints import failpoint
from streamjobs.protocol import lanes, leases
from streamjobs.protocol.calls import Command, Request
from streamjobs.protocol.intake import MAX_BATCH_JOBS
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.order import Order, Shares, Strict
from streamjobs.worker.run import METERED_S, Runner
from streamjobs.worker.service import until
from streamjobs.worker.start import Starter
from streamjobs.worker.station import Station

T = TypeVar("T")

PATIENCE_MS = 1000
"""Block at most this long where the server cannot be told to end a read."""
BURST_BLOCK_MS = 100
NO_QUEUE_S = 0.5
"""A worker whose patterns fit no queue yet looks so often whether one has come."""
CROWD = 500
"""While more wait in the lanes of a whole queue, its fresh entries stay where they are: they would only join them."""
ASK_S = 0.25
"""How often it is asked whether that has changed."""


class Fetcher:
    """The loop that reads; a service whose tick is one read."""

    name = "fetch"
    rests = True
    """Where nothing is pending, it does not sweep before something can have been silent for a lease."""

    def __init__(self, station: Station, reader: AsyncExecutor, starter: Starter, runner: Runner) -> None:
        """`reader`: the executor that waits for fresh entries."""
        options = station.options
        self._reader = reader
        self._executor = station.executor
        self._queues = station.queues
        self._consumer = station.consumer
        self._random = station.random
        self._pulse = station.pulse
        self._starter = starter
        self._runner = runner
        self._order: Order = Strict() if options.strict else Shares()
        self._even = not options.strict
        """Queues of one weight are read all at once: no order has to be asked."""
        self._sweep_s = options.ms("sweep") / 1000
        self._read_ahead_s = options.ms("read_ahead") / 1000
        # A burst asks whether all is done between two reads.
        self._block_ms = min(options.ms("block"), BURST_BLOCK_MS) if options.burst else options.ms("block")
        self._turn = 0
        self._rate = 0.0
        self._measured_at = monotonic()
        self._measured = 0
        self._blocked = False
        self._rejoined = False
        """The last read found no group, and one was made."""
        self._reads = 0
        self._asked = 0
        self.asking = 0
        """The number of the request that is under way; 0 between two."""
        self.within_s = 0.0
        """How long that may take, on a connection that works."""
        self._ask_at = 0.0
        self._nudged = asyncio.Event()
        self.reclaimed = 0
        self.idle = False
        """The last read found nothing."""

    @property
    def fresh(self) -> list[WorkerQueue]:
        """The queues whose fresh entries are read here now."""
        return [queue for queue in self._open if queue.crowd <= CROWD]

    @property
    def _open(self) -> list[WorkerQueue]:
        """The queues whose jobs could start: not those that need processes while all are taken."""
        if self._runner.pool is None:
            return self._queues
        return [queue for queue in self._queues if self._fitting(queue, 1)]

    def _fitting(self, queue: WorkerQueue, count: int) -> int:
        """Return how many of so many jobs of a queue may find what they need beside a slot."""
        processes = self._runner.processes_for(queue)
        # Of those on their way to a start nobody knows yet what they need.
        return count if processes is None else min(count, max(0, processes - self._starter.waiting))

    async def tick(self) -> float:
        """Claim once; waits for a free slot first, and on the server for work."""
        if not self._queues:
            self.idle = True
            return NO_QUEUE_S
        room = await self._room()
        if room <= 0:
            return 0
        try:
            for queue in self._queues:
                await self._take_and_sweep(queue)
            room = min(room, self._wanted())
            if room > 0:
                if not (queues := await self._uncrowded()):
                    await self._stand_by()
                elif not await self._look(queues, room):
                    await self._read(queues, room)
        except Unavailable as error:
            if error.word not in ("NOGROUP", "UNBLOCKED"):
                raise
            # The group or the stream is gone: at 0 nothing that waits is passed over.
            for queue in self._queues:
                await self._ask(self._executor, leases.join(queue.keys, queue.lease_ms, again=True))
            if self._rejoined and error.word == "NOGROUP":
                # Gone again at once: no more of this without a pause.
                raise
            self._rejoined = error.word == "NOGROUP"
        else:
            self._rejoined = False
        return 0

    async def _ask(self, executor: AsyncExecutor, request: Request[T]) -> T:
        """Run a request, so that the watchdog sees one that does not come to an end."""
        [reply] = await self._ask_all(executor, [request])
        if isinstance(reply, StreamJobsError):
            raise reply
        return reply

    async def _ask_all(self, executor: AsyncExecutor, requests: Sequence[Request[T]]) -> list[T | StreamJobsError]:
        self._asked += 1
        self.asking = self._asked
        self.within_s = self._block_ms / 1000 if executor is self._reader else REPLY_SECONDS
        try:
            return await executor.run_all(requests)
        finally:
            self.asking = 0

    async def start_over(self) -> None:
        """Go on on another connection, wherever the loop waits. What a read that is left alone has claimed comes
        back by a sweep, uncharged.
        """
        self._starter.room.set()
        await self._reader.reopen()

    async def _room(self) -> int:
        """Return how many claims are wanted, waiting for a slot while there are none."""
        wanted = self._wanted()
        if wanted <= 0:
            self._starter.room.clear()
            # Whether a queue's jobs still need processes shows only when some are read.
            await until(self._starter.room, METERED_S)
            wanted = self._wanted()
        return wanted

    def _wanted(self) -> int:
        """Return how many claims to ask for: nothing until that is worth a call."""
        self._measure()
        free = self._starter.free()
        # Read-ahead would take each slot that comes free, and old claims never had their turn.
        ahead = 0 if self._urgent() else min(MAX_BATCH_JOBS, int(self._rate * self._read_ahead_s))
        wanted = min(MAX_BATCH_JOBS, free + ahead)
        if self._starter.stopping or wanted <= 0 or not self._open:
            return 0
        return wanted if free > 0 or wanted >= ahead // 2 else 0

    def _urgent(self) -> bool:
        """Say whether a sweep is due, or something was given back: both go before fresh entries."""
        now = monotonic()
        return any(queue.rung or now >= queue.next_sweep for queue in self._open)

    def _measure(self) -> None:
        now = monotonic()
        elapsed = now - self._measured_at
        if elapsed > 0.02:
            self._rate = (self._runner.finished - self._measured) / elapsed
            self._measured_at, self._measured = now, self._runner.finished

    async def _look(self, queues: list[WorkerQueue], room: int) -> bool:
        """Read what is there, in the queues' order and without waiting; say whether there was anything."""
        if len(queues) == 1 or (self._even and len({queue.weight for queue in queues}) == 1):
            return False
        found = False
        asks = self._order.asks(queues, room)
        try:
            wanted = next(asks)
            while True:
                came = await self._read_each(wanted)
                found = found or any(came)
                wanted = asks.send(came)
        except StopIteration:
            return found

    async def _read_each(self, wanted: Sequence[tuple[WorkerQueue, int]]) -> list[int]:
        sent_at = monotonic()
        queues = [queue for queue, _ in wanted]
        wanted = [(queue, max(1, self._fitting(queue, most))) for queue, most in wanted]
        reads = [leases.read([queue.keys.stream], self._consumer, most, None) for queue, most in wanted]
        replies = await self._read_all(self._executor, reads, queues)
        came = []
        for queue, reply in zip(queues, replies, strict=True):
            entries = reply[0][1] if reply and not isinstance(reply, StreamJobsError) else ()
            self._starter.add(queue, leases.claims(entries, self._pulse.arrived_at(sent_at)))
            came.append(len(entries))
        for reply in replies:
            if isinstance(reply, StreamJobsError):
                raise reply
        return came

    async def _read_all(
        self, executor: AsyncExecutor, reads: list[Command[Any]], queues: Sequence[WorkerQueue]
    ) -> list[Any]:
        """Read, and learn what limits hold for what came; return the replies to the reads."""
        # Behind the reads, so that it is run when they return: limits set at run time hold for what they bring.
        replies = await self._ask_all(executor, [*reads, *(lanes.changed(queue.keys) for queue in queues)])
        failpoint("worker.after_claim")
        for queue, number in zip(queues, replies[len(reads) :], strict=True):
            await self._learn_limits(queue, number)
        return replies[: len(reads)]

    async def _uncrowded(self) -> list[WorkerQueue]:
        crowded = [queue for queue in self._open if queue.crowd > CROWD]
        if crowded and monotonic() >= self._ask_at:
            self._ask_at = monotonic() + ASK_S
            for queue in crowded:
                asks: list[Command[Any]] = [lanes.waiting(queue.keys, base) for base in ("c:q", "r:q")]
                *counts, number = await self._executor.run_all([*asks, lanes.changed(queue.keys)])
                queue.crowd = sum(count for count in counts if isinstance(count, int))
                # No read tells of limits that were set meanwhile.
                await self._learn_limits(queue, number)
        return self.fresh

    async def _stand_by(self) -> None:
        """Wait for a nudge, or until it is time to ask again."""
        # There is nothing to read: a burst may ask what is left, which may all be paused.
        self.idle = True
        self._nudged.clear()
        if not any(queue.rung for queue in self._open):
            await until(self._nudged, min(ASK_S, max(0.0, self._ask_at - monotonic())))

    async def _read(self, queues: list[WorkerQueue], room: int) -> None:
        streams = [queue.keys.stream for queue in queues]
        # Each queue has its turn to be first: a server may serve only the first one that has work.
        self._turn = (self._turn + 1) % len(streams)
        streams = streams[self._turn :] + streams[: self._turn]
        count = max(1, min(self._fitting(queue, room // len(streams)) for queue in queues))
        self._reads += 1
        self._blocked = True
        sent_at = monotonic()
        try:
            read = leases.read(streams, self._consumer, count, self._block())
            [reply] = await self._read_all(self._reader, [read], queues)
        finally:
            self._blocked = False
        if isinstance(reply, StreamJobsError):
            raise reply
        self.idle = not reply
        by_stream = {queue.keys.stream.encode(): queue for queue in self._queues}
        for stream, entries in reply or ():
            # A lease that began while this process was frozen may have ended: such a claim must not start.
            self._starter.add(by_stream[stream], leases.claims(entries, self._pulse.arrived_at(sent_at)))

    async def _learn_limits(self, queue: WorkerQueue, number: bytes | StreamJobsError) -> None:
        """Read the limits that were set at run time, if this number says that some were since the last time."""
        if number == queue.limited or isinstance(number, StreamJobsError):
            return
        [overrides] = await self._executor.run_all([lanes.overrides(queue.keys)])
        # Never an error: what was read is claimed, and must get to its start. The next read asks again.
        if not isinstance(overrides, StreamJobsError):
            queue.limit(number, overrides)

    def _block(self) -> int | None:
        """Return how long to wait on the server: to the next sweep, or not at all with claims to start or take."""
        queues = self._open
        if self._starter.waiting or any(queue.rung for queue in queues):
            return None
        until_s = min((queue.next_sweep for queue in queues), default=0.0) - monotonic()
        if len(queues) < len(self._queues) or any(queue.crowd > CROWD for queue in queues):
            until_s = min(until_s, ASK_S)
        return max(1, min(self._block_ms, int(until_s * 1000)))

    async def _take_and_sweep(self, queue: WorkerQueue) -> None:
        free = self._fitting(queue, self._starter.free())
        if queue.rung and free > 0:
            queue.rung = False
            taken = await self._ask(self._executor, leases.take(queue.keys, self._consumer, free, monotonic()))
            left = self._starter.left
            self._starter.add(queue, taken)
            # There may be more than fitted. But what was left to another process is in the set again, and would
            # be taken for ever: what else is there must then wait for a sweep.
            queue.rung = len(taken) == free and self._starter.left - left < free
        if monotonic() >= queue.next_sweep:
            await self._sweep(queue)

    async def _sweep(self, queue: WorkerQueue) -> None:
        """Follow the cursor to the end while slots are free; keep it otherwise."""
        while (free := self._fitting(queue, self._starter.free())) > 0:
            most = min(free, leases.RECLAIM_MOST)
            now = monotonic()
            reclaim = leases.reclaim(queue.keys, self._consumer, queue.lease_ms, queue.cursor, most, now)
            swept = await self._ask(self._executor, reclaim)
            failpoint("worker.after_reclaim")
            queue.cursor = swept.cursor
            self.reclaimed += len(swept.claims)
            self._starter.add(queue, swept.claims)
            if swept.cursor == leases.SWEEP_BEGIN:
                # Jitter only shortens the interval.
                pause_s = self._sweep_s * (0.8 + 0.2 * self._random.random())
                if swept.empty and self.rests:
                    pause_s = max(pause_s, queue.lease_ms / 1000)
                queue.next_sweep = monotonic() + pause_s
                return

    @property
    def finished(self) -> int:
        """How many jobs have ended here."""
        return self._runner.finished

    async def nudge(self) -> None:
        """End a read that waits on the server, so that a bell that rang is attended to."""
        self._nudged.set()
        reads = self._reads
        # A read that is on its way to the server cannot be ended yet.
        for pause_s in (0, 0.01, 0.1):
            await asyncio.sleep(pause_s)
            if not self._blocked or self._reads != reads or await self._reader.unblock(via=self._executor):
                return
        self._block_ms = min(self._block_ms, PATIENCE_MS)
