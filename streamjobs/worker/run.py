"""Run claims: one task per job; what its handler did becomes an outcome, and that a decision."""

import asyncio
import contextvars
import inspect
import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from random import Random
from time import monotonic
from typing import Any

import msgspec

from streamjobs.client import forks
from streamjobs.core import failpoints
from streamjobs.core.classify import Rule
from streamjobs.core.codec import DecodeFailed, decode_meta
from streamjobs.core.decide import decide
from streamjobs.core.errors import UsageError
from streamjobs.core.job import (
    FRESH,
    Bury,
    Decision,
    Expired,
    Interrupted,
    Outcome,
    Retry,
    Returned,
    Undecodable,
    Unknown,
)
from streamjobs.core.limits import Concurrency
from streamjobs.core.registry import Handler, stranger
from streamjobs.core.retry import Retry as Policy
from streamjobs.worker import batch, context, outcomes
from streamjobs.worker.background import Background
from streamjobs.worker.clock import ServerClock
from streamjobs.worker.execution import Access, Ending, Execution, WorkerQueue
from streamjobs.worker.pool import Pool
from streamjobs.worker.settle import Settler
from streamjobs.worker.spans import ProcessSpans
from streamjobs.worker.threads import Threads

log = logging.getLogger("streamjobs.worker")

METERED_S = 10.0
"""For so long after a job of a queue that needs a process, no more is asked of it than there are free processes."""

UNKNOWN_S = 60.0
"""So often at most it is said that a kind is not known."""

_POLICY = Policy()


