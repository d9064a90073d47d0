"""Run claims: one task per job; what its handler did becomes an outcome, and that a decision."""

import asyncio
import contextvars
import logging
import traceback
from collections.abc import Callable
from random import Random
from time import monotonic
from typing import Any

from streamjobs.core import context
from streamjobs.core.classify import Rule, classify
from streamjobs.core.codec import DecodeFailed, decode_meta
from streamjobs.core.decide import decide
from streamjobs.core.errors import Cancel, Permanent, RateLimited, Snooze, Temporary
from streamjobs.core.execution import Ending, Execution
from streamjobs.core.failpoints import failpoint
from streamjobs.core.job import (
    FRESH,
    Bury,
    Cancelled,
    Decision,
    Interrupted,
    Meta,
    Outcome,
    Raised,
    Returned,
    Snoozed,
    TimedOut,
    Undecodable,
    Unknown,
)
from streamjobs.core.job import Retry as RetryDecision
from streamjobs.core.registry import Handler, stranger
from streamjobs.core.retry import Retry
from streamjobs.worker.queues import Held, WorkerQueue
from streamjobs.worker.settle import Settler
from streamjobs.worker.threads import Threads

log = logging.getLogger("streamjobs.worker")

_POLICY = Retry()
_context_copy = contextvars.copy_context


