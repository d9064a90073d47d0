"""The parts of a worker that fetch and start claims, without the loops around them."""

import asyncio
from random import Random
from typing import Any

import msgspec

from streamjobs import Context, StreamJobs
from streamjobs.core.job import Claim
from streamjobs.protocol import leases
from streamjobs.worker.duty import Duty
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.fetch import Fetcher
from streamjobs.worker.quarantine import Quarantine
from streamjobs.worker.run import Runner
from streamjobs.worker.settle import Settler
from streamjobs.worker.start import Starter
from streamjobs.worker.station import Station
from tests.worker.support import FAST, Flag, Queue


class Bench:
    """The part of a worker that starts claims, without the loops around it."""

    def __init__(self, app: StreamJobs, queue: Queue, concurrency: int = 10, duty: Duty = Duty.ALL) -> None:
        self._server = queue
        self.queue = WorkerQueue(queue.keys, 60_000)
        options = msgspec.structs.replace(FAST, concurrency=concurrency, block=0.01)
        self.station = station = Station(app.connections.aio(), app.namespace, [self.queue], options, "me", Random(1))
        self.settler = Settler(station)
        self.runner = Runner(app.registry.all(), (), self.settler, Random(1))
        self.left: list[None] = []
        self.starter = Starter(station, self.runner, self.settler, duty, lambda: self.left.append(None))
        self.stops: list[None] = []
        self.quarantine = Quarantine(
            station, station.executor, self.starter, self.runner, lambda: self.stops.append(None), idle_s=0.0
        )
        self.fetcher = Fetcher(station, station.executor, self.starter, self.runner)

    def take_over(self, most: int = 100) -> list[Claim]:
        """Take over what has been silent, as a sweep does, and hand it to the starter."""
        sweep = leases.reclaim(self.queue.keys, "me", 1000, leases.SWEEP_BEGIN, most, asyncio.get_running_loop().time())
        claims: list[Claim] = self._server.run(sweep).claims
        self.starter.add(self.queue, claims)
        return claims

    def read(self) -> None:
        """Read what is fresh, and hand it to the starter."""
        claims = self._server.read("me")
        for claim in claims:
            claim.claimed_at = asyncio.get_running_loop().time()
        self.starter.add(self.queue, claims)

    async def settled(self) -> None:
        await self.starter.stopped()
        await self.settler.drained()


def crash_marked(queue: Queue, consumer: str) -> None:
    """Let another worker take over what is silent, mark it as started, and die."""
    sweep = leases.reclaim(queue.keys, consumer, 1000, leases.SWEEP_BEGIN, 100, 0.0)
    claims = queue.run(sweep).claims
    queue.run(leases.suspect(queue.keys, consumer, claims))
    queue.silence(consumer=consumer.encode())


class Gate:
    """A kind whose runs wait until they are let go."""

    def __init__(self, app: StreamJobs) -> None:
        self.started, self.go_on = Flag(), asyncio.Event()
        self.names: list[str] = []
        self.attempts: list[int] = []

        async def gate(ctx: Context[Any], name: str = "") -> None:
            self.names.append(name)
            self.attempts.append(ctx.attempt)
            self.started.raise_()
            await self.go_on.wait()

        self.kind = app.job(name="gate", result_ttl=0)(gate)
