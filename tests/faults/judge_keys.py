"""Judge dedupe keys: who holds one holds it alone, as long as its mode says, and newer arguments are run.

The mode is the holder's. Where it is not sure when the server did something, a key counts as held only
while it surely was, and as free only once it surely was.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import TypeAlias

from tests.faults.clock import PACE, ROUNDED_S
from tests.faults.history import Called
from tests.faults.rules import Evidence, Finding
from tests.faults.stories import ENDLESS, Fate, Run, Story, id_ms

Holders: TypeAlias = dict[tuple[str, str], list[Story]]
"""By queue and key the jobs that had it."""


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Yield all that is wrong with keys and with what was enqueued under them; the stories know their calls."""
    holders: Holders = defaultdict(list)
    for story in evidence.stories.jobs.values():
        if story.fate and story.fate.called.key:
            holders[story.fate.called.queue, story.fate.called.key].append(story)
    yield from duplicates(evidence)
    yield from keys(holders, evidence)
    yield from given_back(evidence)
    for where, fates in evidence.stories.latest.items():
        newest = _Newest(fates, holders[where], evidence)
        yield from newest.run()
        yield from newest.first()
        yield from newest.once()


def duplicates(evidence: Evidence) -> Iterator[Finding]:
    """I12: a duplicate names a job that is or was there, that had the same key, and held it still."""
    for fate in evidence.stories.fates:
        answer = fate.answer
        if answer is None or not answer.duplicate:
            continue
        story = evidence.stories.jobs.get(answer.job)
        if story is None and answer.job not in evidence.live and answer.job not in evidence.dead:
            yield Finding("I12", answer.job, "a duplicate of a job that nobody knows", fate.show())
        elif story and story.fate and (holder := story.fate.called).key != fate.called.key:
            yield Finding("I12", answer.job, f"a duplicate by the key {holder.key!r} of another", fate.show())
        elif story and story.fate and _free_since(story, evidence) < fate.called.at:
            text = f"a duplicate of a job that had {_freed_by(story)} before"
            yield Finding("I12", answer.job, text, (*story.fate.show(), *fate.show()))


def keys(holders: Holders, evidence: Evidence) -> Iterator[Finding]:
    """I12: while a job holds a key, no other gets it."""
    for (_, key), stories in holders.items():
        told = [story for story in stories if story.fate and story.fate.answer]
        for first, second in pairwise(sorted(told, key=lambda story: id_ms(story.job))):
            assert first.fate is not None
            assert second.fate is not None
            asked = second.fate.called.at
            if _held_from(first) < asked and _held_from(second) < _held_until(first, evidence):
                text = f"got the key {key!r} while {first.job} held it"
                yield Finding("I12", second.job, text, (*first.fate.show(), *second.fate.show()))


def given_back(evidence: Evidence) -> Iterator[Finding]:
    """I12: no job holds a key after the event that frees it; a window ends by itself."""
    for name, holder in evidence.snapshot.holders.items():
        story = evidence.stories.jobs.get(holder)
        fate = story.fate if story else None
        if fate and fate.called.window_ms:
            continue
        if holder not in evidence.live:
            yield Finding("I12", holder, f"holds the key {name!r} after its end")
        elif story and fate and fate.called.mode == "started" and _free_since(story, evidence) < ENDLESS:
            yield Finding("I12", holder, f"holds the key {name!r} after its start", fate.show())


def _held_from(story: Story) -> float:
    """Return from when on a job surely held its key: the answer, or of one that nobody was told of its first start."""
    assert story.fate is not None
    if not story.follows:
        return story.fate.settled_at
    return min((run.start.at for run in story.runs), default=ENDLESS)


def _held_until(story: Story, evidence: Evidence) -> float:
    """Return until when a job surely held its key: the first moment at which that can have been freed."""
    assert story.fate is not None
    called = story.fate.called
    ended_by_hand = [move.event.sent for move in story.maybe("cancel", "purge", "replay") if not move.event.deliveries]
    if called.window_ms:
        over = called.at + _window_s(called) * (1 - PACE) - ROUNDED_S
        return min([over if _lasts(called, over, evidence) else 0.0, *ended_by_hand])
    freed = [move.event.sent for move in story.maybe("complete", "bury", "cancel")]
    freed += [run.end.at for run in story.runs if run.end is not None and not story.answered(run)]
    if called.mode == "started":
        first = min((move.event for move in story.maybe("start")), key=lambda event: event.sent, default=None)
        # Whoever had it before may have said that it starts, and not have lived to write that down.
        freed.append(first.sent if first and first.deliveries == 1 else called.at)
    return min([*freed, *ended_by_hand], default=ENDLESS)


