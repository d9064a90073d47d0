"""Judge one job: was it lost, did it end once, was every move that counted allowed to?

Each judge yields a finding per breach; its invariant's name is the one of the list in `checker.py`.
"""

from collections.abc import Iterator
from itertools import pairwise

from tests.faults.clock import PACE
from tests.faults.rules import Evidence, Finding, Limits
from tests.faults.stories import ENDLESS, POSTPONED, SETTLING, Move, Run, Story, id_ms, token

FENCED = ("retry", "snooze", "bury", "release", "renew")

MOVES_OF = {
    "ok": ("complete",),
    "error": ("retry", "bury"),
    "permanent": ("bury",),
    "snooze": ("snooze",),
    "rate_limited": ("snooze",),
    "cancel": ("cancel",),
    "cancelled": ("release", "retry", "bury"),
}
"""What may follow from how a handler ended. One that its worker cancelled timed out, or was interrupted."""

ID_TAKEN_MS = 5
"""An id may be taken so long after the script has looked at the clock, from which the delay counts."""

CROSSING_S = 0.1
"""Of two replies that the server sends to two processes, the later one may be read first, by so much."""

BEFORE_THE_END = ("retry", "bury", "release")
"""What a worker may do of a handler that does not end: give it up at its deadline, or give it back."""


def judge(story: Story, evidence: Evidence) -> Iterator[Finding]:
    """Yield all that is wrong with one job."""
    if _uneventful(story, evidence):
        return
    yield from not_lost(story, evidence)
    yield from dead_is_visible(story, evidence)
    yield from payload(story, evidence)
    yield from fence(story)
    yield from one_copy(story, evidence)
    yield from not_early(story, evidence)
    yield from faithful(story, evidence)
    yield from final(story, evidence)
    yield from replays(story)
    yield from effects(story)
    for limit in (attempts, numbers, crashes, reasons):
        yield from limit(story, evidence, evidence.rules.limits_of(_kind(story)))


def _kind(story: Story) -> str:
    return story.fate.called.kind if story.fate else story.runs[0].start.kind if story.runs else ""


def _uneventful(story: Story, evidence: Evidence) -> bool:
    """Say whether a job had the common life, about which every judge would find nothing."""
    fate = story.fate
    if fate is None or len(story.runs) != 1 or len(story.moves) != 1:
        return False
    [run], [move], called = story.runs, story.moves, fate.called
    start, end, event = run.start, run.end, move.event
    return (
        event.move == "complete"
        and event.word == "OK"
        and end is not None
        and end.outcome == "ok"
        and run.process is move.process
        and called.at <= start.at <= end.at <= event.sent
        and start.entry == story.job == event.entry
        and start.deliveries == start.attempt == 1
        and start.body == called.body
        and start.kind == called.kind
        and not (called.delay_ms or called.due_ms)
        and run.effects <= 1
        and story.job not in evidence.live
        and story.job not in evidence.dead
    )


def not_lost(story: Story, evidence: Evidence) -> Iterator[Finding]:
    """I1: what was accepted is done, dead, cancelled, purged, or still there."""
    fate = story.fate
    accepted = fate is not None and (fate.outcome == "ok" or story.runs)
    if not (accepted or story.cron) or story.job in evidence.dead:
        return
    if places := evidence.live.get(story.job):
        if evidence.rules.drained:
            word = "orphaned: nobody will ever be given it" if places[0].place == "orphaned" else places[0].place
            yield Finding("I16", story.job, f"stuck: still {word} after the drain", _last(story))
        return
    since = max((move.event.sent for move in story.done("replay")), default=0.0)
    ends = [move for move in story.maybe("complete", "bury", "cancel", "purge") if move.event.at > since]
    if not ends and not any(_may_have_ended(story, run) for run in story.runs if run.start.at > since):
        origin = fate.show() if fate else ()
        yield Finding("I1", story.job, "lost: accepted, and neither ended nor there", (*origin, *_last(story)))


def _may_have_ended(story: Story, run: Run) -> bool:
    """Say whether a run's success may have counted, though no reply was seen."""
    return run.end is not None and run.end.outcome in ("ok", "cancel") and not story.answered(run)


def _last(story: Story) -> tuple[str, ...]:
    shown = [line for run in story.runs[-2:] for line in run.show()]
    return (*shown, *[line for move in story.moves[-3:] for line in move.show()])


