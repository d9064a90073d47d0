"""Tell operators of a worker, and hear what they order: one request every few seconds, whatever it serves."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from heapq import nsmallest
from time import monotonic

from streamjobs.core.errors import Rejected
from streamjobs.core.memory import rss_bytes
from streamjobs.core.version import __version__
from streamjobs.protocol import workers
from streamjobs.protocol.workers import MOST_JOBS, MOST_QUEUES, QUIET, RUN, STOP, Note, Running
from streamjobs.worker.background import end
from streamjobs.worker.run import Runner
from streamjobs.worker.service import run_service
from streamjobs.worker.settle import Settler
from streamjobs.worker.station import Station
from streamjobs.worker.winddown import last_call

log = logging.getLogger("streamjobs.worker")

EVERY_S = 5.0
REFUSED_S = 60.0
"""How often it is tried where the server does not allow it: the work goes on."""


_SAID = {QUIET: "start nothing more", RUN: "start jobs again", STOP: "stop"}


class Reporter:
    """Tells and hears; a service whose tick is one request. It goes on while its worker ends."""

    name = "report"

    def __init__(
        self,
        station: Station,
        runner: Runner,
        settler: Settler,
        state: Callable[[], str],
        obey: Callable[[str], None],
        *,
        supervised: bool = False,
    ) -> None:
        """
        Args:
            station: whose it is.
            runner: knows how many jobs run.
            settler: knows what became of those that ended.
            state: says which state the worker is in.
            obey: follows the word of an order.
            supervised: whether its parent is a supervisor.
        """
        self._station = station
        self._runner = runner
        self._settler = settler
        self._state = state
        self._obey = obey
        self._supervisor = os.getppid() if supervised else 0
        self._started_ms = station.clock.now_ms()
        self._order = ""
        self._refused = False

    async def tick(self) -> float:
        """Do one round; after an order the next follows at once, and tells that it was taken."""
        station = self._station
        try:
            order = await station.executor.run(workers.report(station.namespace, station.consumer, self.note()))
        except Rejected as error:
            if not self._refused:
                log.warning("operators cannot see this worker, nor order it: %s", error)
            self._refused = True
            return REFUSED_S
        self._refused = False
        if not order or order == self._order:
            return EVERY_S
        self._order = order
        word = order.partition(" ")[0]
        if word in _SAID:
            log.info("worker %s is ordered to %s", station.consumer, _SAID[word])
            self._obey(word)
        else:
            log.warning("worker %s does not know the order %.20r", station.consumer, word)
        return 0

    async def close(self) -> None:
        """Be forgotten."""
        station = self._station
        await station.executor.run_all([workers.forget(station.namespace, station.consumer)])

    def note(self) -> Note:
        """Return what there is to tell."""
        station = self._station
        now_ms = station.clock.now_ms()
        held = [one for queue in station.queues for one in list(queue.held.values())]
        runs = [one for one in held if one.runs]
        names = [queue.keys.queue for queue in station.queues]
        begun_ms = now_ms - monotonic() * 1000
        oldest = nsmallest(MOST_JOBS, runs, key=lambda one: one.started)
        return Note(
            host=socket.gethostname(),
            pid=os.getpid(),
            supervisor=self._supervisor,
            version=__version__,
            started_ms=self._started_ms,
            at_ms=now_ms,
            state=self._state(),
            order=self._order.partition(" ")[2],
            queues=tuple(names[:MOST_QUEUES]),
            serves=len(names),
            slots=station.options.concurrency,
            running=self._runner.running,
            claimed=len(held) - len(runs),
            stuck=self._runner.stuck,
            jobs=tuple(Running(one.job_id, one.kind, round(begun_ms + one.started * 1000)) for one in oldest),
            done=self._settler.done,
            failed=self._settler.failed,
            rss_bytes=rss_bytes(),
            lag_ms=round(station.pulse.lag_s * 1000),
        )


@asynccontextmanager
async def reporting(reporter: Reporter, station: Station) -> "AsyncIterator[asyncio.Task[None]]":
    """Let a reporter tell while the block runs, to its very end; then the worker is forgotten."""
    never = asyncio.Event()
    work = run_service(reporter, never, station.complaints, station.random)
    task = asyncio.create_task(work, name="streamjobs-report")
    try:
        yield task
    finally:
        await end([task])
        await last_call(reporter.close())
