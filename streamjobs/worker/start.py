"""Start what was fetched: in order, into free slots, and suspects by their own rule.

A claim that was delivered before may have killed its process. One such start is presumed of every
claim of a dead worker, so it starts again in company, marked. With two unsettled starts it runs
alone in the process, so that a third one blames nobody else; with three it is dead.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from time import monotonic
from typing import Any

from streamjobs.client.aio import AsyncExecutor
from streamjobs.core.decide import crashed
from streamjobs.core.errors import StreamJobsError
from streamjobs.core.execution import Execution
from streamjobs.core.job import Claim, Release
from streamjobs.protocol import leases
from streamjobs.worker.queues import Held, WorkerQueue
from streamjobs.worker.run import Runner
from streamjobs.worker.settle import Settler

log = logging.getLogger("streamjobs.worker")

ALONE_FROM = 2
"""Unsettled starts from which on a claim runs alone."""
EMPTY_WITHIN_S = 30.0
"""A process that does not empty within this time gives its suspect back."""
ENOUGH_RELEASES = 10
"""After this many of those, a suspect starts in company, uncounted: it must not wait for ever."""
STALE_S = 0.5
"""A claim that has not started within this time goes to a worker that may have a free slot."""


class Starter:
    """Holds what was fetched and not started, and starts it as slots come free."""

    def __init__(
        self, executor: AsyncExecutor, consumer: str, runner: Runner, settler: Settler, concurrency: int
    ) -> None:
        self._executor = executor
        self._consumer = consumer
        self._runner = runner
        self._settler = settler
        self._concurrency = concurrency
        self._ready: deque[tuple[WorkerQueue, Held, float]] = deque()
        self._marking = 0
        self._alone = False
        self._empty = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self.stopping = False
        self.room = asyncio.Event()
        """Set when a job ends; whoever waits for a slot clears it."""
        runner.on_end = self._on_end

    @property
    def waiting(self) -> int:
        """Claims here that have not started."""
        return len(self._ready) + self._marking

    @property
    def idle(self) -> bool:
        """Whether nothing waits or runs here."""
        return not (self._ready or self._marking or self._alone or self._runner.running)

    def free(self) -> int:
        """Return how many more claims could start now."""
        if self._alone or self.stopping:
            return 0
        return self._concurrency - self._runner.running - self.waiting

    def add(self, queue: WorkerQueue, claims: list[Claim]) -> None:
        """Take claims in, and start what can be started."""
        now = monotonic()
        for claim in claims:
            held = queue.add(claim)
            if held is not None:
                self._ready.append((queue, held, now))
        self.fill()

    def fill(self) -> None:
        """Start ready claims into free slots."""
        if not self._ready or self._alone or self.stopping:
            return
        now = monotonic()
        ready, runner, most = self._ready, self._runner, self._concurrency - self._marking
        while ready and runner.running < most and not self._alone:
            queue, held, _ = ready.popleft()
            if queue.held.get(held.claim.entry) is held:
                self._begin(queue, held, now)

    def _begin(self, queue: WorkerQueue, held: Held, now: float) -> None:
        if queue.expired(held.claim, now):
            # This process was frozen: another may hold the job by now, and its handler must not start.
            self._settler.release(queue, held)
            return
        execution = self._runner.prepare(queue, held)
        if execution is None:
            return
        if held.claim.deliveries == 1 and not execution.meta.crashes:
            self._runner.start(queue, held, execution)
        else:
            self._admit(queue, held, execution)

    def _admit(self, queue: WorkerQueue, held: Held, execution: Execution) -> None:
        crashes = execution.crashes
        if crashes >= execution.handler.options.retry.max_crashes:
            decision = crashed(f"{crashes} starts ended with the death of their process")
            log.error("job %s is dead: %s", execution.job_id, decision.error)
            self._settler.decided(queue, held, execution.handler.kind, decision)
        elif crashes < ALONE_FROM:
            self._spawn(self._mark_and_start(queue, held, execution))
        elif held.claim.releases >= ENOUGH_RELEASES:
            self._runner.start(queue, held, execution)
        elif self._alone:
            self._settler.release(queue, held, held_alone=True)
        else:
            self._alone = True
            self._spawn(self._run_alone(queue, held, execution))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="streamjobs-suspect")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _mark_and_start(self, queue: WorkerQueue, held: Held, execution: Execution) -> None:
        self._marking += 1
        try:
            marked = await self._mark(queue, held, execution)
        finally:
            self._marking -= 1
        if marked:
            self._runner.start(queue, held, execution)
        self._on_end()

    async def _mark(self, queue: WorkerQueue, held: Held, execution: Execution) -> bool:
        """Record the start that is about to happen; False when the claim is not to start here."""
        if held.claim.deliveries > 1:
            try:
                words = await self._executor.run(leases.suspect(queue.keys, self._consumer, [held.claim]))
            except StreamJobsError as error:
                log.warning("cannot mark job %s: %s", execution.job_id, error)
                self._settler.release(queue, held)
                return False
            if words or queue.held.get(held.claim.entry) is not held:
                queue.held.pop(held.claim.entry, None)
                return False
            execution.marked = True
        if self.stopping:
            self._settler.decided(queue, held, execution.handler.kind, Release())
            return False
        return True

    async def _run_alone(self, queue: WorkerQueue, held: Held, execution: Execution) -> None:
        try:
            if not await self._emptied():
                self._settler.release(queue, held, held_alone=True)
            elif await self._mark(queue, held, execution):
                log.warning("job %s runs alone: %d starts never ended", execution.job_id, execution.crashes)
                self._runner.start(queue, held, execution)
                if execution.task is not None:
                    await asyncio.wait([execution.task])
        finally:
            self._alone = False
            self._on_end()

    async def _emptied(self) -> bool:
        deadline = monotonic() + EMPTY_WITHIN_S
        while self._runner.running + self._marking and not self.stopping:
            self._empty.clear()
            try:
                async with asyncio.timeout(deadline - monotonic()):
                    await self._empty.wait()
            except TimeoutError:
                return False
        return not self.stopping

    def release_stale(self, now: float) -> None:
        """Give back what has waited too long for a slot."""
        while self._ready and now - self._ready[0][2] > STALE_S:
            queue, held, _ = self._ready.popleft()
            if queue.held.get(held.claim.entry) is held:
                self._settler.release(queue, held)

    def stop(self) -> None:
        """Start nothing more, and give back what was not started."""
        self.stopping = True
        self.release_stale(float("inf"))
        self._empty.set()
        self.room.set()

    async def stopped(self) -> None:
        """Wait until the suspects' tasks have ended."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _on_end(self) -> None:
        if self._runner.running < self._concurrency:
            self.fill()
        self.room.set()
        if self._alone:
            self._empty.set()
