"""`streamjobs job`: look at single jobs, and cancel them."""

from typing import TYPE_CHECKING

import click

from streamjobs.cli import params, show
from streamjobs.cli.commands import Group
from streamjobs.cli.details import job_fields, print_job
from streamjobs.cli.endings import Failed, complain, exit_code
from streamjobs.cli.settings import settings
from streamjobs.core.errors import NotFound, Refused, StreamJobsError
from streamjobs.core.names import split_job_id

if TYPE_CHECKING:
    from streamjobs.client.sync import SyncExecutor


@click.group("job", cls=Group)
def job() -> None:
    """Look at single jobs, and cancel them."""


@job.command("show")
@click.argument("job_id", type=params.job_id, metavar="ID")
def show_(job_id: str) -> None:
    """Show where a job is, or how it ended."""
    from streamjobs.operate import jobs
    from streamjobs.protocol import views
    from streamjobs.protocol.keys import QueueKeys

    queue, partition, local = split_job_id(job_id)
    executor, now_ms = settings().reach()
    keys = QueueKeys(settings().namespace, queue, partition)
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
    rows = []
    errors: list[StreamJobsError] = []
    executor, _ = settings().reach()
    for job_id in dict.fromkeys(job_ids):
        try:
            was_running = _cancel(executor, job_id, reason)
        except (NotFound, Refused) as error:
            errors.append(error)
            continue
        rows.append({"id": job_id, "was_running": was_running})
        if not settings().as_json:
            show.line(f"cancelled {job_id}{', which was running' if was_running else ''}")
    if settings().as_json:
        show.document("job.cancel", cancelled=rows)
    _fail(errors)


def _cancel(executor: "SyncExecutor", job_id: str, reason: str) -> bool:
    from streamjobs.client.talk import talk
    from streamjobs.operate import jobs
    from streamjobs.protocol.keys import QueueKeys

    queue, partition, local = split_job_id(job_id)
    return talk(executor, jobs.cancel(QueueKeys(settings().namespace, queue, partition), local, reason))


def _fail(errors: list[StreamJobsError]) -> None:
    for error in errors[:-1]:
        complain(str(error))
    if errors:
        raise Failed(str(errors[-1]), exit_code(errors[0]))
