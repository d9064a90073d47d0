"""Judge the run as a whole: times, stops, counters, and what is left on the server."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import chain

import msgspec

from tests.faults.history import Fault, Process
from tests.faults.rules import Evidence, Finding
from tests.faults.stories import ENDLESS, Run, Story

COUNTED = {"complete": "done", "retry": "retried", "snooze": "snoozed", "bury": "dead", "cancel": "cancelled"}
COUNTED |= {"replay": "replayed", "purge": "purged", "release": "released"}
"""Which counter of the queue grows with a move."""


TURN_S = 0.1
"""What was to start in the turn of the event loop in which the stop came, starts; longer than any turn."""


class Recovery(msgspec.Struct, frozen=True):
    """How long a job whose process died waited for its next start."""

    job: str
    seconds: float


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Yield all that is wrong with the run as a whole."""
    yield from leases(evidence)
    yield from recovered_in_time(evidence)
    yield from alive(evidence)
    yield from stops(evidence)
    yield from left(evidence)
    yield from identity(evidence)
    yield from counters(evidence)


def leases(evidence: Evidence) -> Iterator[Finding]:
    """I14: while a worker that nothing befell runs a job, nobody else starts it."""
    if evidence.rules.lease_s is None:
        return
    for story in evidence.stories.jobs.values():
        for place, first in enumerate(story.runs[:-1]):
            for second in story.runs[place + 1 :]:
                if _overlap(story, first, second) and not _excusable(first, second, evidence):
                    text = "started while a healthy worker was running it"
                    yield Finding("I14", story.job, text, (*first.show(), *second.show()))


def _overlap(story: Story, first: Run, second: Run) -> bool:
    begins = second.start.at
    if first.end is not None and first.end.at <= begins:
        return False
    # A run that does not end is given up at its deadline, and its job goes on without it.
    return not any(move.event.sent <= begins for move in story.moves_of(first))


def _excusable(first: Run, second: Run, evidence: Evidence) -> bool:
    """Say whether the first may have lost its lease, or the second did not know that it had lost its own."""
    if first.end is None and first.process in evidence.stories.died:
        # When it died is not known well: the harness may have seen it late.
        return True
    until = second.start.at
    if evidence.disturbed(first.process.pid, first.start.at, until):
        return True
    return second.token < first.token and evidence.disturbed(second.process.pid, first.start.at, until)


def recoveries(evidence: Evidence) -> Iterator[tuple[Recovery, Run, Run]]:
    """Yield, for each run whose process died, how long its job waited for the next start.

    The wait begins anew with whatever was broken meanwhile.
    """
    stories = evidence.stories
    for story in stories.jobs.values():
        for run, following in zip(story.runs, story.runs[1:], strict=False):
            death = stories.died.get(run.process)
            if run.end is None and death and run.start.at <= death.at < following.start.at:
                since = unbroken_since(death.at, following.start.at, evidence)
                yield Recovery(story.job, following.start.at - since), run, following


def unbroken_since(at: float, until: float, evidence: Evidence) -> float:
    """Return from when on nothing stood in the way of something that was to happen after `at`, and did at `until`.

    Whoever dies or is frozen meanwhile may have just taken it over.
    """
    stories = evidence.stories
    broken = [fault.at for fault in stories.faults if fault.since < until and at < fault.at]
    broken += [death.at for death in stories.died.values() if at < death.at < until]
    broken += [one.at for one in stories.signals if one.name == "SIGSTOP" and at < one.at < until]
    return min(max([at, *broken]), until)


def recovered_in_time(evidence: Evidence) -> Iterator[Finding]:
    """I15: what a dead process ran is started again within lease and sweep."""
    rules = evidence.rules
    if rules.lease_s is None:
        return
    bound = rules.lease_s + rules.sweep_s + rules.slack_s
    for recovery, run, following in recoveries(evidence):
        waits = evidence.stories.jobs[recovery.job].parked
        if any(run.start.at < at < following.start.at for at in waits):
            # It was taken over, and then had to wait for a limit.
            continue
        suspect = following.start.deliveries > 2 or following.start.attempt > 2
        most = bound + (rules.alone_s if suspect else 0.0)
        if recovery.seconds > most:
            text = f"reclaimed after {recovery.seconds:.2f} s, {most:.2f} s are promised"
            yield Finding("I15", recovery.job, text, (*run.show(), *following.show()))


def alive(evidence: Evidence) -> Iterator[Finding]:
    """I16: once a fault is over, or a job is ready, work goes on without help."""
    rules, stories = evidence.rules, evidence.stories
    starts = sorted(((run.start.at, run) for run in stories.runs()), key=lambda pair: pair[0])
    times = [at for at, _ in starts]
    for fault in stories.faults if rules.heal_s is not None else ():
        place = bisect_left(times, fault.at)
        if place == len(starts) or rules.heal_s is None:
            continue
        at, run = starts[place]
        since = unbroken_since(max(fault.at, _ready(stories.story(run.start.job), run)), at, evidence)
        # What another one held is free only when its lease has ended.
        free_s = rules.sweep_s + (rules.lease_s or 0.0) if run.start.deliveries > 1 else 0.0
        if at - since > rules.heal_s + rules.slack_s + free_s:
            text = f"{fault.name} was over, and the next start came {at - since:.2f} s later"
            yield Finding("I16", run.start.job, text, run.show())
    if rules.start_s is None:
        return
    for story in stories.jobs.values():
        if story.runs and story.fate:
            at = story.runs[0].start.at
            late = at - unbroken_since(min(_ready(story, story.runs[0]), at), at, evidence)
            if late > rules.start_s + rules.slack_s:
                yield Finding("I16", story.job, f"started {late:.2f} s after it was ready", story.runs[0].show())