class Runner:
    """Starts claims and takes in what comes of them; knows how many run."""

    def __init__(
        self, handlers: dict[str, Handler], rules: tuple[Rule, ...], settler: Settler, random: Random
    ) -> None:
        self._handlers = {kind.encode(): handler for kind, handler in handlers.items()}
        self._rules = rules
        self._settler = settler
        self._random = random
        self._threads = Threads()
        self._loop = asyncio.get_running_loop()
        self.state: Any = None
        self.running = 0
        self.stuck = 0
        self.finished = 0
        """Jobs that have ended here, whatever came of them; grows for as long as the worker lives."""
        self.on_end: Callable[[], None] = lambda: None
        """Called after each end, for whoever waits for a free slot."""

    def prepare(self, queue: WorkerQueue, held: Held) -> Execution | None:
        """Decode a claim; one that no handler here can run is settled at once, and None returned."""
        claim = held.claim
        try:
            meta = decode_meta(claim.meta) if claim.meta else FRESH
            if not claim.kind:
                raise DecodeFailed("the entry has no field kind")
        except DecodeFailed as error:
            self._settle(queue, held, FRESH, _POLICY, Undecodable(str(error)))
            return None
        handler = self._handlers.get(claim.kind)
        if handler is None:
            handler = stranger(claim.kind.decode("utf-8", "replace"))
        held.execution = Execution(claim, handler, meta, queue.keys.queue, queue.keys.tag, self.state)
        if not handler.known:
            self._settle(queue, held, meta, _POLICY, Unknown())
            return None
        return held.execution

    def start(self, queue: WorkerQueue, held: Held, execution: Execution) -> None:
        """Start the handler in a task of its own."""
        handler = execution.handler
        try:
            args, kwargs = handler.signature.decode(held.claim.body)
        except DecodeFailed as error:
            self._settle(queue, held, execution.meta, handler.options.retry, Undecodable(str(error)))
            return
        if handler.signature.wants_context:
            args = (execution.context, *args)
        self.running += 1
        execution.started = monotonic()
        if handler.timeout_s is not None:
            execution.deadline = execution.started + handler.timeout_s
        execution.task = self._loop.create_task(self._run(queue, held, execution, args, kwargs))

    async def _run(
        self, queue: WorkerQueue, held: Held, execution: Execution, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        outcome: Outcome
        handler = execution.handler
        context.current.set(execution)
        try:
            failpoint("worker.before_handler")
            if handler.is_async:
                value = await handler.function(*args, **kwargs)
            else:
                function = handler.function
                value = await self._threads.submit(_context_copy(), lambda: function(*args, **kwargs))
            failpoint("worker.after_handler")
        except BaseException as error:
            outcome = self._outcome(execution, error)
            if isinstance(error, (KeyboardInterrupt, SystemExit)) and handler.is_async:
                # asyncio lets these two end the loop; the job is settled all the same.
                log.error("job %s raised %r", execution.job_id, error)
        else:
            self._returned(queue, held, execution, value)
            return
        self._ended(queue, held, execution, outcome)

    def _returned(self, queue: WorkerQueue, held: Held, execution: Execution, value: object) -> None:
        """Settle a success; the plain one, without result or key, in the shortest way."""
        if execution.abandoned:
            self.stuck -= 1
            return
        self.running -= 1
        self.finished += 1
        meta = execution.meta
        run_s = monotonic() - execution.started
        if meta is FRESH:
            self._settler.returned(queue, held, execution.handler.kind, run_s)
        else:
            self._decided(queue, held, execution, Returned(value), run_s)
        self.on_end()

    def _ended(self, queue: WorkerQueue, held: Held, execution: Execution, outcome: Outcome) -> None:
        if execution.abandoned:
            self.stuck -= 1
            return
        self.running -= 1
        self.finished += 1
        if execution.ending is Ending.LOST:
            queue.held.pop(held.claim.entry, None)
        else:
            self._decided(queue, held, execution, outcome, monotonic() - execution.started)
        self.on_end()

    def abandon(self, queue: WorkerQueue, held: Held, execution: Execution) -> None:
        """Settle a job whose handler does not end, and give its slot to others.

        It is retried no sooner than a lease from now, since the old run goes on.
        """
        execution.abandoned = True
        self.running -= 1
        self.stuck += 1
        log.error("job %s (%s) does not end: abandoned", execution.job_id, execution.handler.kind)
        outcome = self._timed_out(execution)
        decision = decide(outcome, execution.meta, execution.handler.options.retry, self._random.random())
        if isinstance(decision, RetryDecision):
            delay_ms = max(decision.delay_ms, queue.lease_ms)
            decision = RetryDecision(delay_ms, decision.error, decision.error_class)
        self._report(execution, decision)
        self._settler.decided(queue, held, execution.handler.kind, decision)
        self.on_end()

    def close(self) -> None:
        """End the threads that are idle."""
        self._threads.close(0.5)

    def _outcome(self, execution: Execution, error: BaseException) -> Outcome:
        if isinstance(error, asyncio.CancelledError):
            if execution.ending is Ending.DEADLINE:
                return self._timed_out(execution)
            if execution.ending is not Ending.NONE:
                return Interrupted()
        match error:
            case Snooze():
                return Snoozed(max(0, round(error.seconds * 1000)))
            case Cancel():
                return Cancelled(str(error))
            case RateLimited():
                return Raised(_text(error), "rate_limited", uncharged=True, after_ms=_after_ms(error.after))
        policy = execution.handler.options.retry
        permanent = isinstance(error, (Permanent, *policy.permanent))
        after_ms = _after_ms(error.after) if isinstance(error, Temporary) else None
        cause = error.__cause__ if isinstance(error, Temporary | Permanent) and error.__cause__ else error
        outcome = Raised(_text(error), classify(cause, self._rules), permanent=permanent, after_ms=after_ms)
        execution.traceback = "".join(traceback.format_exception(error))
        return outcome

    def _timed_out(self, execution: Execution) -> TimedOut:
        return TimedOut(round((execution.handler.timeout_s or 0) * 1000))

    def _decided(
        self, queue: WorkerQueue, held: Held, execution: Execution, outcome: Outcome, run_s: float
    ) -> None:
        meta, handler = execution.meta, execution.handler
        decision = decide(outcome, meta, handler.options.retry, self._random.random())
        self._report(execution, decision)
        if isinstance(outcome, Returned) and not meta.result_ttl_ms:
            decision = decide(Returned(None), meta, handler.options.retry, 0.0)
        try:
            self._settler.decided(queue, held, handler.kind, decision, run_s)
        except (TypeError, ValueError, NotImplementedError, OverflowError, RecursionError) as error:
            problem = Raised(f"the result cannot be kept: {error}", "bug", permanent=True)
            self._decided(queue, held, execution, problem, run_s)

    def _settle(self, queue: WorkerQueue, held: Held, meta: Meta, policy: Retry, outcome: Outcome) -> None:
        """Settle a claim that was not started."""
        decision = decide(outcome, meta, policy, self._random.random())
        kind = held.execution.handler.kind if held.execution else "_undecodable"
        if isinstance(decision, Bury):
            entry = held.claim.entry.decode()
            log.error("job %s:%s is dead: %s: %s", queue.keys.tag, entry, decision.reason, decision.error)
        self.finished += 1
        self._settler.decided(queue, held, kind, decision)

    def _report(self, execution: Execution, decision: Decision) -> None:
        if not isinstance(decision, RetryDecision | Bury):
            return
        what = "is dead" if isinstance(decision, Bury) else f"fails, again in {decision.delay_ms / 1000:.1f} s"
        log.warning(
            "job %s (%s, attempt %d) %s: %s%s",
            execution.job_id,
            execution.handler.kind,
            execution.attempt,
            what,
            decision.error,
            "\n" + execution.traceback if execution.traceback else "",
        )


def _text(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        # An exception whose own text fails must not take the worker along.
        return type(error).__name__


def _after_ms(after: float | None) -> int | None:
    return None if after is None else max(0, round(after * 1000))
