"""The one object that users hold: it registers kinds, sends jobs, and makes workers. It decides nothing."""

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from datetime import timedelta
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from streamjobs.client import DEFAULT_URL, Connections, Target
from streamjobs.core import names
from streamjobs.core.classify import Rule
from streamjobs.core.cron import Calendar, Every, Schedule
from streamjobs.core.errors import InvalidOption, StreamJobsError
from streamjobs.core.job import Job
from streamjobs.core.limits import Bound
from streamjobs.core.options import (
    Batch,
    CronKeywords,
    CronOptions,
    EnqueueKeywords,
    EnqueueOptions,
    JobKeywords,
    JobOptions,
    QueueKeywords,
    QueueOptions,
    WorkerKeywords,
    WorkerOptions,
)
from streamjobs.core.registry import Registry
from streamjobs.core.subscription import subscriptions
from streamjobs.decorators import BatchDecorator, CronDecorator, JobDecorator
from streamjobs.handle import Handle
from streamjobs.kind import Kind, job_of
from streamjobs.producer.submit import Producer
from streamjobs.protocol.keys import DEFAULT_NAMESPACE, QueueKeys
from streamjobs.queue import Queue
from streamjobs.senders import Senders
from streamjobs.worker.child import homes
from streamjobs.worker.context import BatchContext, Context
from streamjobs.worker.duty import Duty
from streamjobs.worker.embed import running
from streamjobs.worker.loop import run_in_loop
from streamjobs.worker.process import leave, run_supervised, run_until_signalled
from streamjobs.worker.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")
Lifespan = Callable[["StreamJobs"], AbstractAsyncContextManager[Any]]