def dead_is_visible(story: Story, evidence: Evidence) -> Iterator[Finding]:
    """I1b: a buried job lies in the dead stream, with reason and payload, until it is replayed or purged."""
    buried = story.done("bury")
    rows = evidence.dead.get(story.job, [])
    if buried and not rows:
        taken = [move for move in story.maybe("replay", "purge") if move.event.at > buried[-1].event.sent]
        if not taken:
            yield Finding("I1b", story.job, "buried, and not in the dead stream", buried[-1].show())
    for row in rows:
        if not row.reason:
            yield Finding("I1b", story.job, "dead without a reason")
        if story.fate and row.body not in _bodies(story, evidence):
            yield Finding("I1b", story.job, f"its payload changed when it died: {row.body}", story.fate.show())


def _bodies(story: Story, evidence: Evidence) -> set[str]:
    """Return what a job may have as its arguments: its call's, or those of calls that replace them."""
    assert story.fate is not None
    called = story.fate.called
    newer = evidence.stories.latest.get((called.queue, called.key), []) if called.mode == "latest" else []
    return {called.body, *(fate.called.body for fate in newer if fate.called.kind == called.kind)}


def payload(story: Story, evidence: Evidence) -> Iterator[Finding]:
    """I2: what a handler is given is what was enqueued."""
    fate = story.fate
    bodies = _bodies(story, evidence) if fate else set()
    for run in story.runs if fate else ():
        assert fate is not None
        if run.start.body not in bodies or run.start.kind != fate.called.kind:
            yield Finding("I2", story.job, "another payload than was enqueued", (*fate.show(), *run.show()))


def fence(story: Story) -> Iterator[Finding]:
    """I5: nothing but a success counts once a later delivery of the job has started."""
    for move in story.moves:
        event = move.event
        if event.move not in FENCED or move.word != "OK" or not event.deliveries:
            continue
        held = token(event)
        for run in story.runs:
            if run.start.at < event.sent and run.token > held:
                text = f"a stale {event.move} counted: delivery {event.deliveries} was superseded"
                yield Finding("I5", story.job, text, (*run.show(), *move.show()))
                break


def one_copy(story: Story, evidence: Evidence) -> Iterator[Finding]:
    """I6: a job is in one place, and has no more entries than moves that gave it a new one."""
    places = [live.place for live in evidence.live.get(story.job, [])]
    places += ["dead"] * len(evidence.dead.get(story.job, []))
    if len(places) > 1:
        yield Finding("I6", story.job, f"is in {len(places)} places: {', '.join(places)}", _last(story))
    if len(story.runs) < 2:
        return
    entries = {run.start.entry for run in story.runs}
    unsure = sum(1 for run in story.runs if _may_be_postponed(story, run))
    moved = len(story.maybe(*POSTPONED, "replay")) + unsure
    if len(entries) > 1 + moved:
        text = f"two live copies: {len(entries)} entries were started, and {moved} moves can have made one"
        yield Finding("I6", story.job, text, tuple(line for run in story.runs for line in run.show()))
    for move in story.done(*POSTPONED):
        again = next((run for run in story.runs if _given_out_after(run, move, evidence)), None)
        if again:
            text = f"its old entry was given out again after the {move.event.move}"
            yield Finding("I6", story.job, text, (*move.show(), *again.show()))


def _given_out_after(run: Run, move: Move, evidence: Evidence) -> bool:
    """Say whether a run's claim was made after its entry had gone; one that was held up on its way was made before."""
    if run.start.entry != move.event.entry or run.start.claimed <= move.event.at:
        return False
    return not evidence.disturbed(run.process.pid, move.event.sent, run.start.at)


def _may_be_postponed(story: Story, run: Run) -> bool:
    """Say whether a run that did not succeed may have sent its job on without our seeing it."""
    ends = run.end.outcome if run.end else "killed"
    return ends not in ("killed", "ok", "cancel", "permanent") and not story.moves_of(run)


def not_early(story: Story, evidence: Evidence) -> Iterator[Finding]:
    """I8: no start before its time, by the server's clock; where that was steady, by ours as well."""
    rules, fate = evidence.rules, story.fate
    if fate and (fate.called.delay_ms or fate.called.due_ms):
        due_ms = fate.called.due_ms or id_ms(story.job) + fate.called.delay_ms - ID_TAKEN_MS
        if not fate.called.due_ms and (story.follows or not rules.steady_clock):
            # The id of a job that follows another one is younger than its call.
            due_ms = 0
        delay_ms = 0 if fate.called.due_ms else fate.called.delay_ms
        for run in story.runs:
            seen_ms = max(run.token[0], run.start.server_ms)
            if seen_ms < due_ms - rules.early_ms or _too_soon(run, fate.called.at, delay_ms, evidence):
                yield Finding("I8", story.job, f"started before {due_ms} ms", (*fate.show(), *run.show()))
    for move in story.done(*POSTPONED):
        event = move.event
        for run in story.runs:
            after = run.token > token(event) and run.start.at > event.at
            if after and _too_soon(run, event.sent, event.delay_ms, evidence):
                text = f"started before the {event.delay_ms} ms of its {event.move} had passed"
                yield Finding("I8", story.job, text, (*move.show(), *run.show()))


