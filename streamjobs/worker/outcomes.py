"""What a handler did, from how it ended: exceptions become outcomes."""

import asyncio
import traceback

from streamjobs.core.classify import Rule, classify
from streamjobs.core.errors import Cancel, Permanent, RateLimited, Snooze, Temporary, UsageError
from streamjobs.core.job import Cancelled, Interrupted, Outcome, Raised, Snoozed, TimedOut
from streamjobs.core.names import milliseconds
from streamjobs.core.text import error_text, valid
from streamjobs.worker.execution import Ending, Execution


def of_error(execution: Execution, error: BaseException, rules: tuple[Rule, ...]) -> Outcome:
    """Return the outcome of a handler that raised `error`, or was ended."""
    if isinstance(error, asyncio.CancelledError) and execution.ending is not Ending.NONE:
        return timed_out(execution) if execution.ending is Ending.DEADLINE else Interrupted()
    return raised(execution, error, rules)


def raised(execution: Execution, error: BaseException, rules: tuple[Rule, ...]) -> Raised | Snoozed | Cancelled:
    """Return what a handler asks for by raising `error`."""
    try:
        return _raised(execution, error, rules)
    except BaseException as problem:
        # A wrong delay, or a rule of the app that fails or exits: none may cost the worker a slot, or its life.
        return Raised(f"{error_text(error)} (and {error_text(problem)})", "bug")


def _raised(execution: Execution, error: BaseException, rules: tuple[Rule, ...]) -> Raised | Snoozed | Cancelled:
    match error:
        case Snooze():
            return Snoozed(_delay_ms(error.seconds))
        case Cancel():
            return Cancelled(valid(str(error)))
        case RateLimited():
            return Raised(error_text(error), "rate_limited", uncharged=True, after_ms=_after_ms(error.after))
    cause = error.__cause__ if isinstance(error, Temporary | Permanent) and error.__cause__ else error
    policy = execution.handler.options.retry.permanent if execution.handler else ()
    return Raised(
        error_text(error),
        classify(cause, rules),
        permanent=isinstance(error, (Permanent, *policy)),
        after_ms=_after_ms(error.after) if isinstance(error, Temporary) else None,
    )


def unkeepable(error: UsageError) -> Raised:
    """Return the outcome of a handler whose value has no form in which it can be kept."""
    return Raised(f"the result cannot be kept: {error}", "bug", permanent=True)


def timed_out(execution: Execution) -> TimedOut:
    """Return the outcome of a handler that was still running at its deadline."""
    timeout_s = execution.handler.timeout_s if execution.handler else None
    if execution.extended and execution.deadline:
        timeout_s = execution.deadline - execution.started
    return TimedOut(round((timeout_s or 0) * 1000))


def trace(error: BaseException) -> str:
    """Return the traceback of an error, as it can be logged; "" where it has none that can be told."""
    try:
        return valid("".join(traceback.format_exception(error)))
    except BaseException:
        return ""


def _after_ms(after: float | None) -> int | None:
    return None if after is None else _delay_ms(after)


def _delay_ms(seconds: float) -> int:
    return 0 if seconds < 0 else milliseconds(seconds, "delay", low_ms=0)