def _ready(story: Story, run: Run) -> float:
    """Return when a job was ready for a run, by our clock; that run's own start where only the server knows."""
    at = run.start.at
    if story.fate is None or story.fate.called.due_ms:
        return at
    times = [story.fate.called.at + story.fate.called.delay_ms / 1000]
    moves = [move.event for move in story.maybe("retry", "snooze", "release", "replay") if move.event.sent < at]
    times += [event.at + event.delay_ms / 1000 for event in moves]
    return min(at, max(times))


def stops(evidence: Evidence) -> Iterator[Finding]:
    """I17: who was told to stop starts nothing more, and is gone within the grace time."""
    stories, rules = evidence.stories, evidence.rules
    told = {process: stopping.at + TURN_S for process, stopping in stories.stopping.items()}
    terms: dict[Process, float] = {}
    for one in stories.signals:
        process = stories.process(one.pid, one.at)
        if process and one.name in ("SIGTERM", "SIGINT"):
            terms.setdefault(process, one.at)
            told.setdefault(process, one.at + rules.slack_s)
    for run in stories.runs():
        if run.start.at > told.get(run.process, ENDLESS):
            yield Finding("I17", run.start.job, "started by a process that was told to stop", run.show())
    for process, at in terms.items():
        death = stories.died.get(process)
        gone = death.at if death else ENDLESS
        late = rules.grace_s is not None and gone - at > rules.grace_s + rules.slack_s
        if late and not evidence.disturbed(process.pid, at, gone):
            yield Finding("I17", "", f"{process.name} took {gone - at:.2f} s to stop")


def left(evidence: Evidence) -> Iterator[Finding]:
    """I18: nothing is kept of what is over."""
    if evidence.rules.drained:
        for leftover in evidence.snapshot.leftovers:
            yield Finding("I18", "", leftover)


def identity(evidence: Evidence) -> Iterator[Finding]:
    """I19: per queue, what came in is what came out and what is there."""
    for tag, totals in evidence.snapshot.totals.items():
        count = Counter(totals)
        live = sum(1 for one in evidence.snapshot.live if one.job.rpartition(":")[0] == tag)
        rows = sum(1 for one in evidence.snapshot.dead if one.job.rpartition(":")[0] == tag)
        came = count["enqueued"] + count["replayed"]
        went = count["done"] + count["dead"] + count["cancelled"] + live
        if came != went:
            text = f"{tag}: enqueued + replayed = {came}, done + dead + cancelled + live = {went}: {totals}"
            yield Finding("I19", "", text)
        left = count["replayed"] + count["purged"] + count["handed"] + count["trimmed"]
        if count["dead"] + count["restored"] != left + rows:
            yield Finding("I19", "", f"{tag}: dead = {count['dead']}, and {rows} rows: {totals}")


def counters(evidence: Evidence) -> Iterator[Finding]:
    """I10, I19: the counters are those of the moves that were seen, give or take the unsure ones."""
    snapshot = evidence.snapshot
    if not snapshot.totals:
        return
    sure, unsure = _seen(evidence)
    for name in sure:
        told = snapshot.total(name)
        # A process that is killed while it stops gives back claims of which no run tells.
        most = told if name == "released" else sure[name] + unsure[name]
        if not sure[name] <= told <= most:
            text = f"counter {name} is {told}; {sure[name]} were seen, {unsure[name]} more are possible"
            yield Finding("I19", "", text)
    delayed = sum(1 for fate in evidence.stories.fates if fate.called.delay_ms or fate.called.due_ms)
    most = delayed + snapshot.total("retried") + snapshot.total("snoozed")
    if snapshot.total("promoted") > most:
        yield Finding("I10", "", f"{snapshot.total('promoted')} promotions, at most {most} jobs were scheduled")
    if snapshot.total("vanished"):
        yield Finding("I10", "", f"{snapshot.total('vanished')} scheduled jobs had lost their envelope")


def _seen(evidence: Evidence) -> tuple[Counter[str], Counter[str]]:
    """Count what surely happened, and what may have besides, by the names of the counters."""
    sure: Counter[str] = Counter(dict.fromkeys(["enqueued", *COUNTED.values()], 0))
    sure["enqueued"] += sum(bool(story.follows or story.cron) for story in evidence.stories.jobs.values())
    unsure: Counter[str] = Counter()
    for fate in evidence.stories.fates:
        answer = fate.answer
        if answer is None and fate.outcome == "unknown":
            unsure["enqueued"] += 1
        elif answer is not None and not answer.duplicate:
            sure["enqueued"] += 1
    stories = evidence.stories
    for move in chain(stories.strays, *(story.moves for story in stories.jobs.values())):
        name = COUNTED.get(move.event.move)
        if name and move.word in ("OK", "UNSURE"):
            (sure if move.word == "OK" else unsure)[name] += 1
    unsure["dead"] += sum(1 for job in evidence.dead if not stories.story(job).maybe("bury"))
    # A process may have died between a reply and its note.
    for run in stories.runs():
        if run.end and run.process in stories.died and not stories.jobs[run.start.job].moves_of(run):
            unsure.update(COUNTED.values())
    return sure, unsure


def longest_outage(evidence: Evidence) -> float:
    """Return the longest time from a fault's end, or a process's death, to the start that followed from it."""
    times = sorted(run.start.at for run in evidence.stories.runs())
    waits = [recovery.seconds for recovery, _, _ in recoveries(evidence)]
    for fault in _to_all(evidence):
        place = bisect_left(times, fault.at)
        if place < len(times):
            waits.append(times[place] - fault.at)
    return max(waits, default=0.0)


def _to_all(evidence: Evidence) -> Iterator[Fault]:
    return (fault for fault in evidence.stories.faults if not fault.pid)
