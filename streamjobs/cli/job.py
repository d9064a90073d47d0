"""`streamjobs job`: look at single jobs, cancel them, and change when they run."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from streamjobs.cli import params, show
from streamjobs.cli.commands import Group
from streamjobs.cli.details import job_fields, print_job
from streamjobs.cli.endings import fail_by
from streamjobs.cli.settings import settings
from streamjobs.core.errors import NotFound, Refused, StreamJobsError, UsageError
from streamjobs.core.names import split_job_id

if TYPE_CHECKING:
    from streamjobs.client.talk import Talk
    from streamjobs.protocol.keys import QueueKeys


@click.group("job", cls=Group)
def job() -> None:
    """Look at single jobs, cancel them, change when they run."""


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
    from streamjobs.operate import jobs

    def tell(job_id: str, was_running: bool) -> dict[str, Any]:
        if not settings().as_json:
            show.line(f"cancelled {job_id}{', which was running' if was_running else ''}")
        return {"id": job_id, "was_running": was_running}

    _each("job.cancel", "cancelled", job_ids, lambda keys, local: jobs.cancel(keys, local, reason), tell)


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

    def tell(job_id: str, _: None) -> dict[str, Any]:
        if not settings().as_json:
            show.line(f"{word} {job_id}")
        return {"id": job_id}

    _each(
        "job.reschedule",
        "rescheduled",
        job_ids,
        lambda keys, local: jobs.reschedule(keys, local, delay_ms, at_ms),
        tell,
    )


def _each(
    document: str,
    field: str,
    job_ids: tuple[str, ...],
    deed: "Callable[[QueueKeys, str], Talk[Any]]",
    tell: Callable[[str, Any], dict[str, Any]],
) -> None:
    """Do the same to each job; `tell` says what came of one, and returns its row of the document."""
    from streamjobs.client.talk import talk
    from streamjobs.protocol.keys import QueueKeys

    rows = []
    errors: list[StreamJobsError] = []
    executor, _ = settings().reach()
    for job_id in dict.fromkeys(job_ids):
        queue, partition, local = split_job_id(job_id)
        try:
            done = talk(executor, deed(QueueKeys(settings().namespace, queue, partition), local))
        except (NotFound, Refused) as error:
            errors.append(error)
            continue
        rows.append(tell(job_id, done))
    if settings().as_json:
        show.document(document, **{field: rows})
    fail_by(errors)
