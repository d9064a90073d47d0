"""Watch whether a worker makes progress: begin anew where it does not, and say so where that does not help.

Fetching can hang in ways that raise nothing. A connection loses every packet; it leads to a server that
is no longer the one; an answer never comes. So what fetching should have found is asked for on another
connection. An idle queue, full slots, a server that is away or takes no writes, and a process that was
frozen are no reasons.
"""

import logging
from collections.abc import Callable
from time import monotonic

from streamjobs.core.errors import Rejected, StreamJobsError
from streamjobs.core.text import plural
from streamjobs.protocol import server, views
from streamjobs.protocol.calls import Command
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.fetch import Fetcher
from streamjobs.worker.lease import LeaseKeeper
from streamjobs.worker.run import Runner
from streamjobs.worker.service import HEALABLE
from streamjobs.worker.start import Starter
from streamjobs.worker.station import Station

log = logging.getLogger("streamjobs.worker")

EVERY_S = 1.0
PATIENCE_S = 5.0
"""How much longer than it should take nothing may come, before that is looked into."""

Symptom = tuple[str, str]
"""What is wrong, in a form that tells it from the next case of the same; and in words."""


class Watchdog:
    """Looks into it when nothing was fetched for a while; a service whose tick costs nothing mostly."""

    name = "watchdog"

    def __init__(
        self,
        station: Station,
        fetcher: Fetcher,
        starter: Starter,
        runner: Runner,
        keeper: LeaseKeeper,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._station = station
        self._fetcher = fetcher
        self._starter = starter
        self._runner = runner
        self._keeper = keeper
        self._clock = clock
        self._patience_s = station.options.ms("block") / 1000 + PATIENCE_S
        self._ticked_at = clock()
        self._awake_s = 0.0
        """The time that passed, without that for which the process stood still."""
        self._added = 0
        self._progress_at = 0.0
        self._asking = 0
        self._asking_at = 0.0
        self._given_up = 0
        """The request that was under way at the last fresh start."""
        self._seen: set[Symptom] = set()
        self._failed = ""
        """What was still wrong after a fresh start."""
        self._said = ""
        self.restarts = 0
        """How often fetching was begun anew, since the worker's start."""
        self._in_vain = 0
        """How often of late: since fetching was last seen well."""

    async def tick(self) -> float:
        """Do one round."""
        self._observe()
        if self._station.queues and (self._dry() or self._hung()):
            await self._look()
        else:
            self._seen = set()
        self._report()
        return EVERY_S

    @property
    def trouble(self) -> str:
        """Why the worker makes no progress; "" while it does, or has reason not to. Of any thread."""
        stuck, slots = self._runner.stuck, self._station.options.concurrency
        if stuck > slots:
            return f"{plural(stuck, 'handler')} will not end, more than there are slots"
        if self._keeper.loop_still_s > 2 * self._patience_s:
            return f"the event loop has not moved for {self._keeper.loop_still_s:.0f} s"
        return self._failed

    def _observe(self) -> None:
        """Note how far fetching has come."""
        now = self._clock()
        self._awake_s += min(now - self._ticked_at, 2 * EVERY_S)
        self._ticked_at = now
        if self._starter.added != self._added or self._starter.free() <= 0:
            self._added = self._starter.added
            self._well()
        if self._asking != self._fetcher.asking:
            self._asking, self._asking_at = self._fetcher.asking, self._awake_s

    def _well(self) -> None:
        self._progress_at = self._awake_s
        self._in_vain, self._failed = 0, ""

    def _dry(self) -> bool:
        """Say whether there were free slots, and nothing was fetched into them."""
        return self._awake_s - self._progress_at >= self._patience_s

    def _hung(self) -> bool:
        """Say whether one request of fetching takes too long."""
        return self._asking != 0 and self._awake_s - self._asking_at >= self._fetcher.within_s + PATIENCE_S

    async def _look(self) -> None:
        """Begin anew if something is wrong, and was so at the last look already: it may just be changing."""
        try:
            symptoms = await self._symptoms()
        except HEALABLE:
            # Fetching may just wait until its next try.
            self._well()
            self._asking_at = self._awake_s
            raise
        both = symptoms & self._seen
        self._seen = symptoms
        if both:
            await self._start_over(min(both)[1])
        elif not symptoms and self._asking and self._asking == self._given_up:
            # It still waits for what it was to wait for no more.
            self._progress_at = self._awake_s
        elif not symptoms:
            self._well()

    async def _symptoms(self) -> set[Symptom]:
        """Ask the server what there is to fetch; raises if it does not answer."""
        queues = self._station.queues
        lengths = await self._ask([views.length(queue.keys.stream) for queue in queues])
        found = set()
        if self._hung():
            found.add((str(self._asking), "a request of its has had no answer, while others have"))
        for queue, length in zip(queues, lengths, strict=True):
            # Mostly all there is is what this worker holds.
            more = self._dry() and queue in self._fetcher.fresh and length > len(queue.held)
            if more and (entry := await self._next(queue)):
                found.add((entry, f"jobs wait in queue {queue.keys.queue}, and none comes into the free slots"))
        if found:
            # Fetching writes. Where no write is taken, nothing else is wrong.
            await self._ask([server.write_nothing(queues[0].keys)])
        return found

    async def _next(self, queue: WorkerQueue) -> str:
        """Return the entry that the next read should bring; "" for none."""
        executor = self._station.executor
        try:
            group = await executor.run(views.groups(queue.keys))
            return await executor.run(views.first_after(queue.keys, group.last_delivered))
        except Rejected:
            # The stream has just been deleted.
            return ""

    async def _ask(self, requests: list[Command[int]]) -> list[int]:
        counts = []
        for reply in await self._station.executor.run_all(requests):
            if isinstance(reply, StreamJobsError):
                raise reply
            counts.append(reply)
        return counts

    async def _start_over(self, why: str) -> None:
        self.restarts += 1
        self._in_vain += 1
        self._station.complaints.say("watchdog", "fetch: %s: begins anew on another connection", why)
        # One fresh start must help. Where it has not, only a new process may.
        self._failed = why if self._in_vain > 1 else ""
        self._progress_at = self._asking_at = self._awake_s
        self._given_up, self._seen = self._asking, set()
        await self._fetcher.start_over()

    def _report(self) -> None:
        """Log when the worker stops making progress, and when it makes some again."""
        trouble = self.trouble
        if bool(trouble) != bool(self._said):
            if trouble:
                log.error("worker %s is not live: %s", self._station.consumer, trouble)
            else:
                log.info("worker %s is live again", self._station.consumer)
        self._said = trouble
