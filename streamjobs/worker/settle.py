"""Write decisions: whatever gathered while the last flush was under way goes in the next, one call per move."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from random import Random
from typing import Any, assert_never

import msgspec

from streamjobs.client.aio import AsyncExecutor
from streamjobs.core.errors import OutcomeUnknown, StreamJobsError, Unavailable
from streamjobs.core.execution import Execution
from streamjobs.core.failpoints import failpoint
from streamjobs.core.job import Bury, Cancel, Complete, Decision, Release, Retry, Snooze
from streamjobs.protocol import leases, settle
from streamjobs.protocol.calls import Call
from streamjobs.worker import endings
from streamjobs.worker.queues import Held, ServerClock, WorkerQueue
from streamjobs.worker.service import Backoff, Complaints

log = logging.getLogger("streamjobs.worker")


MOST = 500
"""Claims in one call, so that none holds the server for long."""


class Item(msgspec.Struct, frozen=True):
    """One claim of a move other than complete: what is written, and the counters that grow by one."""

    held: Held
    kind: str
    words: Any
    counters: tuple[str, ...] = ()


class Pile:
    """What gathered for one queue: successes by kind, the other moves as lists."""

    def __init__(self, queue: WorkerQueue) -> None:
        self.queue = queue
        self.size = 0
        self.plain: dict[str, list[Held]] = {}
        self.sums: dict[str, list[float]] = {}
        self.full: dict[str, list[tuple[Held, settle.Ending]]] = {}
        self.moves: dict[str, list[Item]] = {}

    def add(self, move: str, item: Item) -> None:
        """Take one claim of a move other than complete."""
        self.moves.setdefault(move, []).append(item)


class Written(msgspec.Struct, frozen=True):
    """One call under way, and the claims that it settles, in the order of its indexes."""

    queue: WorkerQueue
    call: Call[Any]
    held: list[Held]


class Settler:
    """Gathers decisions and writes them; a claim is held, and its lease kept, until that has worked."""

    def __init__(self, executor: AsyncExecutor, consumer: str, clock: ServerClock, random: Random) -> None:
        self._executor = executor
        self._consumer = consumer
        self._clock = clock
        self._backoff = Backoff(random)
        self._complaints = Complaints()
        self._piles: list[Pile] = []
        self._open: dict[WorkerQueue, Pile] = {}
        self._flushing: asyncio.Task[None] | None = None
        self.broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Ends with the error that no repetition can heal."""
        self.done = self.failed = self.lost = 0

    @property
    def idle(self) -> bool:
        """Whether everything that was decided has been written."""
        return self._flushing is None

    def returned(self, queue: WorkerQueue, held: Held, kind: str, run_s: float) -> None:
        """Take a success that owns nothing beside its entry: the common case, kept short."""
        held.claim.settling = True
        pile = self._pile(queue)
        pile.plain.setdefault(kind, []).append(held)
        self._time(pile, held, kind, run_s)

    def decided(self, queue: WorkerQueue, held: Held, kind: str, decision: Decision, run_s: float = 0.0) -> None:
        """Take any other decision."""
        held.claim.settling = True
        pile = self._pile(queue)
        execution = held.execution
        match decision:
            case Complete(value):
                ending = endings.ending(held.claim, execution, endings.done(value))
                pile.full.setdefault(kind, []).append((held, ending))
                self._time(pile, held, kind, run_s)
            case Retry() | Snooze():
                assert execution is not None
                words = endings.postponement(execution, decision, self._consumer, self._clock.now_ms())
                move = "retry" if isinstance(decision, Retry) else "snooze"
                pile.add(move, Item(held, kind, words, endings.counters(decision)))
            case Bury():
                death = endings.death(held.claim, execution, decision, self._consumer, self._clock.now_ms())
                pile.add("bury", Item(held, kind, death, endings.counters(decision)))
            case Cancel(reason):
                ending = endings.ending(held.claim, execution, endings.cancelled(reason))
                pile.add("cancel", Item(held, kind, ending))
            case Release():
                pile.add("release", Item(held, kind, endings.giveback(held.claim, execution)))
            case _:
                assert_never(decision)

    def release(self, queue: WorkerQueue, held: Held, *, held_alone: bool = False) -> None:
        """Give back a claim that was not started."""
        held.claim.settling = True
        giveback = endings.giveback(held.claim, None, held_alone=held_alone)
        self._pile(queue).add("release", Item(held, "", giveback))

    def _pile(self, queue: WorkerQueue) -> Pile:
        pile = self._open.get(queue)
        if pile is None or pile.size >= MOST:
            pile = self._open[queue] = Pile(queue)
            self._piles.append(pile)
        pile.size += 1
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush_all(), name="streamjobs-settle")
        return pile

    def _time(self, pile: Pile, held: Held, kind: str, run_s: float) -> None:
        sums = pile.sums.setdefault(kind, [0.0, 0.0])
        sums[0] += run_s
        # An entry's id begins with the ms at which it became ready.
        sums[1] += max(0.0, self._clock.now_ms() - run_s * 1000 - int(held.claim.entry[:13]))

    async def drained(self) -> None:
        """Wait until everything that was decided has been written."""
        while self._flushing is not None:
            await asyncio.wait([self._flushing])

    async def _flush_all(self) -> None:
        try:
            while self._piles:
                piles, self._piles = self._piles, []
                self._open.clear()
                await self._write([written for pile in piles for written in self._calls(pile)])
        except StreamJobsError as error:
            if not self.broken.done():
                self.broken.set_exception(error)
        finally:
            self._flushing = None

    async def _write(self, written: list[Written]) -> None:
        """Send calls until each has an answer; what may have been done already is sent again all the same."""
        repeated = False
        while written:
            failpoint("settle.before")
            answers = await self._executor.run_all([one.call for one in written])
            failpoint("settle.after")
            rest: list[Written] = []
            for one, answer in zip(written, answers, strict=True):
                if isinstance(answer, Unavailable | OutcomeUnknown):
                    self._complaints.say(type(answer).__name__, "settle: %s; trying on", answer)
                    rest.append(one)
                    await self._heal(one.queue, answer)
                elif isinstance(answer, StreamJobsError):
                    raise answer
                else:
                    self._answered(one, answer, repeated=repeated)
            written, repeated = rest, True
            if rest:
                await asyncio.sleep(self._backoff.pause_s())
        self._backoff.reset()

    async def _heal(self, queue: WorkerQueue, answer: StreamJobsError) -> None:
        if isinstance(answer, Unavailable) and answer.word == "NOGROUP":
            await self._executor.run_all([leases.make_group(queue.keys)])

    def _answered(self, one: Written, answer: Any, *, repeated: bool) -> None:
        lost = set(answer) if isinstance(answer, dict) else {i for i, w in enumerate(answer) if w in ("LOST", "GONE")}
        if one.call.script == "complete":
            self.done += len(one.held) - len(lost)
        elif one.call.script in ("retry", "bury"):
            self.failed += len(one.held) - len(lost)
        for index in lost:
            self.lost += 1
            claim = one.held[index].claim
            # After a repetition, "lost" may be this worker's own first try.
            if not repeated:
                job = f"{one.queue.keys.tag}:{claim.entry.decode()}"
                log.warning("%s of %s came too late: another worker holds or has ended it", one.call.script, job)
        for held in one.held:
            one.queue.held.pop(held.claim.entry, None)

    def _calls(self, pile: Pile) -> Iterable[Written]:
        keys = pile.queue.keys
        if pile.sums:
            groups, held = [], []
            for kind, (run_s, wait_ms) in pile.sums.items():
                plain, full = pile.plain.get(kind, []), pile.full.get(kind, [])
                sums = {"run_us": round(run_s * 1_000_000), "wait_ms": round(wait_ms)}
                entries = [one.claim.entry for one in plain]
                groups.append(settle.Finished(kind, entries, [ending for _, ending in full], sums))
                held += [*plain, *(one for one, _ in full)]
            yield Written(pile.queue, settle.complete(keys, groups), held)
        for move, items in pile.moves.items():
            items.sort(key=lambda item: item.kind)
            yield Written(pile.queue, self._call(pile.queue, move, items), [item.held for item in items])

    def _call(self, queue: WorkerQueue, move: str, items: list[Item]) -> Call[Any]:
        words = [item.words for item in items]
        if move == "release":
            return leases.release(queue.keys, self._consumer, queue.lease_ms, words)
        if move == "cancel":
            return settle.cancel(queue.keys, self._consumer, words)
        groups = []
        for kind, group in groupby(items, key=lambda item: item.kind):
            rows = list(group)
            sums = Counter(name for row in rows for name in row.counters)
            groups.append((kind, dict(sums), [row.words for row in rows]))
        build = {"retry": settle.retry, "snooze": settle.snooze, "bury": settle.bury}[move]
        return build(queue.keys, self._consumer, groups)
