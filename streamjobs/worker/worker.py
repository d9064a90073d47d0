"""One worker: connects, runs its services until it is stopped, and leaves nothing behind."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from random import Random
from time import monotonic
from typing import Any

from streamjobs.client import Connections
from streamjobs.core.classify import Rule
from streamjobs.core.errors import Rejected, StreamJobsError
from streamjobs.core.execution import Ending
from streamjobs.core.job import Release
from streamjobs.core.options import WorkerOptions
from streamjobs.core.registry import Handler
from streamjobs.protocol import leases, upkeep
from streamjobs.protocol.keys import QueueKeys
from streamjobs.worker.burst import Burst
from streamjobs.worker.deadlines import Deadlines
from streamjobs.worker.fetch import Fetcher
from streamjobs.worker.lease import LeaseKeeper
from streamjobs.worker.promote import LONGEST_S, Promoter
from streamjobs.worker.queues import Held, ServerClock, WorkerQueue
from streamjobs.worker.run import Runner
from streamjobs.worker.service import HEALABLE, Backoff, Complaints, Service, run_service, until
from streamjobs.worker.settle import Settler
from streamjobs.worker.start import Starter
from streamjobs.worker.upkeep import Upkeep

log = logging.getLogger("streamjobs.worker")

Lifespan = Callable[[], AbstractAsyncContextManager[Any]]
LAST_CALL_S = 2.0
"""How long cancelled handlers have to end before their jobs are given back without them."""


class Worker:
    """Claims and runs the jobs of some queues until `stop`. Made by `StreamJobs.worker`."""

    def __init__(
        self,
        connections: Connections,
        namespace: str,
        handlers: dict[str, Handler],
        queues: list[str],
        options: WorkerOptions,
        *,
        lifespan: Lifespan | None = None,
        rules: tuple[Rule, ...] = (),
    ) -> None:
        self._connections = connections
        self._namespace = namespace
        self._handlers = handlers
        self._options = options
        self._lifespan = lifespan
        self._rules = rules
        self._random = Random()
        self._stopping = asyncio.Event()
        self._aborting = asyncio.Event()
        self._clock = ServerClock()
        self.consumer = f"{socket.gethostname()[:40]}-{os.getpid()}-{os.urandom(4).hex()}"
        self._queues = [WorkerQueue(QueueKeys(namespace, name), options.ms("lease")) for name in queues]
        self.ready = asyncio.Event()
        """Set once the server has been reached and jobs are being fetched."""

    def stop(self) -> None:
        """Start nothing more, give running handlers the grace time, then end. Harmless to repeat."""
        self._stopping.set()

    def abort(self) -> None:
        """End at once: running handlers are cancelled and their jobs given back."""
        self._stopping.set()
        self._aborting.set()

    async def run(self) -> bool:
        """Work until stopped; return whether every handler ended within the grace time.

        Raises:
            Rejected: the server refuses what the worker must do (password, rights, a key of a wrong type).
        """
        executor = self._connections.aio()
        if not await self._join(executor):
            return True
        async with AsyncExitStack() as stack:
            state = await stack.enter_async_context(self._lifespan()) if self._lifespan else None
            settler = Settler(executor, self.consumer, self._clock, self._random)
            runner = Runner(self._handlers, self._rules, settler, self._random)
            runner.state = state
            stack.callback(runner.close)
            starter = Starter(executor, self.consumer, runner, settler, self._options.concurrency)
            keeper = LeaseKeeper(
                self._connections, self._queues, self.consumer, self._verdict, self._options.ms("grace") / 1000
            )
            keeper.start()
            try:
                return await self._serve(stack, executor, settler, runner, starter)
            finally:
                keeper.stop()
                await keeper.stopped()
                log.info(
                    "worker %s stopped: %d done, %d failed, %d came too late, %d leases renewed",
                    self.consumer, settler.done, settler.failed, settler.lost, keeper.renewed,
                )  # fmt: skip

    async def _join(self, executor: Any) -> bool:
        """Reach the server, settle on a lease, make the groups; False when stopped before that worked."""
        backoff, complaints = Backoff(self._random), Complaints()
        while not self._stopping.is_set():
            try:
                self._clock.sync(await executor.run(upkeep.server_time()))
                for queue in self._queues:
                    await self._join_queue(executor, queue)
            except HEALABLE as error:
                complaints.say("join", "cannot start yet: %s; trying on", error)
                await until(self._stopping, backoff.pause_s())
            else:
                return True
        return False

    async def _join_queue(self, executor: Any, queue: WorkerQueue) -> None:
        await executor.run(upkeep.set_lease(queue.keys, queue.lease_ms))
        lease_ms = await executor.run(upkeep.get_lease(queue.keys))
        if lease_ms != queue.lease_ms:
            log.warning(
                "queue %s has a lease of %g s, not %g s: taking the queue's",
                queue.keys.queue, lease_ms / 1000, queue.lease_ms / 1000,
            )  # fmt: skip
            queue.lease_ms = lease_ms
        [made] = await executor.run_all([leases.make_group(queue.keys)])
        if isinstance(made, StreamJobsError) and not (isinstance(made, Rejected) and made.word == "BUSYGROUP"):
            raise made

    async def _serve(
        self, stack: AsyncExitStack, executor: Any, settler: Settler, runner: Runner, starter: Starter
    ) -> bool:
        options = self._options
        reader = self._connections.aio(block_ms=options.ms("block"))
        sleeper = self._connections.aio(block_ms=round(LONGEST_S * 1000))
        stack.push_async_callback(reader.aclose)
        stack.push_async_callback(sleeper.aclose)
        fetcher = Fetcher(
            reader, executor, self._queues, starter, runner, self.consumer, options, self._random
        )
        services: list[Service] = [
            Promoter(
                executor, sleeper, self._queues, fetcher, self.consumer, self._clock, self._random,
                note=str(options.concurrency),
            ),  # fmt: skip
            Deadlines(self._queues, runner, starter, options.ms("grace") / 1000),
            Upkeep(executor, self._namespace, self._queues, self._clock),
        ]
        if options.burst:
            services.append(Burst(executor, self._queues, fetcher, starter, settler, self.stop))
        tasks = [self._spawn(service) for service in services]
        fetching = self._spawn(fetcher)
        names = ", ".join(queue.keys.queue for queue in self._queues)
        log.info("worker %s serves %s with %d slots", self.consumer, names, options.concurrency)
        self.ready.set()
        stopped = asyncio.create_task(self._stopping.wait())
        broken = asyncio.ensure_future(settler.broken)
        try:
            await asyncio.wait([*tasks, fetching, stopped, broken], return_when=asyncio.FIRST_COMPLETED)
            self._stopping.set()
            return await self._wind_down(settler, runner, starter, fetcher, fetching)
        finally:
            await _end([*tasks, fetching, stopped])
            for task in [*tasks, fetching, broken]:
                if task.done() and not task.cancelled() and (error := task.exception()):
                    raise error

    def _spawn(self, service: Service) -> "asyncio.Task[None]":
        return asyncio.create_task(
            run_service(service, self._stopping, Complaints(), self._random), name=f"streamjobs-{service.name}"
        )

    async def _wind_down(
        self, settler: Settler, runner: Runner, starter: Starter, fetcher: Fetcher, fetching: "asyncio.Task[None]"
    ) -> bool:
        """Give back what has not started, wait for what runs, then cancel it and give it back too."""
        starter.stop()
        # A blocked read is ended, not cancelled: a reply lost that way is a claim nobody knows of.
        while not fetching.done():
            await fetcher.nudge()
            await asyncio.wait([fetching], timeout=0.1)
        starter.stop()
        await starter.stopped()
        deadline = monotonic() + self._options.ms("grace") / 1000
        while runner.running and monotonic() < deadline and not self._aborting.is_set():
            starter.room.clear()
            await _first(starter.room, self._aborting, deadline - monotonic())
        clean = runner.running == 0
        await self._interrupt(settler)
        await settler.drained()
        return clean

    async def _interrupt(self, settler: Settler) -> None:
        """Cancel what still runs; what does not end even then is given back without waiting for it."""
        left = [(q, held) for q in self._queues for held in list(q.held.values()) if _runs(held)]
        for _, held in left:
            execution = held.execution
            assert execution is not None and execution.task is not None
            execution.ending = Ending.STOP
            execution.lost.set()
            if execution.handler.is_async:
                execution.task.cancel()
        cancelled = [held.execution.task for _, held in left if held.execution and held.execution.handler.is_async]
        if cancelled:
            await asyncio.wait([task for task in cancelled if task], timeout=LAST_CALL_S)
        for queue, held in left:
            if _runs(held) and held.execution is not None:
                held.execution.abandoned = True
                settler.decided(queue, held, held.execution.handler.kind, Release())

    def _verdict(self, queue: WorkerQueue, held: Held, deliveries: int, word: str) -> None:
        """Act on what the lease thread learned, if it still matters."""
        claim, execution = held.claim, held.execution
        if queue.held.get(claim.entry) is not held or claim.settling or claim.deliveries != deliveries:
            return
        if execution is None or execution.task is None:
            if word != "EXPIRED":
                del queue.held[claim.entry]
            return
        if execution.ending is not Ending.NONE:
            return
        log.warning("job %s (%s): %s while it runs", execution.job_id, execution.handler.kind, _SAID[word])
        execution.lost.set()
        execution.ending = Ending.STOP if word == "EXPIRED" else Ending.LOST
        if execution.handler.is_async:
            execution.task.cancel()


_SAID = {
    "LOST": "another worker has taken it over",
    "CANCELLED": "it was cancelled, or ended elsewhere",
    "EXPIRED": "its lease could not be renewed in time",
}


def _runs(held: Held) -> bool:
    execution = held.execution
    return not held.claim.settling and execution is not None and execution.task is not None


async def _first(one: asyncio.Event, other: asyncio.Event, seconds: float) -> None:
    waits = [asyncio.create_task(event.wait()) for event in (one, other)]
    await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    await _end(waits)


async def _end(tasks: "list[asyncio.Task[Any]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def running(worker: Worker) -> AsyncIterator[Worker]:
    """Run a worker beside other code: it works while the block runs and is stopped at its end.

    Raises:
        whatever ended the worker before.
    """
    task = asyncio.create_task(worker.run(), name="streamjobs-worker")
    ready = asyncio.create_task(worker.ready.wait())
    await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    try:
        yield worker
    finally:
        worker.stop()
        await task
