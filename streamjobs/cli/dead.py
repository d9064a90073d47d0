"""`streamjobs dead`: see dead jobs; the commands that move them are beside."""

from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from streamjobs.cli import params, show
from streamjobs.cli.carry import export, import_
from streamjobs.cli.commands import Group
from streamjobs.cli.details import dead_fields, print_dead
from streamjobs.cli.moves import purge, replay
from streamjobs.cli.secrets import revealing
from streamjobs.cli.selection import Chosen, selecting
from streamjobs.cli.settings import settings

if TYPE_CHECKING:
    from streamjobs.operate.dead import Alike
    from streamjobs.operate.jobs import JobStatus

LISTED = 100
"""Jobs in a list for which no limit is given."""


@click.group("dead", cls=Group)
def dead() -> None:
    """See, replay, purge, export and import dead jobs."""


@dead.command("list")
@selecting
@click.option("--after", type=params.words, metavar="PLACE", help="Go on behind where an earlier list ended.")
@revealing
def list_(limit: int | None, **options: Any) -> None:
    """List dead jobs, the newest first; 100 of them where no limit is given."""
    from streamjobs.operate.scan import Scan

    chosen = Chosen(**options, limit=limit or (None if options["ids"] else LISTED))
    with chosen.reading() as source:
        first = chosen.do(source.page())
    pages = chain([first], iter(lambda: chosen.do(source.page()), []))

    def rest() -> str:
        return source.cursor if isinstance(source, Scan) else ""

    if settings().as_json:
        jobs = (dead_fields(job) for page in pages for job in page)
        show.listing("dead.list", "jobs", jobs, lambda: {"next": rest() or None})
        return
    table = show.Table("ID", "~KIND", "REASON", ">N", ">DIED", "~ERROR")
    if not first:
        show.note("no dead jobs")
        return
    for page in pages:
        table.print(_row(job, chosen.now_ms) for job in page)
    if rest():
        show.note(f"there are more: --after {rest()}")


def _row(job: "JobStatus", now_ms: int) -> tuple[str, ...]:
    error = job.error or ("(no job: somebody else wrote this row)" if job.foreign else "")
    died = show.ago(now_ms - job.died_ms) if job.died_ms else "?"
    return job.id, job.kind, job.reason, str(job.attempt), died, error


@dead.command("groups")
@selecting
def groups(**options: Any) -> None:
    """Group dead jobs by kind, reason and error: numbers, ids, quoted text and paths make no difference."""
    from streamjobs.operate import dead as operate

    chosen = Chosen(**options)
    with chosen.reading() as source:
        found = chosen.do(operate.groups(source))
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
            _error(group),
            show.ago(chosen.now_ms - group.first_ms),
            show.ago(chosen.now_ms - group.last_ms),
        )
        for group in found
    )


def _error(group: "Alike") -> str:
    """Return type, class and text: what may be cut stands last."""
    rest = group.error.removeprefix(group.error_type)
    if not group.error_class:
        return group.error
    if not group.error_type:
        # Somebody else's text may name none.
        return f"({group.error_class}) {rest.lstrip(': ')}"
    return f"{group.error_type} ({group.error_class}){rest}"


def _group_fields(group: "Alike") -> dict[str, Any]:
    return {
        "count": group.count,
        "queue": group.queue,
        "kind": group.kind,
        "reason": group.reason,
        "error": group.error,
        "error_type": group.error_type,
        "error_class": group.error_class,
        "first": show.time_of(group.first_ms),
        "last": show.time_of(group.last_ms),
        "newest": group.newest,
    }


@dead.command("show")
@click.argument("job_id", type=params.job_id, metavar="ID")
@revealing
def show_(job_id: str) -> None:
    """Show one dead job: arguments, history, and whether it can be replayed."""
    from streamjobs.client.talk import talk
    from streamjobs.operate import dead as operate

    executor, now_ms = settings().reach()
    found = talk(executor, operate.examine(settings().namespace, job_id))
    if not settings().as_json:
        print_dead(found, now_ms)
        return
    show.document(
        "dead.job",
        **dead_fields(found.job),
        replayable=found.replayable,
        why=found.why or None,
        dedupe_holder=found.holder or None,
    )


for _command in (replay, purge, export, import_):
    dead.add_command(_command)