def _too_soon(run: Run, since: float, delay_ms: int, evidence: Evidence) -> bool:
    due = since + delay_ms / 1000 * (1 - PACE) - evidence.rules.early_ms / 1000
    return run.start.at < due and evidence.steady(since, run.start.at)


def faithful(story: Story, evidence: Evidence) -> Iterator[Finding]:
    """I9: what is sent to the server is what the handler did."""
    for move in story.moves:
        name = move.event.move
        if name not in SETTLING:
            continue
        run = story.run_of(move)
        if run is None:
            # Operators cancel, and workers refuse or give back what they never started.
            wrong = name == "complete"
            said = "a success of a job that had not started there"
        elif run.end is None or run.end.at > move.event.sent:
            wrong = name not in BEFORE_THE_END
            said = f"{name} before the handler had ended"
        else:
            # Told to end at once, a worker gives back what runs in a thread that may just have ended.
            given_back = name == "release" and move.process in evidence.stories.stopping
            wrong = name not in MOVES_OF[run.end.outcome] and not given_back
            said = f"{name} of a handler that ended as {run.end.outcome}"
        if wrong:
            yield Finding("I9", story.job, said, (*(run.show() if run else ()), *move.show()))


def final(story: Story, evidence: Evidence) -> Iterator[Finding]:
    """I11: a job ends once, and nothing follows but a replay."""
    ends = [move for move in story.moves if move.ends]
    for first, second in pairwise(ends):
        if story.generation(first.event.at) == story.generation(second.event.at):
            text = f"ended twice: {first.event.move} and {second.event.move}"
            yield Finding("I11", story.job, text, (*first.show(), *second.show()))
    if not ends:
        return
    for end in ends:
        yield from _after(story, end, evidence)
    last = ends[-1]
    replayed = story.generation(ENDLESS) > story.generation(last.event.sent)
    place = "dead" if story.job in evidence.dead and last.event.move != "bury" else ""
    place = place or next((live.place for live in evidence.live.get(story.job, [])), "")
    if place and not replayed:
        yield Finding("I11", story.job, f"is {place} after its {last.event.move}", last.show())


def _after(story: Story, end: Move, evidence: Evidence) -> Iterator[Finding]:
    generation = story.generation(end.event.at)
    for run in story.runs:
        begins = run.start.at
        if begins > end.event.at and story.generation(begins) == generation and not late_start(run, end, evidence):
            yield Finding("I11", story.job, f"started after its {end.event.move}", (*end.show(), *run.show()))
    for move in story.done(*POSTPONED, "release", "renew"):
        if move.event.sent > end.event.at and story.generation(move.event.sent) == generation:
            text = f"a {move.event.move} counted after its {end.event.move}"
            yield Finding("I11", story.job, text, (*end.show(), *move.show()))


def late_start(run: Run, end: Move, evidence: Evidence) -> bool:
    """Say whether a run after the end is one that was claimed before, whose worker could not know.

    Only a success, and a cancellation of a claimed job, can come between a claim and its start. A worker
    that was frozen or cut off may take in its claim much later than it was given.
    """
    if end.event.move != "complete" and (end.event.move != "cancel" or end.event.word != "RUNNING"):
        return False
    if 0 < run.start.claimed < end.event.at + CROSSING_S:
        return True
    return evidence.disturbed(run.process.pid, end.event.sent, run.start.at)


def replays(story: Story) -> Iterator[Finding]:
    """I20: each replay takes one death, keeps the id, and begins with fresh attempts."""
    done, deaths = story.done("replay"), story.maybe("bury")
    if not done:
        return
    unsure = sum(1 for run in story.runs if not story.moves_of(run))
    if len(done) > len(deaths) + unsure:
        events = tuple(line for move in done for line in move.show())
        yield Finding("I20", story.job, f"replayed {len(done)} times after {len(deaths)} deaths", events)
    for move in done:
        after = [run for run in story.runs if run.start.at > move.event.sent]
        if after and after[0].start.attempt > 1 and after[0].start.deliveries == 1:
            text = f"its first start after a replay is attempt {after[0].start.attempt}"
            yield Finding("I20", story.job, text, (*move.show(), *after[0].show()))


def effects(story: Story) -> Iterator[Finding]:
    """I22: the ledger has no more effects than there were starts."""
    count = sum(run.effects for run in story.runs)
    if count > len(story.runs):
        yield Finding("I22", story.job, f"{count} effects of {len(story.runs)} starts", _last(story))


def _generations(story: Story) -> Iterator[list[Run]]:
    runs: dict[int, list[Run]] = {}
    for run in story.runs:
        runs.setdefault(story.generation(run.start.at), []).append(run)
    yield from runs.values()


