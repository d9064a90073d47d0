"""`streamjobs job`: look at single jobs, cancel them, and change when they run."""

from datetime import datetime
from typing import TYPE_CHECKING

import click

from streamjobs.cli import params, show
from streamjobs.cli.commands import Group
from streamjobs.cli.details import job_fields, print_job
from streamjobs.cli.each import Row, each
from streamjobs.cli.secrets import revealing
from streamjobs.cli.settings import settings
from streamjobs.core.errors import UsageError
from streamjobs.core.names import split_job_id

if TYPE_CHECKING:
    from streamjobs.protocol.keys import QueueKeys


@click.group("job", cls=Group)
def job() -> None:
    """Look at single jobs, cancel them, change when they run."""


@job.command("show")
@click.argument("job_id", type=params.job_id, metavar="ID")
@revealing
def show_(job_id: str) -> None:
    """Show where a job is, or how it ended."""
    from streamjobs.operate import jobs
    from streamjobs.protocol import views

    keys, local = _parts(job_id)
    executor, now_ms = settings().reach()
    found = executor.run(jobs.lookup(keys, local))
    key = found.meta.dedupe_key
    holds = bool(key) and executor.run(views.holder(keys, key)) == local
    if settings().as_json:
        show.document("job", **job_fields(found, holds=holds))
    else:
        print_job(found, now_ms, holds=holds)


@job.command()
@click.argument("job_ids", nargs=-1, required=True, type=params.job_id, metavar="ID...")
@click.option("--reason", default="cancelled from the command line", help="Kept with the job's result.")
def cancel(job_ids: tuple[str, ...], reason: str) -> None:
    """End jobs as cancelled, wherever they are; a handler that runs one is told.

    Jobs that cannot be cancelled are named, the others are cancelled all the same.
    """
    from streamjobs.operate import jobs

    def tell(job_id: str, was_running: bool) -> tuple[str, Row]:
        line = f"cancelled {job_id}{', which was running' if was_running else ''}"
        return line, {"id": job_id, "was_running": was_running}

    each("job.cancel", "cancelled", job_ids, lambda job_id: jobs.cancel(*_parts(job_id), reason), tell)


@job.command("run-now")
@click.argument("job_ids", nargs=-1, required=True, type=params.job_id, metavar="ID...")
def run_now(job_ids: tuple[str, ...]) -> None:
    """Let scheduled jobs run at once: delayed ones, and those that wait for a retry.

    Jobs that are not scheduled are named, the others are run all the same.
    """
    _reschedule(job_ids, 0, 0, "runs now:")


@job.command()
@click.argument("job_ids", nargs=-1, required=True, type=params.job_id, metavar="ID...")
@click.option("--delay", type=params.duration, help="Run no sooner than so long from now.")
@click.option("--at", type=params.time, help="Run no sooner than this, such as 2030-01-31T12:00:00Z.")
def reschedule(job_ids: tuple[str, ...], delay: float | None, at: datetime | None) -> None:
    """Give scheduled jobs another time, sooner or later.

    Jobs that are not scheduled are named, the others are rescheduled all the same.
    """
    from streamjobs.core.options import EnqueueOptions

    if delay is None and at is None:
        raise UsageError("when? Give --delay or --at; streamjobs job run-now ID is for at once")
    time = EnqueueOptions(delay=delay, at=at)
    _reschedule(job_ids, time.delay_ms, time.at_ms, "rescheduled")


def _reschedule(job_ids: tuple[str, ...], delay_ms: int, at_ms: int, word: str) -> None:
    from streamjobs.operate import jobs

    each(
        "job.reschedule",
        "rescheduled",
        job_ids,
        lambda job_id: jobs.reschedule(*_parts(job_id), delay_ms, at_ms),
        lambda job_id, _: (f"{word} {job_id}", {"id": job_id}),
    )


def _parts(job_id: str) -> "tuple[QueueKeys, str]":
    """Return the keys of a job's queue, and its id there."""
    from streamjobs.protocol.keys import QueueKeys

    queue, partition, local = split_job_id(job_id)
    return QueueKeys(settings().namespace, queue, partition), local
