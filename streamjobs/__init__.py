"""Reliable background jobs on Redis Streams.

A *job* is data: a *kind* (the name of its handler) and a *body* (its arguments, a JSON object). It
goes into a *queue*, is *claimed* by a worker for the time of a *lease*, and ends as done, dead (with
its reason, where it can be seen and *replayed*) or cancelled. What a handler did is its *outcome*,
what follows from it the *decision*, and writing that down is to *settle* the claim.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamjobs.app import StreamJobs
    from streamjobs.core.dedupe import Latest, UntilDone, UntilStarted, Window
    from streamjobs.core.errors import (
        Cancel,
        Conflict,
        EffectUnderWay,
        EffectUnsure,
        InvalidOption,
        JobCancelled,
        JobEnded,
        JobFailed,
        LeaseLost,
        MissingExtra,
        NotFound,
        NotSent,
        OutcomeUnknown,
        PayloadTooLarge,
        Permanent,
        QueueFull,
        RateLimited,
        Refused,
        Rejected,
        ResultTimeout,
        Snooze,
        Steer,
        StreamJobsError,
        Temporary,
        Unavailable,
        UnknownKind,
        UsageError,
    )
    from streamjobs.core.job import Job
    from streamjobs.core.limits import Concurrency, Rate
    from streamjobs.core.options import Batch, JobOptions, WorkerOptions
    from streamjobs.core.retry import Exponential, Fixed, Retry
    from streamjobs.core.states import DeadReason, State
    from streamjobs.core.thresholds import Thresholds
    from streamjobs.core.version import __version__ as __version__
    from streamjobs.dead import DeadLetters
    from streamjobs.handle import Handle
    from streamjobs.kind import Kind
    from streamjobs.metrics import Metrics
    from streamjobs.operate.jobs import JobStatus
    from streamjobs.producer.submit import Producer
    from streamjobs.worker.context import BatchContext, Context, current_job
    from streamjobs.worker.logs import JsonFormatter
    from streamjobs.worker.once import Effect
    from streamjobs.worker.worker import Worker

__all__ = [
    "Batch",
    "BatchContext",
    "Cancel",
    "Concurrency",
    "Conflict",
    "Context",
    "DeadLetters",
    "DeadReason",
    "Effect",
    "EffectUnderWay",
    "EffectUnsure",
    "Exponential",
    "Fixed",
    "Handle",
    "InvalidOption",
    "Job",
    "JobCancelled",
    "JobEnded",
    "JobFailed",
    "JobOptions",
    "JobStatus",
    "JsonFormatter",
    "Kind",
    "Latest",
    "LeaseLost",
    "Metrics",
    "MissingExtra",
    "NotFound",
    "NotSent",
    "OutcomeUnknown",
    "PayloadTooLarge",
    "Permanent",
    "Producer",
    "QueueFull",
    "Rate",
    "RateLimited",
    "Refused",
    "Rejected",
    "ResultTimeout",
    "Retry",
    "Snooze",
    "State",
    "Steer",
    "StreamJobs",
    "StreamJobsError",
    "Temporary",
    "Thresholds",
    "Unavailable",
    "UnknownKind",
    "UntilDone",
    "UntilStarted",
    "UsageError",
    "Window",
    "Worker",
    "WorkerOptions",
    "current_job",
]

_HOMES = {
    "app": "StreamJobs",
    "core.dedupe": "Latest UntilDone UntilStarted Window",
    "core.errors": (
        "Cancel Conflict EffectUnderWay EffectUnsure InvalidOption JobCancelled JobEnded JobFailed LeaseLost"
        " MissingExtra NotFound NotSent OutcomeUnknown PayloadTooLarge Permanent QueueFull RateLimited Refused Rejected"
        " ResultTimeout Snooze Steer StreamJobsError Temporary Unavailable UnknownKind UsageError"
    ),
    "core.job": "Job",
    "core.limits": "Concurrency Rate",
    "core.options": "Batch JobOptions WorkerOptions",
    "core.retry": "Exponential Fixed Retry",
    "core.states": "DeadReason State",
    "core.thresholds": "Thresholds",
    "core.version": "__version__",
    "dead": "DeadLetters",
    "handle": "Handle",
    "kind": "Kind",
    "metrics": "Metrics",
    "operate.jobs": "JobStatus",
    "producer.submit": "Producer",
    "worker.context": "BatchContext Context current_job",
    "worker.logs": "JsonFormatter",
    "worker.once": "Effect",
    "worker.worker": "Worker",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for: the command line's help needs none of them."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
