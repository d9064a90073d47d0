"""From a decision to what is written of it: endings, postponements, deaths, and their texts."""

from typing import Any

import msgspec

from streamjobs.core import codec
from streamjobs.core.job import (
    ERROR_CHARS,
    HISTORY_LENGTH,
    Attempt,
    Bury,
    Retry,
    Snooze,
)
from streamjobs.core.numbers import FAR_MS, whole
from streamjobs.protocol.leases import Giveback
from streamjobs.protocol.settle import Death, Ending, Postponement
from streamjobs.worker.execution import Execution


def ending(execution: Execution, result: bytes) -> Ending:
    """Return the fence of a claim with what its job owns; `result` says how it ended."""
    claim, meta = execution.claim, execution.meta
    newer = execution.newer if meta.latest else None
    return Ending(claim.entry, claim.deliveries, execution.local_id, meta.held_key, meta.result_ttl_ms, result, newer)


def cancellation(execution: Execution, reason: str) -> Ending:
    """Return what is written of a job that its handler cancels: it gives back a window's key too."""
    kept = codec.encode_json({"state": "cancelled", "reason": reason})
    return msgspec.structs.replace(ending(execution, kept), dedupe_key=execution.meta.dedupe_key)


def done(value: object) -> bytes:
    """Return the kept result of a job that is done.

    Raises:
        UsageError: it has no JSON form, or exceeds 256 KiB.
    """
    return codec.encode_json({"state": "done", "value": msgspec.Raw(codec.encode_value(value, "what was returned"))})


def dead(reason: str, error: str) -> bytes:
    """Return what is kept of how a job died."""
    return codec.encode_json({"state": "dead", "reason": reason, "error": error})


def clean(text: str) -> str:
    """Return an error's text as it is stored: bounded, and valid Unicode whatever the error held."""
    return text[:ERROR_CHARS].encode("utf-8", "replace").decode()


def _history(execution: Execution, last: Attempt | None) -> tuple[Attempt, ...]:
    """Return the last attempts: those that meta tells of, the starts that ended in a crash, and the last."""
    starts = execution.claim.starts.split()
    crashes = []
    for number, start in enumerate(starts, execution.attempt - len(starts)):
        worker, _, when = start.rpartition("@")
        at = when.partition("/")[0]
        crashes.append(Attempt(min(max(0, whole(at)), FAR_MS), max(0, number), "the process died", "crash", worker))
    return (*execution.meta.history, *crashes, *([last] if last else []))[-HISTORY_LENGTH:]


def postponement(execution: Execution, decision: Retry | Snooze, consumer: str, now_ms: int) -> Postponement:
    """Return what is written for a retry or a snooze: the meta that the job carries on."""
    meta = execution.meta
    failed = None
    changes: dict[str, Any] = {"id": execution.local_id, "crashes": execution.crashes}
    if isinstance(decision, Retry):
        failed = Attempt(now_ms, execution.attempt, clean(decision.error), decision.error_class, consumer)
    changes[decision.why] = getattr(meta, decision.why) + 1
    changes["history"] = _history(execution, failed)
    new = codec.encode_meta(msgspec.structs.replace(meta, **changes))
    return Postponement(ending(execution, b""), decision.delay_ms, new)


def death(execution: Execution, decision: Bury, consumer: str, now_ms: int) -> Death:
    """Return what is written of a dead job."""
    number = execution.attempt
    error = clean(decision.error)
    last = Attempt(now_ms, number, error, decision.error_class, consumer) if decision.charged else None
    history = codec.encode_json(_history(execution, last))
    attempts = number if decision.charged else number - 1
    return Death(ending(execution, dead(decision.reason, error)), decision.reason, error, attempts, history)


def giveback(execution: Execution, *, held_alone: bool = False, quiet: bool = False) -> Giveback:
    """Return what is written of a claim given back: a start that does not count is taken back.

    A first delivery is never marked, and its start would be presumed a crash by the next holder: hence -1.
    """
    claim = execution.claim
    mark = int(execution.first or execution.marked)
    return Giveback(claim.entry, claim.deliveries, mark, held_alone, quiet)


def counters(decision: Retry | Snooze | Bury) -> tuple[str, ...]:
    """Return the per-kind counters that grow with a decision: of the error's class, and of the reason."""
    match decision:
        case Retry():
            return (f"error.{decision.error_class}",)
        case Snooze(why="rate_waits"):
            return ("snoozed.rate_waits", "error.rate_limited")
        case Snooze():
            return (f"snoozed.{decision.why}",)
        case Bury():
            return (f"error.{decision.error_class}", f"dead.{decision.reason}")
