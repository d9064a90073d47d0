"""How long it took until work went on after each fault.

After a kill or a pause: from the signal until every job that the process held has started again, has
been settled, or was told to wait for its limit. After a cut: from its end until the first job that a
worker behind it got done; for producers, the first that was accepted. After a restart or a loss of the
scripts: from the moment at which the server answers until the first job done. The wait begins anew with
whatever is broken, killed or paused meanwhile.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

import msgspec

from tests.faults.history import Answered
from tests.faults.judge_runs import unbroken_since
from tests.faults.rules import Evidence
from tests.faults.stories import Story

from .faults import Blow

SETTLED = ("complete", "retry", "snooze", "bury", "cancel")


class Recovery(msgspec.Struct, frozen=True):
    """One wait."""

    kind: str
    at: float
    """When the fault was."""
    seconds: float
    job: str = ""
    """Whose wait it was; empty where it was anybody's."""


def recoveries(blows: Iterable[Blow], evidence: Evidence) -> Iterator[Recovery]:
    """Yield each wait that has come to an end; what never came is found by others."""
    stories = evidence.stories
    of_entry = {run.start.entry: story for story in stories.jobs.values() for run in story.runs}
    # A job whose entry nobody started has the name of its entry, or was found by none and is lost.
    of_entry.update({job: story for job, story in stories.jobs.items() if job not in of_entry})
    done, accepted = _Times(_done(evidence)), _Times(_accepted(evidence))
    for blow in blows:
        for entry in blow.held:
            story = of_entry.get(entry)
            if story and (at := _next(story, blow.since)):
                yield Recovery(blow.kind, blow.since, at - unbroken_since(blow.since, at, evidence), story.job)
        if blow.kind in ("cut", "restart", "flush"):
            times = accepted if blow.way == "producers" else done
            if at := times.first(blow.since, blow.pids):
                yield Recovery(blow.kind, blow.since, at - unbroken_since(blow.since, at, evidence))


def _next(story: Story, since: float) -> float | None:
    times = [run.start.at for run in story.runs if run.start.at > since]
    times += [move.event.at for move in story.done(*SETTLED) if move.event.at > since]
    times += [at for at in story.parked if at > since]
    return min(times, default=None)


def _done(evidence: Evidence) -> Iterator[tuple[float, int]]:
    for story in evidence.stories.jobs.values():
        yield from ((move.event.at, move.process.pid) for move in story.moves if move.ends)


def _accepted(evidence: Evidence) -> Iterator[tuple[float, int]]:
    for process in evidence.stories.history:
        for event in process.events:
            if isinstance(event, Answered) and event.outcome == "ok":
                yield event.at, process.pid


class _Times:
    """When something happened, and in which process."""

    def __init__(self, found: Iterable[tuple[float, int]]) -> None:
        self._found = sorted(found)

    def first(self, since: float, pids: frozenset[int]) -> float | None:
        """Return the first time after that, in one of these processes or, without any, in any."""
        place = bisect_right(self._found, (since, 0))
        return next((at for at, pid in self._found[place:] if not pids or pid in pids), None)