class StreamJobs:
    """Background jobs on one Redis server, in one namespace.

    Nothing is connected before the first job is sent or a worker runs. Safe to use from any thread
    and any event loop, and in processes forked later.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        namespace: str | None = None,
        lifespan: Lifespan | None = None,
        defaults: JobOptions | None = None,
        classify: Sequence[Rule] = (),
        enqueue_timeout: float | timedelta = 15.0,
    ) -> None:
        """Check everything, contact nothing.

        Args:
            url: redis://, rediss://, unix://, valkey://, embedded://PATH or memory://; else the
                environment's STREAMJOBS_URL, then REDIS_URL, then redis://localhost:6379/0.
            namespace: the first part of every key; apps with different ones do not see each other. Else
                the environment's STREAMJOBS_NAMESPACE, then `sj`.
            lifespan: an async context manager around each worker; what it yields is `ctx.state`.
            defaults: options for kinds that say nothing themselves.
            classify: asked in turn for the class of an error before our own rules.
            enqueue_timeout: seconds for which an enqueue tries again; an answer that is on its way then is
                waited for, 3 s at most.

        Raises:
            InvalidOption: the URL or the namespace cannot be used.
        """
        if url is None:
            # Not `url or ...`: an empty one comes from a setting that is not set, and must not mean another server.
            url = os.environ.get("STREAMJOBS_URL") or os.environ.get("REDIS_URL") or DEFAULT_URL
        if namespace is None:
            namespace = os.environ.get("STREAMJOBS_NAMESPACE") or DEFAULT_NAMESPACE
        self.namespace = names.check_name(namespace, "namespace")
        self.connections = Connections(url)
        self.registry = Registry()
        self._defaults = defaults or JobOptions()
        self._lifespan = lifespan
        self.rules = tuple(classify)
        self._timeout_s = names.milliseconds(enqueue_timeout, "enqueue_timeout") / 1000
        self._queues: dict[str, Queue] = {}
        self._senders = Senders(self.registry, self.connections, namespace, self._timeout_s)
        homes.add(self)

    def use(
        self,
        url: str | Target | None = None,
        *,
        namespace: str | None = None,
        enqueue_timeout: float | timedelta | None = None,
    ) -> None:
        """Move the app elsewhere, whatever it was made with: for programs that start apps of others.

        Call it before the app has sent anything and before it has a worker; kinds stay as they are.
        What is None stays as it was.

        Raises:
            InvalidOption: a value cannot be used; nothing was changed.
        """
        namespace = self.namespace if namespace is None else names.check_name(namespace, "namespace")
        timeout_s = self._timeout_s
        if enqueue_timeout is not None:
            timeout_s = names.milliseconds(enqueue_timeout, "enqueue_timeout") / 1000
        if url is not None:
            self.connections = Connections(url)
        self.namespace, self._timeout_s = namespace, timeout_s
        self._senders.use(self.connections, namespace, timeout_s)

    @overload
    def job(self, function: Callable[Concatenate[Context[Any], P], Awaitable[R]], /) -> Kind[P, R]: ...
    @overload
    def job(self, function: Callable[Concatenate[Context[Any], P], R], /) -> Kind[P, R]: ...
    @overload
    def job(self, function: Callable[P, Awaitable[R]], /) -> Kind[P, R]: ...
    @overload
    def job(self, function: Callable[P, R], /) -> Kind[P, R]: ...
    @overload
    def job(
        self,
        function: None = None,
        /,
        *,
        batch: Batch,
        name: str | None = None,
        **options: Unpack[JobKeywords],
    ) -> BatchDecorator: ...
    @overload
    def job(
        self, function: None = None, /, *, name: str | None = None, **options: Unpack[JobKeywords]
    ) -> JobDecorator: ...

    def job(
        self, function: Any = None, /, *, batch: Batch | None = None, name: str | None = None, **options: Any
    ) -> Any:
        """Register a function as the handler of a kind of job.

        The function may be `async def` (runs in the worker's event loop) or plain (runs in a thread, or
        a process). A first parameter annotated `Context` is filled by the worker; all others are the
        job's arguments, encoded as JSON by their annotations.

        Args:
            batch: let one call take several jobs: the function has one list, and each job is an item of it, whose
                arguments are the fields of the item's class. docs/batch.md says what it returns.
            name: the kind's name on the wire; default `module.function`.
            queue: where its jobs go.
            timeout: seconds that a run may take; None for no limit. Default 10 minutes.
            retry: how failures are taken.
            result_ttl: seconds for which what the function returns is kept.
            dedupe: how long a job keeps out others of the same dedupe key, and which arguments make the
                key: `UntilDone(key="user_id")`. An enqueue may name another key. None: no dedupe.
            rate: how many may start in a time, over all workers of a queue; one `Rate`, or several with
                different keys.
            concurrency: how many may run at once, likewise; a number stands for `Concurrency(number)`.
            redact: arguments whose values the command line does not show to operators.
            durability: where a job must be before its enqueue returns; see `Kind.options`.
            process: run a plain function in a process, which is killed at the deadline (docs/handlers.md).

        Raises:
            InvalidOption: the name is taken, an argument's type cannot be encoded, an option is
                outside its range, or names an argument that there is not.
        """
        given = {key: value for key, value in options.items() if value is not None or key in ("timeout", "dedupe")}
        merged = self._defaults.changed(given)
        context: type = Context if batch is None else BatchContext

        def register(function: Callable[..., Any]) -> Kind[..., Any]:
            own_name = f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"
            kind = own_name if name is None else name
            handler = self.registry.add(function, kind, merged, context=context, batch=batch)
            return Kind(handler, self._senders)

        if function is not None and not callable(function):
            raise InvalidOption(f"job({function!r:.80}): expected a function; a name is given as name=")
        return register if function is None else register(function)

    def cron(self, expr: str, *, tz: str = "UTC", **options: Unpack[CronKeywords]) -> CronDecorator:
        """Enqueue a job at each time that a cron expression names; decorates a function, or a kind.

        Each slot runs once, and none before its time by the server's clock, however many workers
        serve the queue. docs/cron.md has the rules.

        Args:
            expr: minute, hour, day of month, month, day of week.
            tz: the time zone in which it is meant, such as Europe/Berlin.
            name: the cron's own name, where a kind has several; default the kind's.
            args: the job's arguments by name.
            catch_up: what is done about slots for which no worker was there: `once` runs the last of
                them, `none` none, `all` each of the last 1000.
            jitter: seconds up to which a run may come after its slot, at most a day: drawn for each slot.

        Raises:
            InvalidOption: the expression, the zone or an option cannot be used, or the name is taken.
            UsageError: the arguments do not fit the function.
        """
        return self._scheduling(Calendar(expr, tz), options)

    def every(self, seconds: float | timedelta, **options: Unpack[CronKeywords]) -> CronDecorator:
        """Enqueue a job at the multiples of an interval since 1970; otherwise as `cron`.

        Args:
            seconds: 1 s to 366 days.
        """
        return self._scheduling(Every(seconds), options)

    def _scheduling(self, schedule: Schedule, keywords: CronKeywords) -> CronDecorator:
        options = CronOptions.of(keywords)

        def register(target: Any) -> Any:
            kind: Any = target if isinstance(target, Kind) else self.job(target)
            self.registry.add_cron(kind.cron(schedule, options))
            return kind

        return register

    def kind(self, name: str) -> Kind[..., Any]:
        """Return a registered kind by its name.

        Raises:
            UnknownKind: there is none of that name here.
        """
        return Kind(self.registry.require(name), self._senders)

    def queue(self, name: str, **options: Unpack[QueueKeywords]) -> Queue:
        """Return a queue by its name; with limits, let this app's workers, and all producers, keep them.

        Args:
            name: of the queue.
            rate: how many of its jobs may start in a time, over all workers.
            concurrency: how many of its jobs may run at once, likewise.
            max_waiting: how many may wait; an enqueue of more is refused, whoever sends it.
            when_full: what this app does then: raise `QueueFull` at once, or try again until the enqueue's time is up.
            keep_dead: how many dead jobs, or with a timedelta how long, are kept, by this app's workers; default all.
            thresholds: from when on `streamjobs stats` calls it degraded, and critical.

        Raises:
            InvalidOption: the name or a limit cannot be used; a limit has a key, which is for kinds.
        """
        said, bounds = QueueOptions.of(options), self.registry.bounds
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = Queue(lambda: (self.connections, self.namespace), name, self.registry.find)
        queue.limits = said.limits or queue.limits
        if (bound := said.bounded(bounds.get(name, Bound()))) != bounds.get(name, Bound()):
            bounds[name] = bound
        if said.thresholds is not None:
            self.registry.thresholds[name] = said.thresholds
        return queue

    async def enqueue_many(self, jobs: Iterable[Job]) -> list[Handle[Any] | StreamJobsError]:
        """Send any number of jobs, made by `Kind.call`, in bounded batches.

        Returns:
            In order, a handle for each job that is there, or the error of one that is not.
        """
        return await self._senders.aio().enqueue_many(jobs)

    def enqueue_many_sync(self, jobs: Iterable[Job]) -> list[Handle[Any] | StreamJobsError]:
        """As `enqueue_many`, for plain code."""
        return self._senders.sync().enqueue_many(jobs)

    async def send(
        self, kind: str, arguments: dict[str, Any] | None = None, **options: Unpack[EnqueueKeywords]
    ) -> Handle[Any]:
        """Enqueue a job of a kind whose handler need not be known here; options as for `Kind.options`."""
        job = self.job_of(kind, arguments or {}, EnqueueOptions.of(options))
        return await self._senders.aio().enqueue(job)

    def send_sync(
        self, kind: str, arguments: dict[str, Any] | None = None, **options: Unpack[EnqueueKeywords]
    ) -> Handle[Any]:
        """As `send`, for plain code."""
        job = self.job_of(kind, arguments or {}, EnqueueOptions.of(options))
        return self._senders.sync().enqueue(job)

    def job_of(self, kind: str, arguments: dict[str, Any], options: EnqueueOptions) -> Job:
        """Return the job that `send` would send, checked against its handler's signature if it is known."""
        return job_of(names.check_kind(kind), arguments, options, self.registry.find(kind), self._defaults)

    def producer(
        self, *, max_waiting: int = 10_000, enqueue_timeout: float | timedelta | None = None
    ) -> Producer[Handle[Any]]:
        """Return a producer for many threads: `with app.producer() as p: future = p.submit(kind.call(...))`.

        Args:
            max_waiting: how many jobs may be under way, 1 to 1,000,000; submit of more waits for half to end.
            enqueue_timeout: seconds for which each job is tried; default the app's.

        Raises:
            InvalidOption: a value is outside its range.
        """
        return self._senders.producer(max_waiting, enqueue_timeout)

    def handle(self, job_id: str) -> Handle[Any]:
        """Return a handle for a job id; nothing is asked yet.

        Raises:
            InvalidOption: this is not a job id.
        """
        queue, partition, local = names.split_job_id(job_id)
        return Handle(self.connections, self.registry, QueueKeys(self.namespace, queue, partition), local)

    def make_worker(
        self, queues: Sequence[str] | None = None, options: WorkerOptions | None = None, *, duty: Duty = Duty.ALL
    ) -> Worker:
        """Return a worker that does not run yet; needs a running event loop.

        Args:
            queues: the queues to serve, by name or pattern (`mail*`), each perhaps with its weight (`mail:10`);
                default all queues of the registered kinds.
            options: how it works.
            duty: which claims it starts, as one of several processes that share the work.
        """
        handlers = self.registry.all()
        own = sorted({handler.options.queue for handler in handlers.values()}) or [self._defaults.queue]
        return Worker(
            self.connections,
            self.namespace,
            handlers,
            subscriptions(queues or own),
            options or WorkerOptions(),
            lifespan=self._lifespan and partial(self._lifespan, self),
            rules=self.rules,
            crons=list(self.registry.crons().values()),
            limits={name: queue.limits for name, queue in self._queues.items()},
            bounds=self.registry.bounds,
            meter=self.registry.meter,
            thresholds=self.registry.thresholds,
            duty=duty,
        )

    def worker(
        self,
        queues: Sequence[str] | None = None,
        options: WorkerOptions | None = None,
        **changes: Unpack[WorkerKeywords],
    ) -> AbstractAsyncContextManager[Worker]:
        """Run a worker beside other code: `async with app.worker(queues=["mail"], concurrency=10): ...`.

        Args:
            queues: the queues to serve; see `make_worker`.
            options: how it works; single fields of `WorkerOptions` may be given by name instead.
        """
        return running(self.make_worker(queues, (options or WorkerOptions()).changed(changes)))

    def run_worker(
        self,
        queues: Sequence[str] | None = None,
        options: WorkerOptions | None = None,
        **changes: Unpack[WorkerKeywords],
    ) -> int:
        """Run a worker until it is told to stop by SIGTERM or SIGINT; return the exit code.

        0: all handlers ended within the grace time. 1: some did not, and were given back. 130, 143: a
        second signal came.
        """
        options = (options or WorkerOptions()).changed(changes)
        return self._run(lambda: run_until_signalled(self.make_worker(queues, options)), options)

    def run_child(self, line: int, duty: Duty, queues: Sequence[str] | None, options: WorkerOptions) -> int:
        """Run a worker as one child of a supervisor, tied to it by this socket; return the exit code.

        Raises:
            InvalidOption: the app is on memory://, which no two processes share.
        """
        if self.connections.target.scheme == "memory":
            raise InvalidOption("memory:// is seen by one process alone: use a server, embedded://PATH, or -w 1")
        return self._run(lambda: run_supervised(self.make_worker(queues, options, duty=duty), line), options)

    def _run(self, run: Callable[[], Awaitable[int]], options: WorkerOptions) -> int:
        async def work() -> int:
            async with aclosing(self):
                code = await run()
            await leave(code)
            return code

        return run_in_loop(work(), options.loop)

    async def aclose(self) -> None:
        """Close the connections of this event loop, and those of plain code. The app can be used again."""
        await self.connections.aclose()

    def close(self) -> None:
        """Close the connections of plain code. The app can be used again."""
        self.connections.close()
