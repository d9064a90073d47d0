"""Write down what a process does, before it has an effect, in a file of its own outside Redis.

Each note is one `os.write` in append mode, so what was written survives the SIGKILL of its process. A
producer sends through `enqueue`, a handler runs inside `run()`, and `watch_calls` notes the replies
to whatever settles, renews, cancels, replays or purges jobs. The harness notes signals and faults.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from streamjobs import (
    Cancel,
    Context,
    OutcomeUnknown,
    Permanent,
    RateLimited,
    Refused,
    Snooze,
    StreamJobs,
    StreamJobsError,
    Unavailable,
    UsageError,
)
from streamjobs.client import Connections
from streamjobs.client.aio import AsyncExecutor
from streamjobs.client.sync import SyncExecutor
from streamjobs.core.dedupe import mode_name
from streamjobs.core.job import Job
from streamjobs.handle import Handle
from streamjobs.protocol.upkeep import server_time
from streamjobs.worker import context
from streamjobs.worker.worker import Worker
from tests.faults import moves
from tests.faults.history import (
    SUFFIX,
    Answered,
    Began,
    Called,
    Did,
    Died,
    Ended,
    Event,
    Fault,
    Guarded,
    Loss,
    Outcome,
    Settled,
    Signalled,
    Started,
    Stopping,
    Working,
    digest,
    encode,
)

DEFINITE = (UsageError, Unavailable, Refused)
"""Errors of an enqueue which promise that the job is not there."""

Result = Handle[Any] | BaseException


class Recorder:
    """The file of this process. Safe to use from any thread; a forked child needs one of its own."""

    def __init__(self, folder: Path, role: str, *, clock: Connections | None = None) -> None:
        """Open the file and note that the process is there.

        Args:
            clock: where to ask for the server's time at each start; costs a round trip.
        """
        began = monotonic()
        path = folder / f"{role}-{os.getpid()}-{round(began * 1e6)}{SUFFIX}"
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._clock = clock
        self._runs, self._calls, self._batches = count(1), count(1), count(1)
        self.note(Began(began, os.getpid(), role))

    def note(self, *events: Event) -> None:
        """Append events, whole or not at all."""
        os.write(self._file, encode(events))

    # Producers.

    def called(self, jobs: Sequence[Job], *, batch: bool = False) -> list[int]:
        """Note that these jobs are about to be sent; return the numbers of the calls."""
        number = next(self._batches) if batch else 0
        calls = [
            Called(
                monotonic(), next(self._calls), job.kind, job.queue, digest(job.body),
                job.delay_ms, job.at_ms, job.meta.dedupe_key, mode_name(job.meta), job.meta.dedupe_window_ms, number,
            )
            for job in jobs
        ]  # fmt: skip
        self.note(*calls)
        return [call.call for call in calls]

    def answered(self, calls: Sequence[int], results: Iterable[Result]) -> None:
        """Note what became of calls: handles, or the errors in their places."""
        at = monotonic()
        self.note(*[_answer(at, call, result) for call, result in zip(calls, results, strict=False)])

    def enqueue_sync(self, app: StreamJobs, jobs: Iterable[Job]) -> list[Handle[Any] | StreamJobsError]:
        """Send jobs as one batch, from plain code."""
        jobs = list(jobs)
        calls = self.called(jobs, batch=True)
        results = app.enqueue_many_sync(jobs)
        self.answered(calls, results)
        return results

    async def enqueue(self, app: StreamJobs, jobs: Iterable[Job]) -> list[Handle[Any] | StreamJobsError]:
        """Send jobs as one batch. When this is cancelled their fate stays unknown."""
        jobs = list(jobs)
        calls = self.called(jobs, batch=True)
        results = await app.enqueue_many(jobs)
        self.answered(calls, results)
        return results

    @contextmanager
    def one(self, job: Job) -> "Iterator[Callable[[Result], None]]":
        """Note one call around any way of sending it: give the handle to what this yields, as often as it is
        answered; an error that passes is an answer as well."""
        [call] = self.called([job])
        try:
            yield lambda result: self.answered([call], [result])
        except BaseException as error:
            self.answered([call], [error])
            raise

    # Handlers.

    @contextmanager
    def run(self, *lanes: str) -> Iterator["Witness"]:
        """Note the start and the end of a handler, and which limits are to hold for it."""
        number = next(self._runs)
        self.note(self._start(number, lanes))
        outcome: Outcome = "ok"
        try:
            yield Witness(self, number)
        except BaseException as error:
            outcome = _outcome(error)
            raise
        finally:
            self.note(Ended(monotonic(), number, outcome))

    def _start(self, number: int, lanes: tuple[str, ...]) -> Started:
        execution = context.current.get()
        assert execution is not None, "no job runs here"
        claim = execution.claim
        server_ms = self._clock.sync().run(server_time()) if self._clock else 0
        headers = execution.meta.headers or {}
        slot = datetime.fromisoformat(headers["cron-slot"]).timestamp() if "cron-slot" in headers else 0.0
        return Started(
            monotonic(), number, execution.job_id, execution.kind, digest(claim.body),
            execution.queue.keys.job_id(claim.entry.decode()), claim.deliveries, execution.attempt,
            execution.read_at, server_ms, lanes, headers.get("cron", ""), round(slot * 1000),
        )  # fmt: skip

    # The harness.

    def kill(self, pid: int, number: signal.Signals) -> None:
        """Note a signal, and send it."""
        self.note(Signalled(monotonic(), pid, number.name))
        os.kill(pid, number)

    def died(self, pid: int, code: int) -> None:
        """Note that a process is gone."""
        self.note(Died(monotonic(), pid, code))

    @contextmanager
    def fault(self, name: str, pid: int = 0) -> Iterator[None]:
        """Note that something is broken as long as this is open; for one process, or for all."""
        since = monotonic()
        try:
            yield
        finally:
            self.note(Fault(monotonic(), since, name, pid))

    def loss(self, since: float, why: str) -> None:
        """Note that what was acknowledged from `since` until now may be lost, and rightly so."""
        self.note(Loss(monotonic(), since, why))


class Witness:
    """What a handler tells of its run."""

    def __init__(self, recorder: Recorder, run: int) -> None:
        self._recorder, self._run = recorder, run

    def __call__(self, what: str) -> None:
        """Note an effect."""
        self._recorder.note(Did(monotonic(), self._run, what))

    async def once(self, ctx: Context[Any], effect: str, *, first: bool = False, lasting_s: float = 0.0) -> None:
        """Have a guarded effect, if it is still to be had; one of which nobody knows is not had again with `first`."""

        def note(step: Literal["asks", "has", "kept"]) -> None:
            self._recorder.note(Guarded(monotonic(), self._run, effect, step, first))

        note("asks")
        async with ctx.once(effect, first=first, if_unsure="skip" if first else None) as found:
            if found.needed:
                note("has")
                await asyncio.sleep(lasting_s)
        if found.needed:
            note("kept")


def _answer(at: float, call: int, result: Result) -> Answered:
    match result:
        case Handle():
            return Answered(at, call, "ok", result.id, result.duplicate)
        case OutcomeUnknown():
            return Answered(at, call, "unknown", error=type(result).__name__)
        case error:
            definite = isinstance(error, DEFINITE)
            return Answered(at, call, "failed" if definite else "unknown", error=type(error).__name__)


def _outcome(error: BaseException) -> Outcome:
    match error:
        case asyncio.CancelledError():
            return "cancelled"
        case Snooze():
            return "snooze"
        case RateLimited():
            return "rate_limited"
        case Cancel():
            return "cancel"
        case Permanent():
            return "permanent"
    return "error"


@contextmanager
def watch_calls(recorder: Recorder) -> Iterator[None]:
    """Note, for as long as this is open, each reply of the server that settles, moves or renews a job in this
    process, and the moment at which a worker is told to stop."""
    plain, aio = SyncExecutor.run_all, AsyncExecutor.run_all
    run, stop = Worker.run, Worker.stop

    def run_all(self: SyncExecutor, requests: Sequence[Any]) -> list[Any]:
        with _noting(recorder, requests) as replied:
            return replied(plain(self, requests))

    async def arun_all(self: AsyncExecutor, requests: Sequence[Any]) -> list[Any]:
        with _noting(recorder, requests) as replied:
            return replied(await aio(self, requests))

    async def working(self: Worker) -> bool:
        recorder.note(Working(monotonic()))
        return await run(self)

    def stopping(self: Worker) -> None:
        recorder.note(Stopping(monotonic()))
        stop(self)

    SyncExecutor.run_all, AsyncExecutor.run_all = run_all, arun_all  # type: ignore[method-assign]
    Worker.run, Worker.stop = working, stopping  # type: ignore[method-assign]
    try:
        yield
    finally:
        SyncExecutor.run_all, AsyncExecutor.run_all = plain, aio  # type: ignore[method-assign]
        Worker.run, Worker.stop = run, stop  # type: ignore[method-assign]


@contextmanager
def _noting(recorder: Recorder, requests: Sequence[Any]) -> Iterator[Callable[[list[Any]], list[Any]]]:
    """Note the replies to those requests that matter; replies that do not come are UNSURE."""
    sent = monotonic()
    replies: list[Any] = [OutcomeUnknown("no reply came")] * len(requests)

    def replied(found: list[Any]) -> list[Any]:
        replies[:] = found
        return found

    try:
        yield replied
    finally:
        events: list[Settled] = []
        for request, reply in zip(requests, replies, strict=True):
            if moves.is_watched(request):
                events += moves.settled(request, reply, sent, monotonic())
        if events:
            recorder.note(*events)
