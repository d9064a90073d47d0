"""What can go wrong, grouped by what the catcher should do next.

::

    StreamJobsError
    ├── UsageError            fix the code or the configuration
    │   ├── InvalidOption       an option, name, URL or delay outside its range
    │   ├── UnknownKind         no handler of that name is registered
    │   ├── PayloadTooLarge     the encoded arguments exceed the limit
    │   ├── MissingExtra        an optional package is not installed
    │   └── Rejected            the server refuses for good (password, rights, wrong type)
    ├── Unavailable           nothing was done; try again
    │   └── NotSent             this job was not sent before its deadline
    ├── OutcomeUnknown        it may have happened; `retry()` finds out
    ├── LeaseLost             drop it: another worker holds the job
    ├── Refused               refused by the state of things
    │   ├── QueueFull           the queue holds its maximum
    │   └── Conflict            another job holds the dedupe key
    ├── NotFound              no such job
    └── JobEnded              how a job that was waited for ended
        ├── JobFailed           it is dead
        ├── JobCancelled        it was cancelled
        └── ResultTimeout       not ended in the time given

    Steer                     raised *by* handlers to steer their job
    ├── Temporary               retry, optionally after a time of its own
    ├── Permanent               dead at once
    │   └── EffectUnsure          nobody knows whether a guarded effect happened
    ├── RateLimited             again later, no attempt charged
    │   └── EffectUnderWay        another run is at the guarded effect now
    ├── Snooze                  again later, no attempt charged
    └── Cancel                  ends as cancelled
"""

from collections.abc import Callable
from typing import Any


class StreamJobsError(Exception):
    """Base of every error that this package raises."""


class UsageError(StreamJobsError):
    """The call cannot work as written; nothing was sent."""


class InvalidOption(UsageError):
    """An option, a name, a URL or a delay is outside what is allowed."""


class UnknownKind(UsageError):
    """No handler of this name is registered."""


class PayloadTooLarge(UsageError):
    """The encoded arguments exceed the payload limit; nothing was sent."""


class MissingExtra(UsageError):
    """An optional package is needed; the message names the extra to install."""


class Rejected(UsageError):
    """The server refuses this call and will go on refusing it.

    Attributes:
        word: the first word of its reply (`NOAUTH`, `NOPERM`, `WRONGTYPE`, ...).
    """

    def __init__(self, message: str, *, word: str = "") -> None:
        super().__init__(message)
        self.word = word


class Unavailable(StreamJobsError):
    """The server did not do it and may do it later; nothing was changed.

    Attributes:
        word: the first word of its reply (`LOADING`, `OOM`, ...), or `CONNECT`.
    """

    def __init__(self, message: str, *, word: str = "") -> None:
        super().__init__(message)
        self.word = word


class NotSent(Unavailable):
    """The job was definitely not enqueued before the deadline."""


class OutcomeUnknown(StreamJobsError):
    """The call was sent and its reply never came: it may or may not have been done.

    For an enqueue, `retry()` sends the very same batch again: the server answers with what it did
    the first time, or does it now. It is exact for 5 minutes and refuses afterwards.
    """

    def __init__(self, message: str, *, retry: Callable[[], Any] | None = None) -> None:
        super().__init__(message)
        self._retry = retry

    def retry(self) -> Any:
        """Send the same batch again.

        Returns:
            What the failed call would have returned: the job's handle from a `*_sync` call, an
            awaitable of it from an asyncio call.

        Raises:
            UsageError: the call that failed cannot be repeated exactly, or 5 minutes have passed.
        """
        if self._retry is None:
            raise UsageError("this call cannot be repeated exactly: look at the state instead")
        return self._retry()


class LeaseLost(StreamJobsError):
    """Another worker holds the job now; what this run does no longer counts."""


class Refused(StreamJobsError):
    """The state of the queue, of the job or of the server does not allow it; nothing was changed."""


class QueueFull(Refused):
    """The queue already holds its maximum; this job was not enqueued.

    Attributes:
        queue: its name.
        max_waiting: how many jobs may wait in it.
    """

    def __init__(self, message: str, *, queue: str = "", max_waiting: int = 0) -> None:
        super().__init__(message)
        self.queue = queue
        self.max_waiting = max_waiting


class Conflict(Refused):
    """Another job holds the dedupe key."""


class NotFound(StreamJobsError):
    """No such job, or it ended so long ago that nothing is known of it."""


class JobEnded(StreamJobsError):
    """Base of how a job that was waited for ended without a result."""


class JobFailed(JobEnded):
    """The job is dead.

    Attributes:
        reason: one of the dead reasons (`exhausted`, `permanent`, ...).
        error: type and text of the last error.
    """

    def __init__(self, message: str, *, reason: str = "", error: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.error = error


class JobCancelled(JobEnded):
    """The job was cancelled."""


class ResultTimeout(JobEnded):
    """The job has not ended in the time given; it is not affected."""


class Steer(Exception):
    """Base of what a handler raises to steer its own job."""


class _After(Steer):
    def __init__(self, message: str = "", *, after: float | None = None) -> None:
        """`after`: seconds until the next run; None takes the retry policy's delay."""
        super().__init__(message)
        self.after = after


class Temporary(_After):
    """Fail this attempt; it is retried, `after` seconds from now if given."""


class RateLimited(_After):
    """The downstream is over its limit: run again `after` seconds from now, uncharged."""


class Permanent(Steer):
    """Fail for good: the job is dead at once, with this text as its error."""


class EffectUnsure(Permanent):
    """A run began this effect and ended before it was recorded: it may have happened, or not.

    Raised by `ctx.once(..., first=True)`. Not caught, the job is dead with this text, for somebody to look.

    Attributes:
        key: the effect's key.
        job_id: the job whose run began it.
    """

    def __init__(self, message: str, *, key: str = "", job_id: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.job_id = job_id


class EffectUnderWay(RateLimited):
    """Another run is at this effect now. Raised by `ctx.once`; not caught, the job comes back later, uncharged.

    Attributes:
        key: the effect's key.
        job_id: the job whose run is at it.
    """

    def __init__(self, message: str, *, key: str = "", job_id: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.job_id = job_id


class Snooze(Steer):
    """Run again after this many seconds; no attempt is charged."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"snoozed for {seconds} s")
        self.seconds = seconds


class Cancel(Steer):
    """End the job as cancelled, with this text as the reason."""
