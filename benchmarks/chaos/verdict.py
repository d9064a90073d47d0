"""What a soak has shown: its numbers, and whether it was hard enough to show anything.

A run is cut into parts of about a minute. In each of them enough jobs must have come in, and at least one
claim must have been taken over, one late write refused, and one enqueue left without an answer; and a
duplicate, a limit, a cron and a guarded effect must have had their say. Else the run is void, for it
might have gone well because nothing went wrong.
"""

from collections.abc import Iterator, Sequence

import msgspec

from tests.faults.rules import Evidence
from tests.faults.stories import SETTLING, Stories, Story

LEAST_JOBS_PER_S = 200
PART_S = 60.0


class Span(msgspec.Struct, frozen=True):
    """From when to when the faults were made, by the monotonic clock."""

    begin: float
    end: float

    @property
    def seconds(self) -> float:
        """More than 0, also of a run that was ended before it had begun."""
        return max(0.001, self.end - self.begin)

    @property
    def parts(self) -> int:
        """How many parts of a minute or more it has; one if it is shorter."""
        return max(1, int(self.seconds / PART_S))

    def part(self, at: float) -> int:
        """Return the part of a time; what comes before and after belongs to the first and the last."""
        place = int((at - self.begin) / self.seconds * self.parts)
        return min(max(0, place), self.parts - 1)


class Part(msgspec.Struct):
    """What happened in a part of the run."""

    accepted: int = 0
    refused: int = 0
    """Endings of jobs by workers that had lost them to others."""
    unknown: int = 0
    """Enqueues whose caller was told that the outcome is not known; some learnt it later."""
    reclaimed: int = 0
    """Starts of claims whose worker had fallen silent."""
    duplicates: int = 0
    """Enqueues that a dedupe key refused."""
    limited: int = 0
    """How often a job was told to wait for a limit."""
    slots: int = 0
    """Slots of crons that began."""
    skipped: int = 0
    """Guarded effects that another run had had."""

    def lacks(self, seconds: float) -> Iterator[str]:
        """Yield what this part should have had."""
        if self.accepted < LEAST_JOBS_PER_S * seconds:
            yield f"{self.accepted / seconds:.0f} jobs/s came in, {LEAST_JOBS_PER_S} are needed"
        needed = {
            "refusal": self.refused,
            "unknown enqueue": self.unknown,
            "reclaim": self.reclaimed,
            "duplicate": self.duplicates,
            "wait for a limit": self.limited,
            "slot of a cron": self.slots,
            "skipped effect": self.skipped,
        }
        yield from (f"no {name}" for name, count in needed.items() if not count)


def parts(evidence: Evidence, span: Span) -> list[Part]:
    """Return what happened in each part of the run."""
    found = [Part() for _ in range(span.parts)]
    for fate in evidence.stories.fates:
        answer = fate.answer
        if answer and span.begin <= answer.at <= span.end:
            part = found[span.part(answer.at)]
            part.accepted += not answer.duplicate
            part.duplicates += answer.duplicate
        unknown = next((one for one in fate.answers if one.outcome == "unknown"), None)
        if unknown:
            found[span.part(unknown.at)].unknown += 1
    for story in evidence.stories.jobs.values():
        for at in _refusals(story):
            found[span.part(at)].refused += 1
        for at in _reclaims(story):
            found[span.part(at)].reclaimed += 1
        for at in story.parked:
            found[span.part(at)].limited += 1
        if story.cron and story.runs:
            found[span.part(story.runs[0].start.at)].slots += 1
    for at in _skips(evidence.stories):
        found[span.part(at)].skipped += 1
    return found


def _skips(stories: Stories) -> Iterator[float]:
    for steps in stories.guarded.values():
        had = {id(run) for run, step in steps if step.step == "has"}
        for run, step in steps:
            # A run that ended otherwise was sent away: another one was at it.
            if step.step == "asks" and id(run) not in had and run.end and run.end.outcome == "ok":
                yield step.at


def _refusals(story: Story) -> Iterator[float]:
    unsure = {(move.process.name, move.event.move) for move in story.moves if move.word == "UNSURE"}
    for move in story.moves:
        # A move that is sent again after a lost reply is refused for its own first try; and a renewal may cross
        # with the end of the job, brought by the same worker.
        if move.word == "LOST" and move.event.move in SETTLING and (move.process.name, move.event.move) not in unsure:
            yield move.event.at


def _reclaims(story: Story) -> Iterator[float]:
    if all(run.start.deliveries == 1 for run in story.runs):
        return
    given_back = {(move.event.entry, move.event.deliveries) for move in story.maybe("release")}
    for run in story.runs:
        if run.start.deliveries > 1 and (run.start.entry, run.start.deliveries - 1) not in given_back:
            yield run.start.at


def why_void(found: Sequence[Part], span: Span) -> str | None:
    """Return why a run shows nothing, or None for one that was hard enough."""
    length_s = span.seconds / len(found)
    lacks = [
        f"part {place} of {len(found)}: {lack}" for place, part in enumerate(found, 1) for lack in part.lacks(length_s)
    ]
    return "; ".join(lacks) or None
