"""`streamjobs dead`: see, replay and purge dead jobs."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from streamjobs.cli import params, show
from streamjobs.cli.commands import Group
from streamjobs.cli.details import dead_fields, print_dead
from streamjobs.cli.endings import REFUSED, Failed
from streamjobs.cli.secrets import revealing
from streamjobs.cli.selection import Chosen, confirmed, selecting
from streamjobs.cli.settings import settings

if TYPE_CHECKING:
    from streamjobs.operate.dead import Replayed
    from streamjobs.operate.jobs import JobStatus

Move = Callable[[Any, str, "Iterator[JobStatus]"], "Iterator[Replayed]"]
PAGE = 100
SHOWN = 10
"""Conflicts that are named one by one."""


@click.group("dead", cls=Group)
def dead() -> None:
    """See, replay and purge dead jobs."""


@dead.command("list")
@selecting
@revealing
def list_(**options: Any) -> None:
    """List dead jobs, the newest first."""
    chosen = Chosen(**options)
    if settings().as_json:
        show.listing("dead.list", "jobs", map(dead_fields, chosen.jobs()))
        return
    table = show.Table("ID", "~KIND", "REASON", ">N", ">DIED", "~ERROR")
    found = chosen.jobs()
    page = list(islice(found, PAGE))
    if not page:
        show.note("no dead jobs")
    while page:
        table.print(_row(job, chosen.now_ms) for job in page)
        page = list(islice(found, PAGE))


def _row(job: "JobStatus", now_ms: int) -> tuple[str, ...]:
    return job.id, job.kind, job.reason, str(job.attempt), show.ago(now_ms - job.died_ms), job.error


@dead.command("groups")
@selecting
def groups(**options: Any) -> None:
    """Group dead jobs by kind, reason and error."""
    from streamjobs.operate import dead as operate

    chosen = Chosen(**options)
    found = operate.groups(chosen.jobs())
    if settings().as_json:
        show.document("dead.groups", groups=[_group_fields(group) for group in found])
        return
    if not found:
        show.note("no dead jobs")
        return
    several = len({group.queue for group in found}) > 1
    headings = (">COUNT", *(["~QUEUE"] if several else []), "~KIND", "REASON", "~ERROR", "FIRST", "LAST")
    show.Table(*headings).print(
        (
            show.count(group.count),
            *([group.queue] if several else []),
            group.kind,
            group.reason,
            _error(group.error_type, group.error_class),
            show.ago(chosen.now_ms - group.first_ms),
            show.ago(chosen.now_ms - group.last_ms),
        )
        for group in found
    )


def _error(error_type: str, error_class: str) -> str:
    return f"{error_type} ({error_class})" if error_type and error_class else error_type or error_class


def _group_fields(group: Any) -> dict[str, Any]:
    return {
        "count": group.count,
        "queue": group.queue,
        "kind": group.kind,
        "reason": group.reason,
        "error_type": group.error_type,
        "error_class": group.error_class,
        "first": show.time_of(group.first_ms),
        "last": show.time_of(group.last_ms),
    }


@dead.command("show")
@click.argument("job_id", type=params.job_id, metavar="ID")
@revealing
def show_(job_id: str) -> None:
    """Show one dead job: arguments, history, and whether it can be replayed."""
    from streamjobs.operate import dead as operate

    executor, now_ms = settings().reach()
    job, holder = operate.examine(executor, settings().namespace, job_id)
    if settings().as_json:
        show.document("dead.job", **dead_fields(job), replayable=not holder, dedupe_holder=holder or None)
    else:
        print_dead(job, holder, now_ms)


def _deciding(command: Any) -> Any:
    command = click.option("--yes", is_flag=True, help="Do it without asking.")(command)
    return click.option("--dry-run", is_flag=True, help="Only say what would be done.")(command)


@dead.command()
@selecting
@_deciding
def replay(yes: bool, dry_run: bool, **options: Any) -> None:
    """Put dead jobs back: the same ids and arguments, attempts from 1.

    A job whose dedupe key another job holds by now is left dead and named; the exit code is then 5.
    """
    from streamjobs.operate import dead as operate

    _act("replay", operate.replay, Chosen(**options, frozen=True), yes=yes, dry_run=dry_run)


@dead.command()
@selecting
@_deciding
def purge(yes: bool, dry_run: bool, **options: Any) -> None:
    """Delete dead jobs for good."""
    from streamjobs.operate import dead as operate

    _act("purge", operate.purge, Chosen(**options, frozen=True), yes=yes, dry_run=dry_run)


def _act(
    verb: str,
    move: Move,
    chosen: Chosen,
    *,
    yes: bool,
    dry_run: bool,
) -> None:
    """Count, ask, and do it."""
    from streamjobs.operate.dead import Replayed

    count = sum(1 for _ in chosen.jobs()) if dry_run or not yes else -1
    if dry_run:
        _say(verb, f"would {verb} {show.plural(count, 'job')} of {chosen.target}{_skipped(chosen)}", Replayed(), count)
        return
    if count == 0:
        _say(verb, f"nothing to {verb} in {chosen.target}{_skipped(chosen)}", Replayed(), None)
        return
    if not confirmed(f"{verb} {show.plural(count, 'job')} of {chosen.target}", yes=yes):
        raise Failed("not confirmed; nothing was changed", REFUSED)
    _move(verb, move, chosen, max(0, count))


def _skipped(chosen: Chosen) -> str:
    return f"; {chosen.skipped}" if chosen.skipped else ""


def _move(verb: str, move: Move, chosen: Chosen, count: int) -> None:
    """Do it in batches, and say what came of it; `count` is 0 where they were not counted."""
    from streamjobs.operate.dead import Replayed

    whole = Replayed()
    past = f"{verb.removesuffix('e')}ed"
    try:
        with show.progress(count, past) as advance:
            for part in move(chosen.executor, settings().namespace, chosen.jobs()):
                whole.add(part)
                advance(whole.done)
    except BaseException:
        if whole.done:
            show.note(f"{past} {show.plural(whole.done, 'job')} before it ended")
        raise
    if not (whole.done or whole.gone or whole.conflicts):
        _say(verb, f"nothing to {verb} in {chosen.target}{_skipped(chosen)}", whole, None)
        return
    gone = f"; {show.count(whole.gone)} were gone already" if whole.gone else ""
    _say(verb, f"{past} {show.plural(whole.done, 'job')} of {chosen.target}{gone}{_skipped(chosen)}", whole, None)
    _report(whole.conflicts)


def _say(verb: str, text: str, whole: "Replayed", would: int | None) -> None:
    if not settings().as_json:
        show.line(text)
        return
    fields: dict[str, Any] = {"dry_run": would is not None, "jobs": whole.done if would is None else would}
    if verb == "replay":
        fields["conflicts"] = [{"id": job, "held_by": holder} for job, holder in whole.conflicts.items()]
    show.document(f"dead.{verb}", **fields, gone=whole.gone)


def _report(conflicts: dict[str, str]) -> None:
    for job, holder in list(conflicts.items())[:SHOWN]:
        show.note(f"{job} is left dead: {holder} holds its dedupe key")
    if conflicts:
        left = show.plural(len(conflicts), "job")
        raise Failed(f"{left} left dead: other jobs hold their dedupe keys", REFUSED)