def attempts(story: Story, _: Evidence, limits: Limits) -> Iterator[Finding]:
    """I7: a job fails no more often than it may."""
    per: dict[int, list[Move]] = {}
    for move in story.done("retry"):
        per.setdefault(story.generation(move.event.sent), []).append(move)
    for moves in per.values():
        if len(moves) >= limits.max_attempts:
            text = f"retried {len(moves)} times, with {limits.max_attempts} attempts in all"
            yield Finding("I7", story.job, text, moves[-1].show())


def numbers(story: Story, _: Evidence, limits: Limits) -> Iterator[Finding]:
    """I7: the attempt number counts all failures, and nothing that is uncharged."""
    most = limits.max_attempts + limits.max_crashes - 1
    for runs in _generations(story):
        for place, run in enumerate(runs):
            before = [move.event for one in runs[:place] for move in story.moves_of(one) if move.word == "OK"]
            retries = [event for event in before if event.move == "retry" and event.sent < run.start.at]
            # A retry's reply may be read after the start that it led to.
            failures, known = len(retries), sum(event.at < run.start.at for event in retries)
            attempt = run.start.attempt
            if attempt > most:
                yield Finding("I7", story.job, f"attempt {attempt} of at most {most}", run.show())
            if attempt < 1 + known:
                yield Finding("I7", story.job, f"attempt {attempt} after {known} failures", run.show())
            if attempt > 1 + failures and _accounted(story, run, runs[:place]):
                text = f"attempt {attempt} after {failures} failures: what is uncharged was charged"
                yield Finding("I7", story.job, text, run.show())


def _accounted(story: Story, run: Run, before: list[Run]) -> bool:
    """Say whether of every delivery before this one it is known that it ended in a move that counted."""
    moves = [move for move in story.done(*POSTPONED, "release") if move.event.sent < run.start.at]
    known = {(move.event.entry, move.event.deliveries) for move in moves}
    last: dict[str, int] = {}
    for entry, deliveries in known | {(one.start.entry, one.start.deliveries) for one in before}:
        last[entry] = max(last.get(entry, 0), deliveries)
    last[run.start.entry] = run.start.deliveries - 1
    return all((entry, n) in known for entry, most in last.items() for n in range(1, most + 1))


def crashes(story: Story, evidence: Evidence, limits: Limits) -> Iterator[Finding]:
    """I7: a job whose process dies each time is not started more often than it may crash."""
    for runs in _generations(story):
        crashed = [run for run in runs if _crashed(story, run) and run.process in evidence.stories.died]
        if len(crashed) > limits.max_crashes:
            text = f"its process died in {len(crashed)} starts, {limits.max_crashes} are allowed"
            yield Finding("I7", story.job, text, tuple(line for run in crashed for line in run.show()))


def _crashed(story: Story, run: Run) -> bool:
    return run.end is None and not story.moves_of(run)


def reasons(story: Story, evidence: Evidence, limits: Limits) -> Iterator[Finding]:
    """I7, I21: a job is dead for what happened to it, not for less."""
    generation = story.generation(ENDLESS)
    runs = [run for run in story.runs if story.generation(run.start.at) == generation]
    for row in evidence.dead.get(story.job, []):
        if row.reason == "exhausted":
            failed = sum(1 for run in runs if run.end is None or run.end.outcome in ("error", "cancelled"))
            if failed < limits.max_attempts:
                text = f"dead as exhausted after {failed} of {limits.max_attempts} attempts"
                yield Finding("I7", story.job, text, _last(story))
        elif row.reason == "crash_limit":
            # The first of them may have been a claim that its worker had not started yet.
            crashed = len(_unsettled(story, runs))
            if crashed < limits.max_crashes - 1:
                text = f"dead as crash_limit after {crashed} of {limits.max_crashes} crashes: blamed for others"
                yield Finding("I7", story.job, text, _last(story))
        elif row.reason == "unknown_kind" and row.died_ms - id_ms(story.job) < evidence.rules.park_ms:
            yield Finding("I21", story.job, "dead as unknown_kind before a deploy can have ended")


def _unsettled(story: Story, runs: list[Run]) -> set[tuple[str, int]]:
    """Return the deliveries that were started, or marked just before it, and of which nothing came back."""
    open_ones = {(run.start.entry, run.start.deliveries) for run in runs if not story.moves_of(run)}
    seen = {(run.start.entry, run.start.deliveries) for run in story.runs}
    marks = {(move.event.entry, move.event.deliveries) for move in story.maybe("suspect", "admit")}
    given_back = {(move.event.entry, move.event.deliveries) for move in story.maybe("release")}
    return open_ones | (marks - seen - given_back)
