"""Enqueue the jobs of the crons: every worker at every slot, and the first one does it."""

import logging
from collections.abc import Callable, Sequence

from streamjobs.core.cron import Cron, Turn, rfc3339
from streamjobs.core.failpoints import failpoint
from streamjobs.core.text import plural
from streamjobs.protocol import crons as protocol
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.station import Station

log = logging.getLogger("streamjobs.worker")

LONGEST_S = 5.0
"""Nobody sleeps longer, for the server's clock may be set. To look at what is known of it costs the server nothing."""
FUTURE_MS = 86_400_000
"""A last slot further ahead than this was written when the server's clock was wrong: it holds up nothing."""


class Entry:
    """One cron of one queue, and how far this worker knows it to be done."""

    def __init__(self, queue: WorkerQueue, cron: Cron) -> None:
        self.queue = queue
        self.cron = cron
        self.last_ms = 0
        """The last slot, as the server has it."""
        self.after_ms = 0
        """The slots after this instant are to come."""
        self.next_ms = 0
        """Nothing is to be done before."""


class Scheduler:
    """Sleeps until the next slot by the server's clock; one request for each slot, and no others."""

    name = "cron"

    def __init__(self, station: Station, crons: Sequence[Cron], clock: Callable[[], int] | None = None) -> None:
        """`crons`: one or more, all of queues of this worker; `clock`: a test's, in ms, for the server's."""
        self._station = station
        self._clock = clock
        self.slots: Callable[[], int] = lambda: station.options.concurrency
        """How many jobs its worker may start: what it shows in its queues."""
        served = {queue.keys.queue: queue for queue in station.queues}
        self._entries = [Entry(served[cron.job.queue], cron) for cron in crons]
        self._unplanned = {entry.queue for entry in self._entries}

    async def tick(self) -> float:
        """Enqueue what is due; return the seconds until there is something to do again."""
        for queue in list(self._unplanned):
            await self._plan(queue)
        for entry in self._entries:
            self._forget_the_future(entry)
            while entry.next_ms <= self._now_ms() and entry.queue not in self._unplanned:
                await self._advance(entry)
        if self._unplanned:
            return 0.0
        # A millisecond more, for what is known of the server's clock is in whole ones too.
        seconds = (min(entry.next_ms for entry in self._entries) - self._now_ms() + 1) / 1000
        return min(LONGEST_S, max(0.001, seconds))

    def _now_ms(self) -> int:
        return self._clock() if self._clock else self._station.clock.now_ms()

    def _clock_word(self) -> str:
        return str(self._clock()) if self._clock else ""

    async def _plan(self, queue: WorkerQueue) -> None:
        """Say what this worker schedules in a queue, and learn where it stands."""
        entries = [entry for entry in self._entries if entry.queue is queue]
        crons = [entry.cron for entry in entries]
        call = protocol.plan(queue.keys, self._station.consumer, str(self.slots()), crons, self._clock_word())
        planned = await self._station.executor.run(call)
        for entry, standing in zip(entries, planned, strict=True):
            entry.last_ms, entry.after_ms, entry.next_ms = standing.last_ms, standing.after_ms, 0
        self._unplanned.discard(queue)

    def _forget_the_future(self, entry: Entry) -> None:
        now_ms = self._now_ms()
        if entry.after_ms > now_ms + FUTURE_MS:
            entry.after_ms = entry.next_ms = now_ms

    async def _advance(self, entry: Entry) -> None:
        """Do what is to be done for one cron now, as far as one request goes."""
        now_ms = self._now_ms()
        turn = entry.cron.turn(entry.after_ms, now_ms)
        if not (turn.runs or turn.passed):
            entry.next_ms = turn.next_ms
            return
        call = protocol.tick(entry.queue.keys, entry.cron, entry.last_ms, turn, self._clock_word())
        failpoint("worker.before_tick")
        done = await self._station.executor.run(call)
        failpoint("worker.after_tick")
        if done.word == "UNKNOWN":
            # Somebody has emptied the server: begin anew.
            self._unplanned.add(entry.queue)
            return
        entry.last_ms, entry.after_ms = done.last_ms, max(entry.after_ms, done.last_ms)
        # Where something is not due yet, the server's clock is behind what is thought of it here.
        entry.next_ms = now_ms + done.wait_ms
        _tell(entry, turn, done)


def _tell(entry: Entry, turn: Turn, done: protocol.Ticked) -> None:
    """Log what became of missed slots; those that come in time are too many."""
    if done.word != "OK":
        return
    if turn.passed:
        log.warning("cron %s: passed over %s", entry.cron.name, plural(turn.passed, "missed slot"))
    for due, job in zip(turn.runs, done.jobs, strict=False):
        slot, job_id = rfc3339(due.slot_ms), entry.queue.keys.job_id(job)
        if due.late_ms:
            log.warning("cron %s: %s is job %s, %d s late", entry.cron.name, slot, job_id, due.late_ms // 1000)
        else:
            log.debug("cron %s: %s is job %s", entry.cron.name, slot, job_id)