class Runner:
    """Starts claims and takes in what comes of them; knows how many run."""

    def __init__(self, handlers: dict[str, Handler], rules: tuple[Rule, ...], settler: Settler, random: Random) -> None:
        self._handlers = {kind.encode(): handler for kind, handler in handlers.items()}
        limits = [limit for handler in handlers.values() for limit in handler.limits]
        self.ordered = any(isinstance(limit, Concurrency) and limit.key for limit in limits)
        """Whether jobs of any kind here go in order within a key."""
        self._rules = rules
        self._settler = settler
        self._random = random
        self._background = Background(settler.broken, "job")
        self.gatherer = batch.Gatherer(settler, self._background, self._start_batch, self._leave)
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        """What each job begins with: else it found what the one had set whose end made room for it."""
        self._threads = Threads(self._loop)
        self._copies = forks.copies
        self.state: Any = None
        self.access: Access | None = None
        self.pool: Pool | None = None
        """Where handlers with `process=True` run."""
        self.spans: ProcessSpans | None = None
        """None where nobody traces."""
        self.running = 0
        self.stuck = 0
        """Handlers that were abandoned and have not ended."""
        self.finished = 0
        """Jobs that have ended here, whatever came of them, or were parked; grows for as long as the worker lives."""
        self.dropped = 0
        """Of those, the runs whose job had ended elsewhere, or another worker held: nothing is written of them."""
        self.on_end: Callable[[], None] = lambda: None
        """Called after each end, also of a handler that was abandoned, for whoever waits for a free slot."""

    def prepare(self, execution: Execution, clock: ServerClock) -> bool:
        """Find the handler of a claim; False, and the claim settled, when none here can run it, or it has expired."""
        claim = execution.claim
        if claim.meta:
            try:
                execution.meta = decode_meta(claim.meta)
            except DecodeFailed as error:
                return self.refuse(execution, Undecodable(str(error)))
        handler = self._handlers.get(claim.kind)
        if handler is None:
            if not claim.kind:
                return self.refuse(execution, Undecodable("the entry has no field kind"))
            handler = stranger(claim.kind.decode("utf-8", "replace"))
        execution.handler = handler
        if execution.meta is not FRESH and execution.expired(clock.now_ms()):
            if claim.deliveries > 1:
                # A place may be kept for it: those behind it go on at once.
                with suppress(DecodeFailed):
                    execution.find_lanes()
            return self.refuse(execution, Expired(execution.expires_ms))
        return handler.known or self._park(execution, handler.kind)

    def start(self, execution: Execution, *, alone: bool = False) -> None:
        """Start the handler in a task of its own; one that takes a list once others have come, or `alone`.

        From Python 3.12 on a handler that waits for nothing has ended when this returns.
        """
        handler = execution.handler
        assert handler is not None
        if handler.options.process:
            self._start_in_process(execution)
            return
        try:
            args, kwargs = execution.arguments or handler.signature.decode(execution.claim.body)
        except DecodeFailed as error:
            self.refuse(execution, Undecodable(str(error)))
            return
        execution.state, execution.access = self.state, self.access
        self.running += 1
        if handler.batch is not None:
            self.gatherer.join(execution, args[0], handler.batch, alone=alone)
            return
        if handler.signature.wants_context:
            args = (context.Context(execution), *args)
        execution.started = started = monotonic()
        if handler.timeout_s is not None:
            execution.deadline = started + handler.timeout_s
        run, own = self._run(execution, handler, args, kwargs), self._context.copy()
        # A third of create_task's cost is what it does around this.
        if sys.version_info >= (3, 12):
            # It runs up to its first wait in here, and may end: `task` is its own to set.
            asyncio.Task(run, loop=self._loop, name="streamjobs-job", context=own, eager_start=True)
        else:
            execution.task = asyncio.Task(run, loop=self._loop, name="streamjobs-job", context=own)

    def _start_in_process(self, execution: Execution) -> None:
        """Start the handler in a process; with none free, give the claim to a worker that may have one."""
        pool = self.pool
        assert pool is not None
        execution.queue.metered_until = monotonic() + METERED_S
        if pool.free <= 0:
            self._settler.release(execution)
            return
        pool.reserve()
        self.running += 1
        execution.started = monotonic()
        run, own = self._run_in_process(execution, pool), self._context.copy()
        execution.task = self._background.spawn(run, own)

    async def _run_in_process(self, execution: Execution, pool: Pool) -> None:
        context.current.set(execution)
        if self.spans is not None:
            self.spans.begin(execution)
        try:
            failpoints.failpoint("worker.before_handler")
            outcome = await pool.run(execution)
            failpoints.failpoint("worker.after_handler")
        except BaseException as error:
            outcome = outcomes.of_error(execution, error, self._rules)
        pool.vacate()
        self._ended(execution, outcome)

    def processes_for(self, queue: WorkerQueue) -> int | None:
        """Return how many jobs of a queue find a process; None where they have needed none of late."""
        if self.pool is None or not queue.metered_until:
            return None
        free = self.pool.free
        if monotonic() < queue.metered_until:
            return free
        # While all are taken, one job is enough to learn whether the queue still needs them.
        return None if free > 0 else 1

    async def _run(self, execution: Execution, handler: Handler, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if execution.task is None:
            execution.task = asyncio.current_task(self._loop)
        context.current.set(execution)
        if self.spans is not None:
            self.spans.begin(execution)
        try:
            if failpoints.armed:
                failpoints.failpoint("worker.before_handler")
            if handler.is_async:
                value = await handler.function(*args, **kwargs)
            else:
                value = await self._in_thread(handler.function, args, kwargs)
            if failpoints.armed:
                failpoints.failpoint("worker.after_handler")
        except BaseException as error:
            outcome = outcomes.of_error(execution, error, self._rules)
            execution.traceback = outcomes.trace(error)
            self._ended(execution, outcome)
        else:
            self._ended(execution, Returned(value))

    async def _in_thread(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        value = await self._threads.submit(contextvars.copy_context(), lambda: function(*args, **kwargs))
        if inspect.isawaitable(value):
            # Async behind a plain wrapper: unawaited it would count as done without having run.
            value = await value
        return value

    def _start_batch(self, executions: list[Execution], items: list[Any]) -> None:
        """Start one handler for all of these, in one task."""
        handler = executions[0].handler
        assert handler is not None
        args = (context.BatchContext[Any](executions), items) if handler.signature.wants_context else (items,)
        run, own = self._run_batch(executions, handler, args), self._context.copy()
        task = self._background.spawn(run, own)
        started = monotonic()
        for execution in executions:
            execution.task, execution.beside, execution.started = task, executions, started
            if handler.timeout_s is not None:
                execution.deadline = started + handler.timeout_s

    async def _run_batch(self, executions: list[Execution], handler: Handler, args: tuple[Any, ...]) -> None:
        if self.spans is not None:
            self.spans.begin_batch(executions)
        try:
            failpoints.failpoint("worker.before_handler")
            if handler.is_async:
                value = await handler.function(*args)
            else:
                value = await self._in_thread(handler.function, args, {})
            failpoints.failpoint("worker.after_handler")
        except BaseException as error:
            ends = batch.failures(executions, error, self._rules)
        else:
            ends = batch.outcomes_of(executions, value, self._rules)
        for execution, outcome in zip(executions, ends, strict=True):
            execution.beside = ()
            self._ended(execution, outcome)

    def _leave(self) -> None:
        """Take note that a job leaves its slot without having run."""
        self.running -= 1
        self.on_end()

    def _ended(self, execution: Execution, outcome: Outcome) -> None:
        """Take in what came of a run. Its task ends with this, and nobody waits for that."""
        forks.end_copy(self._copies)
        try:
            self._take_in(execution, outcome)
        except Exception as error:
            self._background.take(error)

    def _take_in(self, execution: Execution, outcome: Outcome) -> None:
        # The task's context holds the execution: with this the pair is freed at once, not by the collector.
        execution.task = None
        if self.spans is not None:
            self.spans.end(execution, outcome)
        if execution.abandoned:
            self.stuck -= 1
            self._settler.vacate(execution)
            # Its slot may have been among those that were not replaced.
            self.on_end()
            return
        self.running -= 1
        self.finished += 1
        if execution.settling:
            # Given back without it, at the worker's end.
            self.on_end()
            return
        execution.ran_s = monotonic() - execution.started
        if isinstance(outcome, Returned):
            if execution.meta is FRESH:
                self._settler.returned(execution)
            else:
                self._returned(execution, outcome)
        elif execution.ending is Ending.LOST:
            self._drop(execution)
            self._settler.vacate(execution)
        else:
            self._decide(execution, outcome)
        self.on_end()

    def _drop(self, execution: Execution) -> None:
        """Hold a job no more that has ended elsewhere, or is another worker's."""
        self.dropped += 1
        execution.queue.drop(execution)

    def _returned(self, execution: Execution, outcome: Returned) -> None:
        """Settle a success, also one that comes late: the first one counts, whoever brings it."""
        try:
            kept = outcome.value if execution.meta.result_ttl_ms else None
            self._settler.decided(execution, self._decision(execution, Returned(kept)))
        except UsageError as error:
            self._decide(execution, outcomes.unkeepable(error))

    def _decide(self, execution: Execution, outcome: Outcome) -> None:
        decision = self._decision(execution, outcome)
        self._report(execution, decision)
        self._settler.decided(execution, decision)

    def _decision(self, execution: Execution, outcome: Outcome) -> Decision:
        policy = execution.handler.options.retry if execution.handler else _POLICY
        return decide(outcome, execution.meta, policy, self._random.random())

    def refuse(self, execution: Execution, outcome: Outcome) -> bool:
        """Settle a claim that cannot be started."""
        self.finished += 1
        self._decide(execution, outcome)
        return False

    def _park(self, execution: Execution, kind: str) -> bool:
        """Put a claim off until a worker that knows its kind may have come."""
        said = "kind %r of queue %s is not registered here: its jobs wait, for 24 h at most, for a worker that knows it"
        complaints, queue = self._settler.complaints, execution.queue.keys.queue
        complaints.say(f"kind {kind}", said, kind[:80], queue, every_s=UNKNOWN_S)
        return self.refuse(execution, Unknown())

    def abandon(self, execution: Execution) -> None:
        """Give the slot of a handler that does not end to others, and settle its job if that is not lost.

        It is retried no sooner than a lease from now, since the old run goes on.
        """
        execution.abandoned = True
        execution.ran_s = monotonic() - execution.started
        self.running -= 1
        self.finished += 1
        self.stuck += 1
        said = "job %s (%s) does not end: abandoned"
        log.error(said, execution.job_id, execution.kind, extra=execution.log_fields)
        lost = execution.ending is Ending.LOST
        outcome = Interrupted() if lost else outcomes.timed_out(execution)
        if self.spans is not None:
            self.spans.end(execution, outcome)
        if lost:
            self._drop(execution)
        else:
            decision = self._decision(execution, outcome)
            if isinstance(decision, Retry):
                delay_ms = max(decision.delay_ms, execution.queue.lease_ms)
                decision = msgspec.structs.replace(decision, delay_ms=delay_ms)
            self._report(execution, decision)
            self._settler.decided(execution, decision)
        self.on_end()

    async def close(self) -> None:
        """End the threads that are idle, and every process."""
        self._threads.close(0.5)
        if self.pool is not None:
            await self.pool.close()

    def _report(self, execution: Execution, decision: Decision) -> None:
        if isinstance(decision, Bury):
            what = f"is dead ({decision.reason})"
        elif isinstance(decision, Retry):
            what = f"fails, again in {decision.delay_ms / 1000:.1f} s"
        else:
            return
        log.warning(
            "job %s (%s, attempt %d) %s: %s%s",
            execution.job_id,
            execution.kind,
            execution.attempt,
            what,
            decision.error,
            "\n" + execution.traceback if execution.traceback else "",
            extra=execution.log_fields,
        )
