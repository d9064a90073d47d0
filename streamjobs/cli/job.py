"""`streamjobs job`: find live jobs, look at single ones, wait for them, cancel them, change when they run."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from streamjobs.cli import params, show
from streamjobs.cli.commands import Group
from streamjobs.cli.details import job_fields, listed_fields, print_job
from streamjobs.cli.each import Row, each
from streamjobs.cli.endings import FAILED, Failed, fail_by
from streamjobs.cli.live import chosen, selecting, selection
from streamjobs.cli.params import Names, flat
from streamjobs.cli.secrets import revealing
from streamjobs.cli.settings import settings
from streamjobs.core.errors import UsageError
from streamjobs.core.names import split_job_id

if TYPE_CHECKING:
    from streamjobs.operate.jobs import JobStatus
    from streamjobs.operate.live import Listing
    from streamjobs.protocol.keys import QueueKeys

STATES = ("running", "waiting", "retrying", "scheduled")
SHOWN = 50
MOST = 1_000


@click.group("job", cls=Group)
def job() -> None:
    """Find live jobs, look at single ones, wait for them, cancel them, change when they run."""


@job.command("list")
@click.option("-Q", "--queue", "queues", type=params.queues, multiple=True, metavar="Q[,Q…]", help="Of these queues.")
@selecting(*STATES)
@click.option("--limit", type=params.numbers(1, MOST), default=SHOWN, metavar="N", help="At most so many; default 50.")
@click.option("--after", default="", metavar="PLACE", help="Go on behind where an earlier list ended.")
@revealing
def list_(queues: Names, states: tuple[str, ...], limit: int, after: str, **options: Any) -> None:
    """List live jobs: those that run, wait, are to be retried, or scheduled.

    State by state, and queue by queue; in each those first that start first. At most 10,000 jobs are looked at: a
    note says where to go on.
    """
    from streamjobs.client.talk import talk
    from streamjobs.operate import live
    from streamjobs.operate.queues import several, wrong_keys

    executor, now_ms = settings().reach()
    names = talk(executor, several(settings().namespace, flat(queues)))
    # One that is broken hides no other: that one is named at the end.
    wrong = talk(executor, wrong_keys(settings().namespace, names)) if len(names) > 1 else {}
    names = [name for name in names if name not in wrong]
    means = selection(**options, now_ms=now_ms)
    part = live.listing(settings().namespace, names, chosen(states, STATES), means, after=after, limit=limit)
    found = talk(executor, part)
    if settings().as_json:
        jobs = [listed_fields(one) for one in found.jobs]
        show.document("job.list", jobs=jobs, looked_at=found.looked, next=found.next or None)
    else:
        _print(found, now_ms)
    said = [f"queue {name} is left out: {key} is of a wrong type (streamjobs doctor)" for name, key in wrong.items()]
    fail_by([Failed(text, FAILED) for text in said])


def _print(found: "Listing", now_ms: int) -> None:
    if found.jobs:
        table = show.Table("ID", "~KIND", "STATE", ">N", ">ENQUEUED", "~NOTE")
        table.print([_row(one, now_ms) for one in found.jobs])
    elif not found.next:
        show.note("no such jobs")
    if found.next:
        show.note(f"looked at {show.plural(found.looked, 'job')}; go on with --after {found.next}")


def _row(found: "JobStatus", now_ms: int) -> tuple[str, ...]:
    from streamjobs.operate.live import live_state

    notes = {"released": "given back", "parked": "waits for a limit", "stream": found.worker}
    note = f"in {show.age(found.due_ms - now_ms)}" if found.due_ms > now_ms else "due" if found.due_ms else ""
    if found.retrying and found.history:
        note += f": {found.history[-1].error}"
    if found.unknown:
        note += f": parked, no worker knows kind {found.kind}"
    return (
        found.id,
        found.kind,
        live_state(found),
        str(found.attempt),
        show.ago(now_ms - found.enqueued_ms),
        note or notes.get(found.place, ""),
    )


@job.command("show")
@click.argument("job_id", type=params.job_id, metavar="ID")
@revealing
def show_(job_id: str) -> None:
    """Show where a job is, or how it ended."""
    from streamjobs.client.talk import talk
    from streamjobs.operate import jobs, limits
    from streamjobs.operate.workers import started_ms
    from streamjobs.protocol import views

    keys, local = _parts(job_id)
    executor, now_ms = settings().reach()
    found = executor.run(jobs.lookup(keys, local))
    key = found.meta.dedupe_key
    holds = bool(key) and executor.run(views.holder(keys, key)) == local
    waits = talk(executor, limits.waits_for(keys, found))
    began_ms = talk(executor, started_ms(keys.namespace, found.worker, job_id)) if found.worker else 0
    if settings().as_json:
        show.document("job", **job_fields(found, holds=holds, waits=waits, began_ms=began_ms))
    else:
        print_job(found, now_ms, holds=holds, waits=waits, began_ms=began_ms)


@job.command()
@click.argument("job_id", type=params.job_id, metavar="ID")
@click.option("--timeout", type=params.duration, help="Give up after so long; default never.")
def wait(job_id: str, timeout: float | None) -> None:
    """Wait for a job to end, and print its result as JSON.

    The exit code is 1 if it died, was cancelled, or has not ended in time. One whose result is not kept has ended
    well or was cancelled: that is said in a note, and nothing is printed.
    """
    from streamjobs.client.talk import talk
    from streamjobs.core.states import State
    from streamjobs.operate import jobs

    executor, _ = settings().reach()
    found = talk(executor, jobs.wait(*_parts(job_id), timeout))
    known = found.state is not State.FINISHED
    result = jobs.outcome(found) if known else None
    if settings().as_json:
        show.document("result", id=job_id, state=str(found.state), result=result)
    elif known:
        show.value(result)
    else:
        show.note(f"job {job_id} has ended, done or cancelled: no result of it is kept")


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
