"""What follows from an outcome. Pure: no clock, no server, no randomness of its own."""

from datetime import UTC, datetime
from typing import assert_never

from streamjobs.core.job import (
    Bury,
    Cancel,
    Cancelled,
    Complete,
    Crashed,
    Decision,
    Expired,
    Interrupted,
    Meta,
    Outcome,
    Raised,
    Release,
    Retry,
    Returned,
    Snooze,
    Snoozed,
    TimedOut,
    Undecodable,
    Unknown,
)
from streamjobs.core.retry import Retry as Policy
from streamjobs.core.states import DeadReason

PARK_CAP_MS = 60_000
PARKED_FOR_MS = 24 * 3_600_000
"""A kind that nobody knows for this long is taken for a mistake, not for a deploy under way."""
_DOUBLINGS = 6


def decide(outcome: Outcome, meta: Meta, policy: Policy, draw: float) -> Decision:
    """Return what is to be written for `outcome`.

    Args:
        outcome: what the handler did.
        meta: what the job brought along, its failures before this start above all.
        policy: the kind's retry policy.
        draw: an even draw from [0, 1) for the jitter.
    """
    match outcome:
        case Returned(value):
            return Complete(value)
        case Raised(permanent=True) as raised:
            return Bury(DeadReason.PERMANENT, raised.error, raised.error_class)
        case Raised(uncharged=True) as raised:
            return Snooze(_delay(raised.after_ms, policy, meta.rate_waits + 1, draw), "rate_waits")
        case Raised(error, error_class, after_ms=after_ms):
            return _failed(error, error_class, after_ms, meta, policy, draw)
        case TimedOut(timeout_ms):
            error = f"TimeoutError: still running after {timeout_ms / 1000:g} s"
            return _failed(error, "timeout", None, meta, policy, draw)
        case Snoozed(delay_ms):
            return Snooze(delay_ms)
        case Cancelled(reason):
            return Cancel(reason)
        case Interrupted():
            return Release()
        case Crashed(error):
            return _died(error, meta, policy, draw)
        case Expired(at_ms):
            return _expire(at_ms, meta)
        case Unknown():
            return _park(meta)
        case Undecodable(error):
            return Bury(DeadReason.UNDECODABLE, error, "validation")
    assert_never(outcome)


def crashed(error: str) -> Decision:
    """Return the decision for a job whose starts keep ending with the death of their process."""
    return Bury(DeadReason.CRASH_LIMIT, error, "crash", charged=False)


def _failed(error: str, error_class: str, after_ms: int | None, meta: Meta, policy: Policy, draw: float) -> Decision:
    failures = meta.failures + 1
    if failures >= policy.max_attempts:
        return Bury(DeadReason.EXHAUSTED, error, error_class)
    return Retry(_delay(after_ms, policy, failures, draw), error, error_class)


def _died(error: str, meta: Meta, policy: Policy, draw: float) -> Decision:
    """Count a crash that is nobody else's: apart from failures, and from those that a neighbour may have caused."""
    crashes = meta.process_crashes + 1
    if crashes >= policy.max_crashes:
        return Bury(DeadReason.CRASH_LIMIT, error, "crash")
    return Retry(_delay(None, policy, crashes, draw), error, "crash", "process_crashes")


def _delay(after_ms: int | None, policy: Policy, count: int, draw: float) -> int:
    return policy.backoff.delay_ms(count, draw) if after_ms is None else after_ms


def _expire(at_ms: int, meta: Meta) -> Decision:
    text = f"not started by {datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec='milliseconds')}"
    return Cancel(f"expired: {text}") if meta.drop_expired else Bury(DeadReason.EXPIRED, text, "expired", charged=False)


def _park(meta: Meta) -> Decision:
    """Wait for a worker that knows the kind: 1, 2, 4 ... 60 s, for 24 h in all.

    The time waited follows from the number of parks, so no clock is asked.
    """
    capped = max(0, meta.parks - _DOUBLINGS)
    waited = sum(park_delay_ms(n) for n in range(meta.parks - capped)) + capped * PARK_CAP_MS
    if waited >= PARKED_FOR_MS:
        return Bury(DeadReason.UNKNOWN_KIND, "no worker knew this kind for 24 h", "bug", charged=False)
    return Snooze(park_delay_ms(meta.parks), "parks")


def park_delay_ms(parks: int) -> int:
    """Return how long a job of an unknown kind waits after having been parked this often."""
    return min(PARK_CAP_MS, 1000 << min(parks, 6))
