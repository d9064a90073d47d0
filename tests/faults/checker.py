"""Judge a run by what its processes wrote and what the server holds: `check(read(folder), audit(...), rules)`.

The invariants, by the names that findings carry:

    I1   nothing accepted is lost            I13  a batch has an outcome per item, and its order
    I1b  the dead are visible                I14  no start beside a healthy worker's run
    I2   nothing is invented or changed      I15  what a dead process ran starts again in time
    I3   failed means not there              I16  nothing is stuck; work goes on after a fault
    I4   one call, one job                   I17  who was told to stop starts nothing, and leaves
    I5   nothing stale counts but a success  I18  nothing is left over
    I6   one live copy                       I19  the counters add up, and are those that were seen
    I7   attempts and crashes are bounded    I20  a replay takes one death
    I8   nothing starts early                I21  old code buries nothing new
    I9   what was sent is what happened      I22  no effect without a start
    I10  promoted once                       I23  no more run at once than a limit allows
    I11  an end is final                     I24  no more start in a time than a rate allows
    I12  dedupe keys hold as long as they    I25  each slot of a cron is one job, and none is early
         should; the newest arguments win    I26  a recorded effect is not had again

A success may come from whoever ran the job, as long as the entry is there; later ones are LOST and
counted. Jobs that run twice are a number of the report, never a finding. What concerns a job that was
touched in a loss window is `excused`: listed, but no failure. What was invented, changed, or started
though it had failed or was not due is never excused.
"""

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from tests.faults import judge_calls, judge_flow, judge_jobs, judge_keys, judge_repeats, judge_runs
from tests.faults.audit import Snapshot
from tests.faults.history import History
from tests.faults.rules import Evidence, Finding, Rules
from tests.faults.stories import Stories, Story

NEVER_EXCUSED = {"I2", "I3", "I8", "I9", "I13", "I16", "I17", "I22"}


class Report(msgspec.Struct, frozen=True):
    """The verdict. Numbers count jobs where nothing else is said."""

    violations: list[Finding]
    excused: list[Finding]
    """Breaches that a loss window allows."""
    windows: list[tuple[float, float, str]]
    """The loss windows: since, until, why."""
    jobs: int
    """Accepted, or found to be there after an unknown outcome."""
    starts: int
    done: int
    dead: int
    cancelled: int
    lost: int
    invented: int
    stuck: int
    duplicated: int
    """Started again although nothing had sent them back."""
    late_starts: int
    """Started after their end by a worker that had claimed them before."""
    refused: int
    """Moves that the fence refused."""
    duplicates_refused: int
    """Enqueues whose dedupe key another job held."""
    limited: int
    """How often a job had to wait for a limit."""
    unknown: int
    """Enqueues whose outcome nobody learnt."""
    unsure: int
    """Moves whose reply never came."""
    reclaimed: int
    """Starts of entries that were delivered before."""
    crashed: int
    """Starts that ended with their process."""
    torn: int
    """Files whose last line was cut off."""
    longest_recovery_s: float

    @property
    def ok(self) -> bool:
        return not self.violations

    def caught(self) -> set[str]:
        """Return the names of the invariants that were broken."""
        return {finding.invariant for finding in self.violations}

    @property
    def numbers(self) -> str:
        """All numbers with their names, in one line."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return "  ".join(f"{name} {n:.6g}" for name, n in values.items() if isinstance(n, int | float))

    def __str__(self) -> str:
        shown = [str(finding) for finding in self.violations[:20]]
        more = len(self.violations) - len(shown)
        rest = [f"... and {more} more"] if more else []
        rest += [f"{len(self.excused)} more in {len(self.windows)} loss windows"] if self.windows else []
        return "\n".join([self.numbers, *shown, *rest])


def check(history: History, snapshot: Snapshot, rules: Rules | None = None) -> Report:
    """Judge a history together with the state at its end."""
    with without_collections():
        return judge(Evidence(Stories(history), snapshot, rules or Rules()))


def judge(evidence: Evidence) -> Report:
    """Judge what was gathered; the stories then know their calls."""
    return _report(evidence, list(_judge(evidence)))


@contextmanager
def without_collections() -> Iterator[None]:
    """Keep the collector from walking a million events again and again: half of the time goes there."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _judge(evidence: Evidence) -> Iterator[Finding]:
    yield from judge_calls.judge(evidence)
    for story in evidence.stories.jobs.values():
        yield from judge_jobs.judge(story, evidence)
    for rest in (judge_keys, judge_runs, judge_flow, judge_repeats):
        yield from rest.judge(evidence)


def _excused(finding: Finding, evidence: Evidence) -> bool:
    if not evidence.stories.losses or finding.invariant in NEVER_EXCUSED:
        return False
    story = evidence.stories.jobs.get(finding.job)
    return story is None or evidence.touched(story)


def _report(evidence: Evidence, findings: list[Finding]) -> Report:
    excused = [finding for finding in findings if _excused(finding, evidence)]
    ids = set(map(id, excused))
    violations = [finding for finding in findings if id(finding) not in ids]
    stories = evidence.stories
    count: Counter[str] = Counter()
    for story in stories.jobs.values():
        _count(story, count, evidence)
    broken = Counter(finding.invariant for finding in violations)
    return Report(
        violations=violations,
        excused=excused,
        windows=[(loss.since, loss.at, loss.why) for loss in stories.losses],
        jobs=count["jobs"],
        starts=count["starts"],
        done=count["done"],
        dead=len(evidence.dead),
        cancelled=count["cancelled"],
        lost=broken["I1"] + broken["I1b"],
        invented=broken["I2"] + broken["I3"] + broken["I4"],
        stuck=broken["I16"],
        duplicated=count["duplicated"],
        late_starts=count["late"],
        refused=count["refused"],
        duplicates_refused=sum(fate.answer is not None and fate.answer.duplicate for fate in stories.fates),
        limited=count["limited"],
        unknown=sum(fate.outcome == "unknown" for fate in stories.fates),
        unsure=count["unsure"],
        reclaimed=count["reclaimed"],
        crashed=count["crashed"],
        torn=sum(process.torn for process in stories.history),
        longest_recovery_s=judge_runs.longest_outage(evidence),
    )


def _count(story: Story, count: Counter[str], evidence: Evidence) -> None:
    """Add what a job contributes to the numbers of a report."""
    count["jobs"] += story.fate is not None
    count["starts"] += len(story.runs)
    count["limited"] += len(story.parked)
    for move in story.moves:
        count["unsure"] += move.word == "UNSURE"
        count["refused"] += move.word in ("LOST", "CANCELLED")
        count["done"] += move.event.move == "complete" and move.word == "OK"
        count["cancelled"] += move.event.move == "cancel" and move.word == "OK"
    if not story.runs or (len(story.runs) == 1 and story.runs[0].start.deliveries == 1 and story.runs[0].end):
        return
    count["reclaimed"] += sum(run.start.deliveries > 1 for run in story.runs)
    count["crashed"] += sum(run.end is None for run in story.runs)
    asked = len(story.maybe("retry", "snooze", "release", "replay"))
    count["duplicated"] += len(story.runs) > 1 + asked
    for end in (move for move in story.moves if move.ends):
        after = [run for run in story.runs if run.start.at > end.event.at]
        count["late"] += sum(judge_jobs.late_start(run, end, evidence) for run in after)
