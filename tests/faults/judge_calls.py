"""Judge enqueues: whose job is what was started, is a refusal a refusal, and do dedupe keys hold?"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.faults.rules import Evidence, Finding
from tests.faults.stories import ENDLESS, Fate, Story, id_ms


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Give each job its call, and yield all that is wrong with calls and their answers."""
    yield from _named(evidence)
    yield from _strangers(evidence)
    yield from duplicates(evidence)
    yield from keys(evidence)
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
    """I2, I3, I4: a job that no answer names is that of one call whose outcome is unknown."""
    jobs = [job for job, story in evidence.stories.jobs.items() if story.fate is None and story.runs]
    placed = {*evidence.live, *evidence.dead} - set(jobs)
    jobs += [job for job in placed if job not in evidence.stories.jobs or evidence.stories.jobs[job].fate is None]
    if not jobs:
        return
    by_body: dict[str, list[Fate]] = defaultdict(list)
    for fate in evidence.stories.fates:
        answer = fate.answer
        if answer is None or not answer.duplicate:
            by_body[fate.called.body].append(fate)
    for job in sorted(jobs):
        story = evidence.stories.story(job)
        fates = by_body[_body(story, evidence)]
        mine = next((fate for fate in fates if fate.outcome == "unknown" and not fate.job), None)
        if mine:
            story.fate, mine.job = mine, job
            continue
        yield _invented(story, fates)


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


def duplicates(evidence: Evidence) -> Iterator[Finding]:
    """I12: a duplicate names a job that is or was there, and that had the same key."""
    for fate in evidence.stories.fates:
        answer = fate.answer
        if answer is None or not answer.duplicate:
            continue
        story = evidence.stories.jobs.get(answer.job)
        if story is None and answer.job not in evidence.live and answer.job not in evidence.dead:
            yield Finding("I12", answer.job, "a duplicate of a job that nobody knows", fate.show())
        elif story and story.fate and (holder := story.fate.called).key != fate.called.key:
            yield Finding("I12", answer.job, f"a duplicate by the key {holder.key!r} of another", fate.show())
        elif story and story.fate and _free_since(story) < fate.called.at:
            yield Finding("I12", answer.job, "a duplicate of a job that had ended before", fate.show())


def _free_since(story: Story) -> float:
    """Return from when on a job surely held its key no more; never, where it may have been replayed."""
    if story.generation(ENDLESS):
        return ENDLESS
    return min((move.event.at for move in story.moves if move.ends), default=ENDLESS)


def _held_until(story: Story) -> float:
    """Return until when a job surely held its key: the first moment at which it can have ended."""
    ends = [move.event.sent for move in story.maybe("complete", "bury", "cancel")]
    ends += [run.end.at for run in story.runs if run.end is not None]
    return min(ends, default=ENDLESS)


def keys(evidence: Evidence) -> Iterator[Finding]:
    """I12: while a job holds a key, no other gets it; and it is given back at the end."""
    per_key: dict[tuple[str, str], list[Story]] = defaultdict(list)
    for fate in evidence.stories.fates:
        if fate.called.key and fate.job and fate.answer:
            per_key[fate.called.queue, fate.called.key].append(evidence.stories.story(fate.job))
    for (_, key), stories in per_key.items():
        stories.sort(key=lambda story: id_ms(story.job))
        for first, second in pairwise(stories):
            assert first.fate is not None
            assert second.fate is not None
            begun, end = _answered_at(first.fate), _answered_at(second.fate)
            if begun < second.fate.called.at and end < _held_until(first):
                text = f"got the key {key!r} while {first.job} held it"
                yield Finding("I12", second.job, text, (*first.fate.show(), *second.fate.show()))
    for name, holder in evidence.snapshot.holders.items():
        if holder not in evidence.live:
            yield Finding("I12", holder, f"holds the key {name!r} after its end")


def _answered_at(fate: Fate) -> float:
    return fate.answer.at if fate.answer else ENDLESS


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
            # What was repeated after an unknown outcome may have come in behind the rest.
            if fate.called.delay_ms or fate.called.due_ms or not fate.job or len(fate.answers) != 1:
                continue
            ms, _, place = fate.job.rpartition(":")[2].partition("-")
            order = int(ms), int(place)
            if order <= last.get(fate.called.queue, (0, 0)):
                yield Finding("I13", fate.job, f"out of order in batch {number} of {name}", fate.show())
            last[fate.called.queue] = order
