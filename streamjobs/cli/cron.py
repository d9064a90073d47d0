"""`streamjobs cron`: see, run and pause crons."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from streamjobs.cli import params, show
from streamjobs.cli.commands import Group
from streamjobs.cli.params import Names, flat
from streamjobs.cli.secrets import revealing, shown
from streamjobs.cli.settings import settings
from streamjobs.core.errors import NotFound

if TYPE_CHECKING:
    from streamjobs.core.cron import Cron
    from streamjobs.operate.crons import CronStatus

_queue = click.option("-Q", "--queue", type=params.queue, metavar="Q", help="Of this queue, where several have one.")
_name = click.argument("name")


@click.group("cron", cls=Group)
def cron() -> None:
    """See, run and pause crons."""


@cron.command("list")
@click.option("-Q", "--queue", "queues", type=params.queues, multiple=True, metavar="Q[,Q…]", help="Of these queues.")
@click.option("--all", "every", is_flag=True, help="Also those that no live worker schedules.")
@revealing
def list_(queues: Names, every: bool) -> None:
    """List what live workers schedule, and how it went so far."""
    from streamjobs.client.talk import talk
    from streamjobs.operate.crons import look

    executor, now_ms = settings().reach()
    found = talk(executor, look(settings().namespace, now_ms, flat(queues), every=every))
    if settings().as_json:
        show.document("cron.list", time=show.time_of(now_ms), crons=[_fields(one, now_ms) for one in found])
        return
    if found:
        table = show.Table("~NAME", "~QUEUE", "~SCHEDULE", ">NEXT", ">LAST", ">LATE", ">SKIP", "STATE")
        table.print([_cells(one, now_ms) for one in found])
    else:
        show.note(f"no crons in namespace {settings().namespace}: no worker there schedules any")


def _cells(one: "CronStatus", now_ms: int) -> list[str]:
    next_ms, row = one.next_ms(now_ms), one.row
    return [
        one.name,
        one.queue,
        one.schedule,
        _age(next_ms - now_ms) if next_ms else "-",
        _age(now_ms - row.last_ms) if row.last_ms else "-",
        show.short(row.late),
        show.short(row.skipped),
        "paused" if one.paused else "ok" if one.workers else "no worker",
    ]


def _age(ms: int) -> str:
    """Return a time span in whole seconds or more."""
    return show.age(max(0, ms) // 1000 * 1000).replace(".0", "")


def _fields(one: "CronStatus", now_ms: int) -> dict[str, Any]:
    told, row = one.definition, one.row
    return {
        "name": one.name,
        "queue": one.queue,
        "schedule": one.schedule,
        "kind": told.kind if told else None,
        **(show.arguments(shown(one.queue, told.kind, bytes(told.body))) if told else {"args": None}),
        "catch_up": told.catch_up if told else None,
        "jitter_s": told.jitter_ms / 1000 if told else None,
        "next": show.time_of(one.next_ms(now_ms)),
        "last_slot": show.time_of(row.last_ms),
        "last_job": one.keys.job_id(row.job) if row.job else None,
        "runs": row.runs,
        "late": row.late,
        "skipped": row.skipped,
        "paused": one.paused,
        "workers": one.workers,
    }


@cron.command("next")
@_name
@click.option("-A", "--app", "app_path", metavar="MODULE:APP", help="As this code has it; else as live workers do.")
@_queue
@click.option("-n", "--count", type=params.numbers(1, 1000), default=5, metavar="N", help="So many; default 5.")
@click.option("--after", type=params.time, help="After this instant; default now, by the server's clock.")
def next_(name: str, app_path: str | None, queue: str | None, count: int, after: datetime | None) -> None:
    """Print the next slots of a cron, in its own time zone; jitter may add to them."""
    from itertools import islice

    from streamjobs.core.names import instant_ms

    found, now_ms = _from_app(app_path, name, after is None) if app_path else _from_server(name, queue)
    slots = list(islice(found.schedule.after(instant_ms(after, "--after") if after else now_ms), count))
    if settings().as_json:
        show.document("cron.next", cron=name, schedule=found.schedule.text, slots=[show.time_of(one) for one in slots])
    else:
        for slot in slots:
            show.line(found.schedule.shown(slot))


def _from_app(path: str, name: str, asks_the_time: bool) -> "tuple[Cron, int]":
    """Return a cron of the code, and the server's time if it is wanted: else nothing is connected to."""
    from streamjobs.protocol.upkeep import server_time

    app = settings().app(path, short=True)
    crons = app.registry.crons()
    if name not in crons:
        raise NotFound(f"cron {name:.80}: there is none in {path}; there are {', '.join(sorted(crons)) or 'none'}")
    return crons[name], app.connections.sync().run(server_time()) if asks_the_time else 0


def _from_server(name: str, queue: str | None) -> "tuple[Cron, int]":
    status, now_ms = _find(name, queue)
    return status.cron, now_ms


def _find(name: str, queue: str | None) -> "tuple[CronStatus, int]":
    from streamjobs.client.talk import talk
    from streamjobs.operate.crons import find

    executor, now_ms = settings().reach()
    return talk(executor, find(settings().namespace, now_ms, name, queue)), now_ms


@cron.command()
@_name
@_queue
def run(name: str, queue: str | None) -> None:
    """Enqueue the job of a cron now, beside its slots; print its id."""
    from streamjobs.operate.crons import run_now

    status, _ = _find(name, queue)
    job_id = settings().reach()[0].run(run_now(status))
    if settings().as_json:
        show.document("cron.run", cron=name, queue=status.queue, id=job_id)
    else:
        show.line(job_id)


@cron.command()
@_name
@_queue
def pause(name: str, queue: str | None) -> None:
    """Let the slots of a cron be passed over, until it is resumed."""
    _hold(name, queue, paused=True)


@cron.command()
@_name
@_queue
def resume(name: str, queue: str | None) -> None:
    """Let a paused cron go on with its next slot; none that fell into the pause is caught up."""
    _hold(name, queue, paused=False)


def _hold(name: str, queue: str | None, *, paused: bool) -> None:
    from streamjobs.protocol import crons

    status, now_ms = _find(name, queue)
    if paused != status.paused:
        hold = crons.pause if paused else crons.resume
        settings().reach()[0].run(hold(status.keys, name, now_ms))
    if settings().as_json:
        show.document("cron.pause", cron=name, queue=status.queue, paused=paused)
    else:
        show.line(f"{'paused' if paused else 'resumed'} {name} of {status.queue}")
