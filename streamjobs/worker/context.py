"""What a handler can know of its own run."""

import asyncio
import logging
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from streamjobs.core.errors import UsageError
from streamjobs.core.registry import Handler
from streamjobs.worker.execution import Execution

S = TypeVar("S")

current: ContextVar[Execution | None] = ContextVar("streamjobs_current", default=None)


class Context(Generic[S]):
    """The run of one job. `Context[State]` types `state`, what the app's lifespan yielded.

    A parameter with this annotation, the first one, is filled by the worker and is no argument of
    the job.
    """

    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    @property
    def _handler(self) -> Handler:
        assert self._execution.handler is not None
        return self._execution.handler

    @property
    def id(self) -> str:
        """The job's id; the same over retries and replays."""
        return self._execution.job_id

    @property
    def kind(self) -> str:
        return self._execution.kind

    @property
    def queue(self) -> str:
        return self._execution.queue.keys.queue

    @property
    def attempt(self) -> int:
        """1 + the failures and the crashes before this run; snoozes and deploys do not count."""
        return self._execution.attempt

    @property
    def max_attempts(self) -> int:
        """With this many failures the job is dead."""
        return self._handler.options.retry.max_attempts

    @property
    def deliveries(self) -> int:
        """How often the present entry was delivered to a worker; 1 but for takeovers."""
        return self._execution.claim.deliveries

    @property
    def enqueued_at(self) -> float:
        """When the server took the job, in seconds since 1970 of its clock."""
        return self._execution.enqueued_ms / 1000

    @property
    def idempotency_key(self) -> str:
        """A key for downstream calls: the same over retries, takeovers and replays of this job.

        Where newer arguments have replaced those of an earlier start, it is another one, for it stands for
        another effect: the job's id, `+`, and how often.
        """
        newer = self._execution.newer
        return f"{self._execution.job_id}+{newer}" if newer else self._execution.job_id

    @property
    def headers(self) -> dict[str, str]:
        """What the producer sent along."""
        return dict(self._execution.meta.headers or {})

    @property
    def state(self) -> S:
        """What the app's lifespan yielded; None without one."""
        state: S = self._execution.state
        return state

    @property
    def lost(self) -> asyncio.Event:
        """Set when another worker holds the job, or it was cancelled: what this run does no longer counts.

        Plain functions look at `lost.is_set()`.
        """
        return self._execution.lost

    @property
    def log(self) -> "logging.LoggerAdapter[logging.Logger]":
        """A logger whose records carry the job's id, kind, queue and attempt."""
        return logging.LoggerAdapter(
            logging.getLogger(f"streamjobs.job.{self.kind}"),
            {"job_id": self.id, "kind": self.kind, "queue": self.queue, "attempt": self.attempt},
        )


def current_job() -> Context[Any]:
    """Return the context of the job that this code runs for.

    Raises:
        UsageError: this code does not run for a job.
    """
    execution = current.get()
    if execution is None:
        raise UsageError("current_job(): no job runs here; call it from what a handler calls")
    return Context(execution)