def _free_since(story: Story, evidence: Evidence) -> float:
    """Return from when on a job surely held its key no more; never, where it may have been replayed."""
    assert story.fate is not None
    called = story.fate.called
    if story.generation(ENDLESS):
        return ENDLESS
    if called.window_ms:
        over = story.fate.settled_at + _window_s(called) * (1 + PACE) + ROUNDED_S
        return over if _lasts(called, over, evidence) else ENDLESS
    freed = [move.event.at for move in story.moves if move.ends]
    if called.mode == "started":
        freed += [move.event.at for move in story.done("start")]
        freed += [run.start.at for run in story.runs]
    return min(freed, default=ENDLESS)


def _window_s(called: Called) -> float:
    return (called.delay_ms + called.window_ms) / 1000


def _lasts(called: Called, over: float, evidence: Evidence) -> bool:
    """Say whether it can be said when a window ends: when an instant of its clock is, only the server knows."""
    return not called.due_ms and evidence.steady(called.at, over)


def _freed_by(story: Story) -> str:
    assert story.fate is not None
    called = story.fate.called
    return "its window behind it" if called.window_ms else "started" if called.mode == "started" else "ended"


class _Newest:
    """The calls of one key whose arguments replace older ones, and the jobs that run them."""

    def __init__(self, fates: list[Fate], stories: list[Story], evidence: Evidence) -> None:
        self._fates, self._stories, self._evidence = fates, stories, evidence
        self._by_body = {fate.called.body: fate for fate in fates}

    def _holder(self, fate: Fate) -> Story | None:
        """Return the job that surely got a call's arguments: its own, or one that takes newer ones of its kind."""
        story = self._evidence.stories.jobs.get(fate.answer.job) if fate.answer else None
        if story is None or story.fate is None:
            return None
        own = story.fate.called
        return story if own.mode == "latest" and own.kind == fate.called.kind else None

    def run(self) -> Iterator[Finding]:
        """I1: of what was enqueued, the newest is run to an end."""
        for fate in self._fates:
            story = self._holder(fate)
            if story is None or any(self._covers(one, fate) for one in self._stories):
                continue
            if not any(one.job in self._evidence.live for one in self._stories):
                yield Finding("I1", story.job, "lost: the newest arguments were never run to an end", fate.show())

    def _covers(self, story: Story, fate: Fate) -> bool:
        """Say whether a job came to an end with the arguments of a call, or with such as may be newer."""
        good = any(
            run.end is not None and run.end.outcome == "ok" and self._may_replace(run.start.body, fate)
            for run in story.runs
        )
        rows = self._evidence.dead.get(story.job, [])
        return good or any(self._may_replace(row.body, fate) for row in rows) or bool(story.maybe("cancel", "purge"))

    def _may_replace(self, body: str, fate: Fate) -> bool:
        newer = self._by_body.get(body)
        return newer is fate or (newer is not None and newer.settled_at >= fate.called.at)

    def first(self) -> Iterator[Finding]:
        """I12: a start has the newest arguments that had surely come; so has a job that follows another."""
        brought: dict[str, list[Fate]] = defaultdict(list)
        for fate in self._fates:
            if story := self._holder(fate):
                brought[story.job].append(fate)
        for story in self._stories:
            for run in story.runs:
                came = [fate for fate in brought[story.job] if fate.settled_at < run.start.claimed]
                if story.follows and story.fate and story.fate.answer:
                    # Who was told another job's id came before that had ended.
                    came += brought[story.fate.answer.job]
                yield from self._older(story, run, came)

    def _older(self, story: Story, run: Run, came: list[Fate]) -> Iterator[Finding]:
        taken = self._by_body.get(run.start.body)
        newer = next((fate for fate in came if taken and taken.settled_at < fate.called.at), None)
        if taken and newer:
            text = "started with older arguments than had come"
            yield Finding("I12", story.job, text, (*taken.show(), *newer.show(), *run.show()))

    def once(self) -> Iterator[Finding]:
        """I12: what a job was done with is not run once more by one that follows."""
        done: dict[str, Run] = {}
        for story in sorted(self._stories, key=lambda story: id_ms(story.job)):
            for run in story.runs:
                before = done.setdefault(run.start.body, run) if _succeeded(story, run) else done.get(run.start.body)
                if story.follows and before and before.start.job != story.job:
                    text = f"follows with arguments with which {before.start.job} was done"
                    yield Finding("I12", story.job, text, (*before.show(), *run.show()))


def _succeeded(story: Story, run: Run) -> bool:
    return any(move.event.move == "complete" and move.word == "OK" for move in story.moves_of(run))
