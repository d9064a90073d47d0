"""Reliable background jobs on Redis Streams.

A *job* is data: a *kind* (the name of its handler) and a *body* (its arguments, a JSON object). It
goes into a *queue*, is *claimed* by a worker for the time of a *lease*, and ends as done, dead (with
its reason, where it can be seen and *replayed*) or cancelled. What a handler did is its *outcome*,
what follows from it the *decision*, and writing that down is to *settle* the claim.
"""

from streamjobs.app import StreamJobs
from streamjobs.core.context import Context, current_job
from streamjobs.core.errors import (
    Cancel,
    Conflict,
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
from streamjobs.core.options import JobOptions, WorkerOptions
from streamjobs.core.retry import Exponential, Fixed, Retry
from streamjobs.core.states import DeadReason, State
from streamjobs.handle import Handle
from streamjobs.kind import Kind
from streamjobs.operate.jobs import JobStatus
from streamjobs.worker.worker import Worker

__all__ = [
    "Cancel",
    "Conflict",
    "Context",
    "DeadReason",
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
    "Kind",
    "LeaseLost",
    "MissingExtra",
    "NotFound",
    "NotSent",
    "OutcomeUnknown",
    "PayloadTooLarge",
    "Permanent",
    "QueueFull",
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
    "Unavailable",
    "UnknownKind",
    "UsageError",
    "Worker",
    "WorkerOptions",
    "current_job",
]
__version__ = "0.1.0"
