"""Judge enqueues: whose job is what was started, and is a refusal a refusal?"""

from collections import defaultdict
from collections.abc import Iterator

from tests.faults.rules import Evidence, Finding
from tests.faults.stories import Fate, Story


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Give each job its call, and yield all that is wrong with calls and their answers."""
    yield from _named(evidence)
    yield from _strangers(evidence)
    evidence.find_jumps()
    yield from batches(evidence)


def _named(evidence: Evidence) -> Iterator[Finding]:
    """I4: what was answered names one job, however often it was asked."""
    for fate in evidence.stories.fates:
        answer = fate.answer
        if answer is None:
            continue
        others = {other.job for other in fate.answers if other.outcome == "ok"} - {answer.job}
        if others:
            yield Finding("I4", answer.job, f"one call, and the answers name {sorted(others)} too", fate.show())
        if answer.duplicate:
            continue
        fate.job = answer.job
        story = evidence.stories.story(answer.job)
        if story.fate is not None:
            yield Finding("I2", answer.job, "two calls were told this id", (*story.fate.show(), *fate.show()))
        story.fate = fate


def _strangers(evidence: Evidence) -> Iterator[Finding]:
    """I2, I3, I4: a job that no answer names is that of one call whose outcome is unknown, or follows another one
    with the arguments of a call that this one's key refused; or it is a cron's.
    """
    jobs = [job for job, story in evidence.stories.jobs.items() if story.fate is None and story.runs]
    placed = {*evidence.live, *evidence.dead} - set(jobs)
    jobs += [job for job in placed if job not in evidence.stories.jobs or evidence.stories.jobs[job].fate is None]
    jobs = [job for job in jobs if not _by_cron(job, evidence)]
    if not jobs:
        return
    by_body: dict[str, list[Fate]] = defaultdict(list)
    for fate in evidence.stories.fates:
        answer = fate.answer
        if answer is None or not answer.duplicate or fate.called.mode == "latest":
            by_body[fate.called.body].append(fate)
    for job in sorted(jobs):
        story = evidence.stories.story(job)
        fates = by_body[_body(story, evidence)]
        mine = next((fate for fate in fates if _may_have_made(fate, job)), None)
        if mine is None and fates and fates[0].called.mode == "latest":
            mine = _replaced(job, fates[0], evidence)
        if mine:
            story.fate, mine.job = mine, job
            story.follows = mine.answer is not None
            continue
        yield _invented(story, fates)


def _by_cron(job: str, evidence: Evidence) -> bool:
    """Say whether a job is a cron's; its story knows it then."""
    story = evidence.stories.story(job)
    story.cron = story.cron or next((live.cron for live in evidence.live.get(job, [])), "")
    return story.cron != ""


def _may_have_made(fate: Fate, job: str) -> bool:
    """Say whether a call can have made a job, whose id it was not told."""
    if fate.job:
        return False
    return fate.answer.duplicate and fate.answer.job != job if fate.answer else fate.outcome == "unknown"


def _replaced(job: str, newer: Fate, evidence: Evidence) -> Fate | None:
    """Return the last call that can have made a job, whose arguments were replaced before its start."""
    called = newer.called
    same = (fate for fate in evidence.stories.latest[called.queue, called.key] if fate.called.kind == called.kind)
    could = [fate for fate in same if _may_have_made(fate, job) and fate.called.at < newer.settled_at]
    return max(could, key=lambda fate: fate.called.at, default=None)


def _body(story: Story, evidence: Evidence) -> str:
    if story.runs:
        return story.runs[0].start.body
    for live in evidence.live.get(story.job, []):
        return live.body
    return evidence.dead[story.job][0].body


def _invented(story: Story, fates: list[Fate]) -> Finding:
    shown = story.runs[0].show() if story.runs else ()
    if not fates:
        return Finding("I2", story.job, "invented: nobody enqueued it", shown)
    made = next((fate for fate in fates if fate.job), None)
    if made:
        return Finding("I4", story.job, f"one call, two jobs: {made.job} is its job already", (*made.show(), *shown))
    return Finding("I3", story.job, "there, though its enqueue failed for certain", (*fates[0].show(), *shown))


def batches(evidence: Evidence) -> Iterator[Finding]:
    """I13: a batch has an outcome for each item, and its jobs their order."""
    batch: dict[tuple[str, int], list[Fate]] = defaultdict(list)
    for fate in evidence.stories.fates:
        if fate.called.batch:
            batch[fate.process.name, fate.called.batch].append(fate)
    for (name, number), fates in batch.items():
        silent = [fate for fate in fates if not fate.answers]
        if silent and len(silent) < len(fates):
            text = f"batch {number} of {name}: {len(silent)} of {len(fates)} items have no outcome"
            yield Finding("I13", "", text, silent[0].show())
        last: dict[str, tuple[int, int]] = {}
        for fate in fates:
            # What was repeated after an unknown outcome may have come in behind the rest, and so does what follows.
            sure = len(fate.answers) == 1 and fate.job and fate.job == fate.answers[0].job
            if fate.called.delay_ms or fate.called.due_ms or not sure:
                continue
            ms, _, place = fate.job.rpartition(":")[2].partition("-")
            order = int(ms), int(place)
            if order <= last.get(fate.called.queue, (0, 0)):
                yield Finding("I13", fate.job, f"out of order in batch {number} of {name}", fate.show())
            last[fate.called.queue] = order
