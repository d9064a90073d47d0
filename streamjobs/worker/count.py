"""Count what a worker does, for monitors: only where somebody has asked, for it costs each job a little."""

from collections import Counter
from collections.abc import Iterator
from typing import assert_never

from streamjobs.core.job import Bury, Cancel, Complete, Decision, Release, Retry, Snooze
from streamjobs.core.meter import Labels, Meter
from streamjobs.core.registry import Handler
from streamjobs.worker.execution import Execution, WorkerQueue
from streamjobs.worker.fetch import Fetcher
from streamjobs.worker.run import Runner
from streamjobs.worker.settle import Settler
from streamjobs.worker.station import Station

MOST = 500
"""Ends that are noted before they are counted, however long one flush goes on."""

Ended = tuple[Execution, str]
"""What ended, and its outcome."""


class CountingSettler(Settler):
    """A settler that also counts what it is given: outcomes, and the times of what ran.

    With each flush, so that a job pays for little more than being noted: about 1 µs in all.
    """

    def __init__(self, station: Station, meter: Meter) -> None:
        super().__init__(station)
        self._meter = meter
        self._server = station.clock
        self._ended: list[Ended] = []

    def returned(self, execution: Execution) -> None:
        """Take a plain success."""
        Settler.returned(self, execution)
        self._ended.append((execution, "done"))
        if len(self._ended) >= MOST:
            self._count()

    def decided(self, execution: Execution, decision: Decision) -> None:
        """Take any other decision."""
        super().decided(execution, decision)
        if not isinstance(decision, Release):
            self._ended.append((execution, _outcome(decision)))

    def release(self, execution: Execution, *, held_alone: bool = False, quiet: bool = False) -> None:
        """Give a claim back; one that never ran has not ended either."""
        super().release(execution, held_alone=held_alone, quiet=quiet)
        if execution.started:
            self._ended.append((execution, "released"))

    async def _flush_all(self) -> None:
        await super()._flush_all()
        self._count()

    def _count(self) -> None:
        """Count what was noted, all jobs of one kind in one queue together."""
        ended, self._ended = self._ended, []
        queue = handler = alike = None
        by_job: dict[tuple[WorkerQueue, Handler | None], list[Ended]] = {}
        for one in ended:
            execution = one[0]
            if alike is None or execution.handler is not handler or execution.queue is not queue:
                queue, handler = execution.queue, execution.handler
                alike = by_job.setdefault((queue, handler), [])
            alike.append(one)
        for alike in by_job.values():
            execution = alike[0][0]
            row = self._meter.row(execution.queue.keys.queue, execution.kind)
            row.outcomes.update([outcome for _, outcome in alike])
            ran = [execution for execution, _ in alike if execution.started]
            row.runs.add([execution.ran_s for execution in ran])
            row.waits.add(self._waits_s(ran))

    def _waits_s(self, ran: list[Execution]) -> list[float]:
        """Return how long each was ready before it ran: an entry's id begins with when it became ready, in ms."""
        digits, ready_s, waits = b"", 0.0, []
        for execution in ran:
            # Where there are many, many became ready at once.
            if (ms := execution.claim.entry[:13]) != digits:
                digits, ready_s = ms, (int(ms.partition(b"-")[0]) - self._server.offset_ms) / 1000
            waits.append(max(0.0, execution.started - ready_s))
        return waits


def _outcome(decision: Complete | Retry | Snooze | Bury | Cancel) -> str:
    match decision:
        case Complete():
            return "done"
        case Retry():
            return "retried"
        case Snooze():
            return "snoozed"
        case Bury():
            return "dead"
        case Cancel():
            return "cancelled"
    assert_never(decision)


class AtWork:
    """One worker at work: the counts that its parts keep anyhow, and what it does now."""

    def __init__(self, station: Station, settler: Settler, runner: Runner, fetcher: Fetcher) -> None:
        self._station = station
        self._settler = settler
        self._runner = runner
        self._fetcher = fetcher

    @property
    def reclaimed(self) -> int:
        return self._fetcher.reclaimed

    @property
    def leases_lost(self) -> int:
        return self._settler.lost + self._runner.dropped

    @property
    def errors(self) -> Counter[str]:
        return self._station.complaints.errors

    @property
    def slots(self) -> int:
        return self._station.options.concurrency

    @property
    def loop_lag_s(self) -> float:
        return self._station.pulse.lag_s

    def running(self) -> Iterator[Labels]:
        """Yield queue and kind of each job whose handler runs."""
        for queue in self._station.queues:
            for execution in list(queue.held.values()):
                if execution.runs:
                    yield queue.keys.queue, execution.kind
