"""Write decisions: what gathered while one flush was under way goes in the next, one call per move."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, assert_never

import msgspec

from streamjobs.core.errors import OutcomeUnknown, StreamJobsError, Unavailable
from streamjobs.core.failpoints import failpoint
from streamjobs.core.job import Bury, Cancel, Complete, Decision, Release, Retry, Snooze
from streamjobs.protocol import lanes, leases, settle
from streamjobs.protocol.calls import Call
from streamjobs.protocol.intake import MAX_BATCH_JOBS
from streamjobs.protocol.keys import QueueKeys
from streamjobs.worker import endings
from streamjobs.worker.execution import Execution, WorkerQueue
from streamjobs.worker.insist import heal
from streamjobs.worker.service import Backoff
from streamjobs.worker.station import Station
from streamjobs.worker.times import Ended, Times, ended

log = logging.getLogger("streamjobs.worker")


_OUTCOMES = {"retry": "retried", "snooze": "snoozed", "bury": "dead", "cancel": "cancelled", "release": "released"}
"""By move."""


class Item(msgspec.Struct, frozen=True):
    """One claim of a move other than complete: what is written, and the counters that grow by one."""

    execution: Execution
    words: Any
    counters: tuple[str, ...] = ()


class Successes:
    """Successes of one kind: plain ones that own nothing beside their entry, and full ones."""

    def __init__(self) -> None:
        self.plain: list[Execution] = []
        self.full: list[tuple[Execution, settle.Ending]] = []

    def executions(self) -> list[Execution]:
        """Return all of them, in the order in which they are written."""
        return self.plain + [execution for execution, _ in self.full]

    def group(self, kind: str) -> settle.Finished:
        """Return what is written of them."""
        return settle.Finished(kind, [one.claim.entry for one in self.plain], [ending for _, ending in self.full])


class Pile:
    """What gathered for one queue: successes by kind, and the other moves."""

    def __init__(self, queue: WorkerQueue) -> None:
        self.queue = queue
        self.size = 0
        self.successes: dict[str, Successes] = {}
        self.moves: dict[str, list[Item]] = {}
        self.leavers: list[lanes.Leaver] = []
        """Those that give up slots."""


class Written(msgspec.Struct, frozen=True):
    """One call under way, and the claims that it settles, in the order of its indexes."""

    queue: WorkerQueue
    call: Call[Any]
    executions: list[Execution]


class Settler:
    """Gathers decisions and writes them; a claim is held, and its lease kept, until that has worked."""

    def __init__(self, station: Station) -> None:
        self.times = Times(station)
        self.on_settling: list[Callable[[Ended], None]] = [self.times.add]
        """Each is called with every batch of one kind and outcome, once, just before it is written."""
        self._executor = station.executor
        self._consumer = station.consumer
        self._clock = station.clock
        self._backoff = Backoff(station.random)
        self.complaints = station.complaints
        self._piles: list[Pile] = []
        self._open: dict[WorkerQueue, Pile] = {}
        self._flushing: asyncio.Task[None] | None = None
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Ends with the error that no repetition can heal."""
        self.on_woken: Callable[[WorkerQueue, int], None] | None = None
        """Called when so many jobs of a queue may go on in the place of ended ones; with None the bell rings."""
        self.done = self.failed = self.given_back = self.lost = 0

    @property
    def idle(self) -> bool:
        """Whether everything that was decided has been written."""
        return self._flushing is None

    def returned(self, execution: Execution) -> None:
        """Take a success that owns nothing beside its entry: the common case."""
        self._successes(execution).plain.append(execution)

    def decided(self, execution: Execution, decision: Decision) -> None:
        """Take any other decision."""
        match decision:
            case Complete(value):
                ending = endings.ending(execution, endings.done(value))
                self._successes(execution).full.append((execution, ending))
            case Retry() | Snooze():
                words = endings.postponement(execution, decision, self._consumer, self._clock.now_ms())
                move = "retry" if isinstance(decision, Retry) else "snooze"
                self._add(move, execution, words, endings.counters(decision))
            case Bury():
                death = endings.death(execution, decision, self._consumer, self._clock.now_ms())
                self._add("bury", execution, death, endings.counters(decision))
            case Cancel(reason):
                self._add("cancel", execution, endings.cancellation(execution, reason))
            case Release():
                self.release(execution)
            case _:
                assert_never(decision)

    def release(self, execution: Execution, *, held_alone: bool = False, quiet: bool = False) -> None:
        """Give a claim back; `held_alone` when it waited in vain for a process of its own, `quiet` when one will
        look for it.
        """
        # It keeps its slots: whoever takes it goes on in its place.
        self._add("release", execution, endings.giveback(execution, held_alone=held_alone, quiet=quiet))

    def vacate(self, execution: Execution) -> None:
        """Give up the slots of an execution that has ended, whatever became of its job.

        An abandoned one keeps them until its handler ends, or until the server frees them, a lease after.
        """
        if execution.slots:
            self._vacate(self._pile(execution.queue), execution)

    def _vacate(self, pile: Pile, execution: Execution) -> None:
        claim = execution.claim
        if slots := execution.slots:
            # A sweep of its own may have raised the delivery count since: the slot has that of the start.
            pile.leavers.append(lanes.Leaver(claim.entry, execution.admitted, slots))
        elif not execution.admitted:
            # It ends without a start: a place may be kept for it, or an earlier start have left it one.
            pile.leavers.append(lanes.Leaver(claim.entry, 0, list(execution.lanes)))

    def _successes(self, execution: Execution) -> Successes:
        pile = self._pile(execution.queue)
        execution.settling = True
        successes = pile.successes.get(execution.kind)
        if successes is None:
            successes = pile.successes[execution.kind] = Successes()
        if execution.lanes:
            self._vacate(pile, execution)
        return successes

    def _add(self, move: str, execution: Execution, words: Any, counters: tuple[str, ...] = ()) -> None:
        execution.settling = True
        pile = self._pile(execution.queue)
        if execution.lanes and move != "release" and not execution.abandoned:
            self._vacate(pile, execution)
        pile.moves.setdefault(move, []).append(Item(execution, words, counters))

    def _pile(self, queue: WorkerQueue) -> Pile:
        pile = self._open.get(queue)
        if pile is None or pile.size >= MAX_BATCH_JOBS:
            pile = self._open[queue] = Pile(queue)
            self._piles.append(pile)
        pile.size += 1
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush_all(), name="streamjobs-settle")
        return pile

    async def drained(self) -> None:
        """Wait until everything that was decided has been written."""
        while self._flushing is not None:
            await asyncio.wait([self._flushing])

    async def close(self) -> bool:
        """Give up on what has not been written; return whether that was nothing.

        What was not written stays claimed, and falls to another worker when its lease has ended.
        """
        if self._flushing is None:
            return True
        self._flushing.cancel()
        await asyncio.wait([self._flushing])
        log.error("not everything could be settled: other workers will run it again after a lease")
        return False

    async def _flush_all(self) -> None:
        try:
            while self._piles:
                piles, self._piles = self._piles, []
                self._open.clear()
                await self._write([written for pile in piles for written in self._calls(pile)])
        except Exception as error:
            # Whatever it is: a worker that settles nothing must not go on as if it did.
            if not self.broken.done():
                self.broken.set_exception(error)
        finally:
            self._flushing = None

    async def _write(self, written: list[Written]) -> None:
        """Send calls until each has an answer; what may have been done already is sent again all the same."""
        unsure: set[int] = set()
        """The identities of calls that may have been executed before."""
        while written:
            failpoint("settle.before")
            answers = await self._executor.run_all([one.call for one in written])
            failpoint("settle.after")
            rest: list[Written] = []
            for one, answer in zip(written, answers, strict=True):
                if isinstance(answer, Unavailable | OutcomeUnknown):
                    self.complaints.trying_on("settle", answer)
                    rest.append(one)
                    if isinstance(answer, OutcomeUnknown):
                        unsure.add(id(one))
                    await heal(self._executor, one.queue, answer)
                elif isinstance(answer, StreamJobsError):
                    raise answer
                else:
                    self._answered(one, answer, repeated=id(one) in unsure)
            written = rest
            if rest:
                await asyncio.sleep(self._backoff.pause_s())
        self._backoff.reset()

    def _answered(self, one: Written, answer: Any, *, repeated: bool) -> None:
        if one.call.script == "vacate":
            if answer and self.on_woken:
                self.on_woken(one.queue, answer)
            return
        lost = set(answer) if isinstance(answer, dict) else {i for i, w in enumerate(answer) if w in ("LOST", "GONE")}
        if one.call.script == "complete":
            self.done += len(one.executions) - len(lost)
        elif one.call.script in ("retry", "bury"):
            self.failed += len(one.executions) - len(lost)
        elif one.call.script == "release":
            self.given_back += len(one.executions) - len(lost)
        self.lost += len(lost)
        # After a repetition, "lost" may be this worker's own first try.
        for index in () if repeated else lost:
            if one.executions[index].again is None:
                job = one.executions[index].job_id
                log.warning("%s of job %s came too late: another worker holds or has ended it", one.call.script, job)
        one.queue.drop(*one.executions)
        if one.call.script == "release":
            self._return(one.executions)
        elif one.call.script != "complete":
            # A success ends a job whoever holds it; any other move that came through has ended it too.
            self._return([one.executions[index] for index in lost])

    def _return(self, executions: Sequence[Execution]) -> None:
        """Give back what this worker has claimed again while it wrote of the earlier claim: nobody else knows of it,
        and it would lie here for a lease.
        """
        for execution in executions:
            if execution.again and (again := execution.queue.add(execution.again)):
                self.release(again)

    def _calls(self, pile: Pile) -> Iterable[Written]:
        keys = pile.queue.keys
        if pile.successes:
            groups, executions = [], []
            for kind, successes in pile.successes.items():
                alike = successes.executions()
                groups.append(successes.group(kind))
                self._tell(keys, kind, "done", alike)
                executions += alike
            yield Written(pile.queue, settle.complete(keys, groups), executions)
        for move, items in pile.moves.items():
            items.sort(key=_kind)
            executions = [item.execution for item in items]
            for kind, group in groupby(executions, key=_kind_of):
                self._tell(keys, kind, _OUTCOMES[move], list(group))
            yield Written(pile.queue, self._call(pile.queue, move, items), executions)
        if pile.leavers:
            # Behind what settles them, so that nobody starts in their place before they have ended.
            yield Written(pile.queue, lanes.vacate(keys, pile.leavers, ring=self.on_woken is None), [])

    def _tell(self, keys: QueueKeys, kind: str, outcome: str, alike: list[Execution]) -> None:
        batch = ended(keys, kind, outcome, alike, self._clock.offset_ms)
        for take in self.on_settling:
            take(batch)

    def _call(self, queue: WorkerQueue, move: str, items: list[Item]) -> Call[Any]:
        words = [item.words for item in items]
        if move == "release":
            return leases.release(queue.keys, self._consumer, queue.lease_ms, words)
        if move == "cancel":
            return settle.cancel(queue.keys, self._consumer, words)
        groups = []
        for kind, group in groupby(items, key=_kind):
            rows = list(group)
            sums = Counter(name for row in rows for name in row.counters)
            groups.append((kind, dict(sums), [row.words for row in rows]))
        if move == "bury":
            return settle.bury(queue.keys, self._consumer, groups)
        build = settle.retry if move == "retry" else settle.snooze
        return build(queue.keys, self._consumer, groups)


def _kind(item: Item) -> str:
    return item.execution.kind


def _kind_of(execution: Execution) -> str:
    return execution.kind
