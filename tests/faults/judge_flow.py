"""Judge limits, by what ran and when: never more at once than has places, never more starts than a rate gives.

A place goes with the claim of a job, so a run counts until its job is another's: what a frozen process
runs on after that, no limit can prevent. A token was paid somewhere between the question whether the
job may start and the start.
"""

import heapq
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import TypeVar

from tests.faults.clock import PACE
from tests.faults.history import Fault, Loss
from tests.faults.rules import Evidence, Finding, Pace
from tests.faults.stories import BESIDE, ENDLESS, Run, token

T = TypeVar("T")

ROUNDED = 0.01
"""The server counts in whole microseconds."""


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Yield where a limit was exceeded."""
    rules = evidence.rules
    for lane, most, runs in _limited(rules.places, evidence):
        yield from at_once(lane, most, runs, evidence)
    if rules.steady_clock:
        for lane, pace, runs in _limited(rules.paces, evidence):
            yield from in_time(lane, pace, runs, evidence)


def _limited(limits: Mapping[str, T], evidence: Evidence) -> Iterator[tuple[str, T, list[Run]]]:
    """Yield each lane of these limits, with its runs in the order of their starts.

    What the server has forgotten, it cannot keep, and with its clock its rates are set anew: that parts what
    was before from what is behind it.
    """
    parts: list[Loss | Fault] = [*evidence.stories.losses, *evidence.jumps]
    lanes: dict[tuple[int, str], list[Run]] = defaultdict(list)
    for run in evidence.stories.runs():
        for lane in run.start.lanes:
            at = run.start.at
            lanes[sum((one.since <= at) + (one.at <= at) for one in parts), lane].append(run)
    for (_, lane), runs in lanes.items():
        if (limit := limits.get(lane.partition(" ")[0])) is not None:
            yield lane, limit, sorted(runs, key=lambda run: run.start.at)


def at_once(lane: str, most: int, runs: list[Run], evidence: Evidence) -> Iterator[Finding]:
    """I23: no more run at once than the limit allows, as far as they hold their jobs."""
    running: list[tuple[float, int, Run]] = []
    for number, run in enumerate(runs):
        begins = run.start.at
        while running and running[0][0] <= begins:
            heapq.heappop(running)
        heapq.heappush(running, (_holds_until(run, evidence), number, run))
        if len(running) > most:
            text = f"{len(running)} run at once in {lane!r}, {most} may"
            yield Finding("I23", run.start.job, text, tuple(line for _, _, one in running for line in one.show()))


def _holds_until(run: Run, evidence: Evidence) -> float:
    """Return until when a run surely had its place: its end, or what took its job away from it."""
    stories, lease_s = evidence.stories, evidence.rules.lease_s or 0.0
    story = stories.jobs[run.start.job]
    over = [run.end.at] if run.end else []
    if death := stories.died.get(run.process):
        over.append(death.at)
        kills = (one.at for one in stories.signals if one.pid == death.pid and one.name == "SIGKILL")
        over += [at for at in kills if at > run.start.at]
    over += [other.start.claimed or other.start.at for other in story.runs if other.token > run.token]
    over += [loss.since for loss in stories.losses if loss.since > run.start.at]
    for move in story.moves:
        event = move.event
        if event.sent < run.start.at or move.word not in ("OK", "PARKED", "UNSURE"):
            continue
        if event.deliveries and token(event) > run.token and move.process is not run.process:
            over.append(event.sent)
        elif event.move not in BESIDE and event.move != "release":
            # Its job is gone while it runs on: the place is kept for a lease.
            over.append(event.sent + (lease_s if evidence.steady(event.sent, event.sent + lease_s) else 0.0))
    return max(run.start.at, min(over, default=ENDLESS))


def in_time(lane: str, pace: Pace, runs: list[Run], evidence: Evidence) -> Iterator[Finding]:
    """I24: in any time no more start than come in it, and the burst."""
    paid = sorted(((*_paid(run, evidence), run) for run in runs), key=itemgetter(1))
    ends = [latest for _, latest, _ in paid]
    for since, _, first in paid:
        count = 0
        for earliest, latest, last in paid[bisect_left(ends, since) :]:
            # Those that surely paid between these two times.
            count += earliest >= since
            allowed = pace.burst + (latest - since) * pace.per_s * (1 + PACE)
            if count > allowed + ROUNDED:
                text = f"{count} starts in {latest - since:.3f} s in {lane!r}, {allowed:.1f} may be"
                yield Finding("I24", last.start.job, text, (*first.show(), *last.show()))
                return


def _paid(run: Run, evidence: Evidence) -> tuple[float, float]:
    """Return between which times a run was let start: its worker asked, or at worst only had the claim."""
    start = run.start
    asked = [
        move.event
        for move in evidence.stories.jobs[start.job].moves
        if move.event.move == "admit"
        and move.word in ("OK", "UNSURE")
        and move.process is run.process
        and token(move.event) == run.token
        and move.event.sent <= start.at
    ]
    if not asked:
        return start.claimed or start.at, start.at
    return min(event.sent for event in asked), min(start.at, max(event.at for event in asked))
