"""Judge what must not come twice: the slots of a cron, and effects that are guarded."""

from collections import defaultdict
from collections.abc import Iterator

from tests.faults.history import Guarded
from tests.faults.rules import Evidence, Finding
from tests.faults.stories import ENDLESS, Run, id_ms


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Yield slots that are wrong, and effects that were had again."""
    yield from slots(evidence)
    for effect, steps in evidence.stories.guarded.items():
        yield from had_once(effect, steps)


def slots(evidence: Evidence) -> Iterator[Finding]:
    """I25: each slot of a cron is one job, which is not there before it; and none between two others is left out."""
    found: dict[str, dict[int, Run]] = defaultdict(dict)
    for run in evidence.stories.runs():
        start = run.start
        if not start.slot_ms:
            continue
        first = found[start.cron].setdefault(start.slot_ms, run)
        if first.start.job != start.job:
            text = f"a second job of a slot of {start.cron}: {first.start.job} is its job"
            yield Finding("I25", start.job, text, (*first.show(), *run.show()))
        if id_ms(start.job) < start.slot_ms:
            text = f"a slot of {start.cron} came {start.slot_ms - id_ms(start.job)} ms before its time"
            yield Finding("I25", start.job, text, run.show())
    for cron, seconds in evidence.rules.slots_s.items():
        if seen := found.get(cron):
            there = range(min(seen), max(seen), round(seconds * 1000))
            if missing := [slot for slot in there if slot not in seen]:
                yield Finding("I25", "", f"{len(missing)} slots of {cron} were left out: {missing[:5]}")


def had_once(effect: str, steps: list[tuple[Run, Guarded]]) -> Iterator[Finding]:
    """I26: who asks for an effect that is recorded does not have it again; one that is recorded first, nobody."""
    kept = min((step.at for _, step in steps if step.step == "kept"), default=ENDLESS)
    asked = {id(run): step.at for run, step in steps if step.step == "asks"}
    had = [(run, step) for run, step in steps if step.step == "has"]
    for run, step in had:
        if asked[id(run)] > kept:
            yield Finding("I26", run.start.job, f"{effect} was had again, though it was recorded", run.show())
        elif step.first and run is not had[0][0]:
            text = f"{effect} was had again, though it was to be had once at most"
            yield Finding("I26", run.start.job, text, (*had[0][0].show(), *run.show()))
