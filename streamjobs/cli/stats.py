"""`streamjobs stats`."""

from typing import TYPE_CHECKING, Any

import click

from streamjobs.cli import params, show
from streamjobs.cli.commands import Command
from streamjobs.cli.settings import settings

if TYPE_CHECKING:
    from streamjobs.core.server import ServerFacts
    from streamjobs.operate.stats import QueueStats, Snapshot


@click.command(cls=Command)
@click.argument("queues", nargs=-1, type=params.queue, metavar="[QUEUE]...")
def stats(queues: tuple[str, ...]) -> None:
    """Show what each queue holds: jobs per state, the age of the oldest ready one, workers, totals.

    Reads only, and costs the same whatever the queues hold. A `*` marks a queue without a live worker.
    """
    from streamjobs.client.talk import talk
    from streamjobs.operate.stats import snapshot

    executor, _ = settings().reach()
    found = talk(executor, snapshot(settings().namespace, queues))
    if settings().as_json:
        show.document("stats", **_fields(found))
    else:
        _print(found)


def _fields(found: "Snapshot") -> dict[str, Any]:
    server = found.server
    return {
        "time": show.time_of(found.at_ms),
        "namespace": settings().namespace,
        "server": {
            "url": settings().connections.target.text,
            "engine": server.engine,
            "version": server.version,
            "eviction": server.eviction,
            "used_bytes": server.used_bytes,
            "limit_bytes": server.limit_bytes or None,
        },
        "queues": [_queue(queue) for queue in found.queues],
    }


def _queue(queue: "QueueStats") -> dict[str, Any]:
    return {
        "queue": queue.queue,
        "waiting": queue.waiting,
        "limited": queue.limited,
        "running": queue.running,
        "slots": queue.slots,
        "scheduled": queue.scheduled,
        "retrying": queue.retrying,
        "dead": queue.dead,
        "oldest_ready_s": queue.oldest_ready_ms / 1000,
        "workers": queue.workers,
        "lease_s": queue.lease_ms / 1000 or None,
        "paused": queue.paused,
        "done": queue.done,
        "failed": queue.failed,
        "totals": dict(sorted(queue.totals.items())),
    }


def _print(found: "Snapshot") -> None:
    show.line(_heading(found))
    show.line()
    if not found.queues:
        show.note(f"no queues in namespace {settings().namespace}: nothing was enqueued and no worker came yet")
        return
    headings = "~QUEUE >WAITING >RUN/SLOTS >SCHED >RETRY >DEAD >OLDEST >WRK >DONE >FAILED"
    show.Table(*headings.split()).print(_row(queue) for queue in found.queues)
    if stopped := [queue.queue for queue in found.queues if queue.paused]:
        show.line()
        show.line(f"paused: {', '.join(stopped)} (streamjobs queue resume {' '.join(stopped)})")


def _row(queue: "QueueStats") -> tuple[str, ...]:
    return (
        queue.queue + ("" if queue.workers else "*"),
        show.short(queue.waiting),
        f"{show.short(queue.running)}/{show.short(queue.slots)}",
        show.short(queue.scheduled),
        show.short(queue.retrying),
        show.short(queue.dead),
        show.age(queue.oldest_ready_ms),
        show.short(queue.workers),
        show.short(queue.done),
        show.short(queue.failed),
    )


def _heading(found: "Snapshot") -> str:
    server = found.server
    place = settings().connections.target.text.removeprefix("redis://")
    name = f"{server.engine or 'server'} {server.version}".strip()
    parts = [f"namespace {settings().namespace}", server.eviction, _memory(server)]
    rest = "".join(f"   {part}" for part in parts if part)
    time = f"{(show.time_of(found.at_ms) or '')[11:19]}Z"
    room = show.screen_columns() - show.width(f"{name} @ {rest}   {time}")
    # Of a long path the end says more than the beginning.
    place = place if show.width(place) <= room else "…" + place[-max(8, room - 1) :]
    return f"{name} @ {place}{rest}" + " " * max(3, room - show.width(place) + 3) + time


def _memory(server: "ServerFacts") -> str:
    if not server.used_bytes:
        return ""
    used = show.size(server.used_bytes)
    return f"{used} / {show.size(server.limit_bytes)}" if server.limit_bytes else used
