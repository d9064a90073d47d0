"""What a handler can know of its own run."""

import asyncio
import logging
from collections.abc import Sequence
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, Generic, TypeVar, overload

from streamjobs.core.errors import UsageError
from streamjobs.core.names import milliseconds
from streamjobs.core.registry import Handler
from streamjobs.worker.execution import Execution
from streamjobs.worker.once import KEEP, Guard, IfUnsure, Once

S = TypeVar("S")
T = TypeVar("T")

current: ContextVar[Execution | None] = ContextVar("streamjobs_current", default=None)

MAX_EXTENSION_MS = 24 * 3_600_000


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
        """A key for downstream calls: the same over retries, takeovers and replays of this job, also into another
        queue; but not over one that was asked for a new key.

        Where newer arguments have replaced those of an earlier start, it is another one, for it stands for
        another effect: the job's id, `+`, and how often.
        """
        newer, own = self._execution.newer, self._execution.meta.idempotency_key or self._execution.job_id
        return f"{own}+{newer}" if newer else own

    @property
    def headers(self) -> dict[str, str]:
        """What the producer sent along."""
        return dict(self._execution.meta.headers or {})

    @property
    def state(self) -> S:
        """What the app's lifespan yielded; None without one, and in a process of a handler's own."""
        state: S = self._execution.state
        return state

    @property
    def lost(self) -> asyncio.Event:
        """Set when another worker holds the job, or it was cancelled: what this run does no longer counts.

        Plain functions look at `lost.is_set()`.
        """
        return self._execution.lost

    @overload
    def once(
        self,
        key: str | None = None,
        *,
        type: None = None,
        first: bool = False,
        if_unsure: IfUnsure | None = None,
        keep: float | timedelta = KEEP,
    ) -> Once[Any]: ...
    @overload
    def once(
        self,
        key: str | None = None,
        *,
        type: type[T],
        first: bool = False,
        if_unsure: IfUnsure | None = None,
        keep: float | timedelta = KEEP,
    ) -> Once[T]: ...
    def once(
        self,
        key: str | None = None,
        *,
        type: type[Any] | None = None,
        first: bool = False,
        if_unsure: IfUnsure | None = None,
        keep: float | timedelta = KEEP,
    ) -> Once[Any]:
        """Guard an effect, so that a repeated run, or another job with the same key, does not have it again.

        ::

            async with ctx.once("email:42:welcome", keep=timedelta(days=30)) as effect:
                if effect.needed:
                    effect.value = await send_email(42)

        A plain function writes `with` for `async with`. The effect is recorded when the block has ended
        well; a block that raises records nothing. It happens at least once: again if a run dies, or its
        block raises, between the effect and its record. With `first=True` it happens at most once:
        where an earlier run began it and did not record it, `if_unsure` decides. While one run is in
        its block no other gets into one of the same key. docs/idempotency.md says which to choose.

        Args:
            key: 1 to 256 bytes of UTF-8, seen by all jobs of the queue; default the job's own id, for a
                job with one effect.
            type: what `effect.value` is to be in runs that find it recorded; default as JSON has it.
            first: never have the effect twice.
            if_unsure: with `first`, of an effect that may have happened: "raise" EffectUnsure (the
                default), "skip" it, or "run" it again, with `effect.unsure` set.
            keep: seconds for which the record is kept, 7 days by default; longer than any retry or replay
                of its jobs can be away.

        Raises (the block's begin, which then has had no effect):
            EffectUnderWay: another run is in its block; not caught, the job comes back later, uncharged.
            EffectUnsure: see `if_unsure`; not caught, the job is dead.
            LeaseLost: another worker holds this job.
            Temporary: the server could not be reached for 30 s. Its end raises that too: the effect has
                happened then, without a record.
        """
        return Once(self._execution, Guard.of(key, self._execution.local_id, type, first, if_unsure, keep))

    def extend(self, seconds: float | timedelta) -> None:
        """Move this run's deadline to so many seconds from now, later or sooner: as often as the work shows how long it
        takes. In a batch it is the deadline of all.

        A kind without timeout has no deadline, and gets none. From any thread. An async handler is cancelled at its
        deadline, and then it is too late; a plain function that is past its own may still have another, until its
        worker gives it up `grace` seconds later.

        Args:
            seconds: from now; 1 ms to 24 h.

        Raises:
            InvalidOption: not such a time.
            UsageError: its kind has `process=True`: what is killed at its deadline cannot move it.
        """
        if self._handler.options.process:
            raise UsageError("extend: a process=True handler is killed at its timeout; give its kind a longer one")
        self._execution.extend(milliseconds(seconds, "seconds", high_ms=MAX_EXTENSION_MS) / 1000)

    @property
    def log(self) -> "logging.LoggerAdapter[logging.Logger]":
        """A logger whose records carry the job's id, kind, queue and attempt."""
        return logging.LoggerAdapter(logging.getLogger(f"streamjobs.job.{self.kind}"), self._execution.log_fields)


class BatchContext(Generic[S]):
    """The run of several jobs by one call. `BatchContext[State]` types `state`, what the app's lifespan yielded.

    A first parameter with this annotation is filled by the worker, for kinds with `batch`.
    """

    def __init__(self, executions: Sequence[Execution]) -> None:
        self.jobs: list[Context[S]] = [Context(one) for one in executions]
        """The context of each job, in the order of the items."""

    @property
    def state(self) -> S:
        """What the app's lifespan yielded; None without one."""
        return self.jobs[0].state

    def extend(self, seconds: float | timedelta) -> None:
        """Move the deadline of the run, which is that of all its jobs; see `Context.extend`."""
        self.jobs[0].extend(seconds)


def current_job() -> Context[Any]:
    """Return the context of the job that this code runs for.

    Raises:
        UsageError: this code does not run for a job, or for several at once.
    """
    execution = current.get()
    if execution is None:
        raise UsageError("current_job(): no job runs here; call it from what the handler of one job calls")
    return Context(execution)
