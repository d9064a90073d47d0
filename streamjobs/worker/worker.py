"""One worker: connects, runs its services until it is stopped, and leaves nothing behind."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import msgspec

from streamjobs.client import Connections
from streamjobs.client.aio import AsyncExecutor
from streamjobs.client.connect import REPLY_SECONDS
from streamjobs.client.sync import SyncExecutor
from streamjobs.core import tracing
from streamjobs.core.classify import Rule
from streamjobs.core.cron import Cron
from streamjobs.core.errors import StreamJobsError
from streamjobs.core.limits import Bound, Limit
from streamjobs.core.meter import Meter
from streamjobs.core.options import WorkerOptions
from streamjobs.core.registry import Handler
from streamjobs.core.subscription import Subscription, weight_of
from streamjobs.core.text import plural
from streamjobs.core.thresholds import Thresholds
from streamjobs.protocol import upkeep
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.workers import QUIET, RUN, STOP
from streamjobs.worker.background import Background, end
from streamjobs.worker.burst import Burst
from streamjobs.worker.count import AtWork, counting
from streamjobs.worker.cron import Scheduler
from streamjobs.worker.deadlines import Deadlines
from streamjobs.worker.duty import Duty
from streamjobs.worker.execution import Access, Ending, Execution, WorkerQueue
from streamjobs.worker.fetch import Fetcher
from streamjobs.worker.join import Joiner
from streamjobs.worker.lease import LeaseKeeper
from streamjobs.worker.loop import name_of
from streamjobs.worker.pool import Pool, check_handlers
from streamjobs.worker.probes import Pages, health_pages, serving
from streamjobs.worker.promote import BELL_S, Promoter
from streamjobs.worker.quarantine import Quarantine
from streamjobs.worker.quiet import Quiet
from streamjobs.worker.report import Reporter, reporting
from streamjobs.worker.run import Runner
from streamjobs.worker.scrape import metrics_pages
from streamjobs.worker.service import Service, run_service
from streamjobs.worker.settle import Settler
from streamjobs.worker.spans import ProcessSpans
from streamjobs.worker.start import Starter
from streamjobs.worker.station import Station, new_consumer
from streamjobs.worker.upkeep import Upkeep
from streamjobs.worker.watchdog import Watchdog
from streamjobs.worker.winddown import WindDown, end_run

log = logging.getLogger("streamjobs.worker")

Lifespan = Callable[[], AbstractAsyncContextManager[Any]]


class Worker:
    """Claims and runs the jobs of some queues until `stop`. Made by `StreamJobs.worker`."""

    ordered = ""
    """The last order that it was given (`quiet`, `run` or `stop`); "" for none."""
    _watchdog: Watchdog | None = None
    _quiet: Quiet | None = None
    _starts_quiet = False
    _ended = False

    def __init__(
        self,
        connections: Connections,
        namespace: str,
        handlers: dict[str, Handler],
        queues: list[Subscription],
        options: WorkerOptions,
        *,
        lifespan: Lifespan | None = None,
        rules: tuple[Rule, ...] = (),
        crons: Sequence[Cron] = (),
        limits: Mapping[str, tuple[Limit, ...]] | None = None,
        bounds: Mapping[str, Bound] | None = None,
        thresholds: Mapping[str, Thresholds] | None = None,
        meter: Meter | None = None,
        duty: Duty = Duty.ALL,
    ) -> None:
        self._duty = duty
        self._meter = meter or Meter()
        if duty is Duty.SUSPECTS:
            options = msgspec.structs.replace(options, concurrency=1, burst=False)
        self._connections, self._handlers, self._options = connections, handlers, options
        self._lifespan, self._rules = lifespan, rules
        # Who only runs what there is, or only suspects, leaves the slots to others.
        schedules = not options.burst and duty is not Duty.SUSPECTS
        self._crons = [cron for cron in crons if schedules and weight_of(cron.job.queue, queues)]
        self._stopping, self._aborting = asyncio.Event(), asyncio.Event()
        self._patterns = [one for one in queues if one.open]
        # Queues that fit a pattern are found when they are there; those of crons are to be made.
        named = [one.pattern for one in queues if not one.open] + [cron.job.queue for cron in self._crons]
        self._meter.queues.update(named)
        self._bounds, self._thresholds = bounds or {}, thresholds or {}
        self._queues = [
            WorkerQueue(QueueKeys(namespace, name), options.ms("lease"), weight=weight_of(name, queues))
            for name in dict.fromkeys(named)
        ]
        self.consumer = new_consumer()
        self._station = Station(connections.aio(), namespace, self._queues, options, self.consumer)
        self._joiner = Joiner(self._station, connections.target, self._patterns, limits or {})
        self.ready = asyncio.Event()
        """Set once the server has been reached and jobs are being fetched."""
        self.on_left: Callable[[], None] = lambda: None
        """Called after each suspect that was left to another process."""
        self.on_order: Callable[[str], None] = lambda word: None
        """Called with the word of each order, before it is followed."""

    @property
    def state(self) -> str:
        """`starting`, `running`, `quiet` (it starts nothing), `stopping` or `ended`."""
        if self._ended:
            return "ended"
        if self._stopping.is_set():
            return "stopping"
        if not self.ready.is_set():
            return "starting"
        return "quiet" if self._quiet and self._quiet.on else "running"

    @property
    def live(self) -> bool:
        """Whether it makes progress, or has reason not to: an idle queue, full slots, a server that is away, an
        end under way. A process whose worker is not live should be started again. Any thread may ask.
        """
        return not self.trouble

    @property
    def trouble(self) -> str:
        """Why it is not live; "" while it is."""
        if self._ended:
            return "it has ended"
        if self._watchdog is None or self._stopping.is_set():
            return ""
        return self._watchdog.trouble

    def quiet(self) -> None:
        """Start nothing more until `go_on`: what runs goes on, what was claimed beside goes to others at once.

        From the worker's own event loop; harmless to repeat, or before it runs.
        """
        self._starts_quiet = True
        if self._quiet:
            self._quiet.begin()

    def go_on(self) -> None:
        """Start jobs again, after `quiet`."""
        self._starts_quiet = False
        if self._quiet:
            self._quiet.end()

    def _obey(self, word: str) -> None:
        """Follow an operator's order."""
        self.ordered = word
        self.on_order(word)
        {QUIET: self.quiet, RUN: self.go_on, STOP: self.stop}[word]()

    async def unready(self) -> str:
        """Return why it cannot take jobs now; "" while it can: it has joined its queues, and the server answers."""
        if self._stopping.is_set() or self._ended:
            return "it has ended" if self._ended else "it is stopping"
        if not self.ready.is_set():
            return "it has not joined its queues yet"
        if self.state == "quiet":
            # A child begins quiet where the one before it was told to be.
            ordered = self.ordered == QUIET or self._duty is not Duty.ALL
            return f"quiet: {'ordered by an operator' if ordered else 'its own program told it to start nothing'}"
        try:
            await self._station.executor.run(upkeep.server_time())
        except StreamJobsError as error:
            return str(error)
        return self.trouble

    def stop(self) -> None:
        """Start nothing more, give running handlers the grace time, then end. Harmless to repeat."""
        self._stopping.set()

    def abort(self) -> None:
        """End at once: running handlers are cancelled and their jobs given back."""
        self._stopping.set()
        self._aborting.set()

    async def run(self) -> bool:
        """Work until stopped; return whether every handler ended within the grace time.

        Raises:
            Rejected: the server is too old, or refuses what the worker must do (password, rights, a key of a
                wrong type).
            Refused: the server deletes jobs when its memory is full, and `allow_eviction` is not set.
            InvalidOption: it cannot listen at a port that it was given, or a handler cannot run in a process.
            MissingExtra: it is to serve metrics, and prometheus-client is not installed.
        """
        try:
            check_handlers(self._handlers.values(), self._connections.target)
            async with serving(self._pages()):
                if not await self._joiner.join(self._stopping):
                    return True
                return await self._work()
        finally:
            self._ended = True

    def _pages(self) -> Pages:
        health, metrics = self._options.health_port, self._options.metrics_port
        return {
            "health_port": (health, health_pages(lambda: self.trouble, self.unready)),
            "metrics_port": (metrics, {} if metrics is None else metrics_pages(self._meter)),
        }

    async def _work(self) -> bool:
        async with AsyncExitStack() as stack:
            state = await stack.enter_async_context(self._lifespan()) if self._lifespan else None
            settler = Settler(self._station)
            if self._meter.on:
                settler.on_settling.append(counting(self._meter))
            runner = Runner(self._handlers, self._rules, settler, self._station.random)
            runner.state = state
            runner.access = Access(self._station.executor, self._connections.sync(), self.consumer)
            if tracer := tracing.tracer():
                runner.spans = ProcessSpans(tracer, self.consumer, self._station.complaints)
            if any(handler.options.process for handler in self._handlers.values()):
                runner.pool = Pool(self._station, self._handlers.values(), self._connections.target)
            stack.push_async_callback(runner.close)
            broken = Background(settler.broken, "lease").take
            keeper = LeaseKeeper(self._station, self._lease_executor(stack), self._verdict, broken)
            keeper.start()
            try:
                return await self._serve(stack, settler, runner, keeper)
            finally:
                keeper.stop()
                log.info(
                    "worker %s stopped: %d done, %d failed, %d given back, %d came too late, %s renewed",
                    *(self.consumer, settler.done, settler.failed, settler.given_back, settler.lost),
                    plural(keeper.renewed, "lease"),
                )

    def _lease_executor(self, stack: AsyncExitStack) -> SyncExecutor:
        """Return an executor that gives up a reply while there is time to renew on another connection."""
        leases_ms = [queue.lease_ms for queue in self._queues]
        shortest_s = min(leases_ms, default=self._options.ms("lease")) / 1000
        executor = self._connections.sync(reply_s=min(REPLY_SECONDS, shortest_s / 6))
        stack.callback(executor.close)
        return executor

    async def _serve(self, stack: AsyncExitStack, settler: Settler, runner: Runner, keeper: LeaseKeeper) -> bool:
        station, options = self._station, self._options
        reader = self._connections.aio(block_ms=options.ms("block"))
        sleeper = self._connections.aio(block_ms=round(BELL_S * 1000))
        stack.push_async_callback(reader.aclose)
        stack.push_async_callback(sleeper.aclose)
        starter = Starter(station, runner, settler, self._duty, self.on_left)
        fetcher, promoter = self._fetching(reader, sleeper, starter, runner)
        stack.enter_context(self._meter.counting(AtWork(station, settler, runner, fetcher)))
        self._watchdog = Watchdog(station, fetcher, starter, runner, keeper)
        self._quiet = quiet = Quiet(station, starter, fetcher, promoter, Background(settler.broken, "quiet"))
        if self._starts_quiet:
            quiet.begin()
        services: list[Service] = [Deadlines(station, runner, starter), self._watchdog, settler.times]
        if options.burst:
            services.append(Burst(station, fetcher, starter, settler, self.stop))
        tasks = [self._spawn(service) for service in services + self._upkeep(fetcher, promoter)]
        # Only who shows itself to its queues, as promoters do, can be found.
        told = [await stack.enter_async_context(self._reporting(runner, settler))] if promoter else []
        fetching = self._spawn(fetcher)
        promoting = self._spawn(promoter) if promoter else fetching
        names = ", ".join([one.pattern for one in self._patterns] + [queue.keys.queue for queue in self._queues])
        slots, loop = plural(options.concurrency, "slot"), name_of(asyncio.get_running_loop())
        log.info("worker %s serves %s with %s, in a loop of %s", self.consumer, names, slots, loop)
        self.ready.set()
        watched: list[asyncio.Future[Any]] = [*tasks, *told, fetching, promoting, settler.broken]
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([*watched, stopped], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # Whoever cancels a worker wants it gone; what it holds is given back all the same.
            self.abort()
            raise
        finally:
            self._stopping.set()
            await quiet.close()
            ending = WindDown(station, self._aborting, settler, runner, starter)
            if promoter:
                await ending.give_up_bell(promoter, promoting)
            clean = await ending.run(fetcher, fetching)
            await end([*tasks, fetching, promoting, stopped])
        for future in watched:
            if future.done() and not future.cancelled() and (error := future.exception()):
                raise error
        return clean

    def _upkeep(self, fetcher: Fetcher, promoter: Promoter | None) -> list[Service]:
        """Return the services that have nothing to do with single claims."""
        services: list[Service] = [Upkeep(self._station, self._handlers, self._bounds, self._thresholds)]
        if self._patterns:
            self._joiner.discovery.found = promoter.look_around if promoter else fetcher.nudge
            services.append(self._joiner.discovery)
        if self._crons:
            scheduler = Scheduler(self._station, self._crons)
            scheduler.slots = lambda: 0 if self._quiet and self._quiet.on else self._options.concurrency
            services.append(scheduler)
        return services

    def _reporting(self, runner: Runner, settler: Settler) -> "AbstractAsyncContextManager[asyncio.Task[None]]":
        supervised = self._duty is not Duty.ALL
        reporter = Reporter(self._station, runner, settler, lambda: self.state, self._obey, supervised=supervised)
        return reporting(reporter, self._station)

    def _fetching(
        self, reader: AsyncExecutor, sleeper: AsyncExecutor, starter: Starter, runner: Runner
    ) -> tuple[Fetcher, Promoter | None]:
        """Return what fetches, and what listens to the bell: not where a ring would be heard in vain."""
        if self._duty is Duty.SUSPECTS:
            return Quarantine(self._station, reader, starter, runner, self.stop), None
        fetcher = Fetcher(self._station, reader, starter, runner)
        return fetcher, Promoter(self._station, sleeper, fetcher)

    def _spawn(self, service: Service) -> "asyncio.Task[None]":
        return asyncio.create_task(
            run_service(service, self._stopping, self._station.complaints, self._station.random),
            name=f"streamjobs-{service.name}",
        )

    def _verdict(self, execution: Execution, deliveries: int, word: str) -> None:
        """Act on what the lease thread learned, if it still matters."""
        current = execution.queue.holds(execution) and execution.claim.deliveries == deliveries
        if not current or execution.settling:
            return
        if execution.task is None:
            # Not started. One that has expired is given back when its turn comes.
            if word != "EXPIRED":
                execution.queue.drop(execution)
        elif execution.ending is Ending.NONE:
            fields = execution.log_fields
            log.warning("job %s (%s): %s", execution.job_id, execution.kind, _SAID[word], extra=fields)
            end_run(execution, Ending.STOP if word == "EXPIRED" else Ending.LOST)


_SAID = {
    "LOST": "another worker has taken it over",
    "CANCELLED": "it was cancelled, or ended elsewhere",
    "EXPIRED": "its lease could not be renewed in time",
}
