"""`streamjobs queue`: show queues, limit them, stop them and let them go on, empty and delete them."""

from typing import TYPE_CHECKING, Literal

import click

from streamjobs.cli import params, show
from streamjobs.cli.clear import delete, purge
from streamjobs.cli.commands import Group
from streamjobs.cli.each import Row, each
from streamjobs.cli.one_queue import LIMIT_HEADINGS, limit_cells, show_
from streamjobs.cli.settings import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta

    from streamjobs.client.talk import Talk
    from streamjobs.operate.limits import LimitStatus


@click.group("queue", cls=Group)
def queue() -> None:
    """Show queues, limit them, stop them and let them go on, empty and delete them."""


@queue.command("list")
def list_() -> None:
    """List the names of all queues."""
    from streamjobs.protocol import views

    executor, _ = settings().reach()
    names = executor.run(views.queue_names(settings().namespace))
    if settings().as_json:
        show.document("queue.list", namespace=settings().namespace, queues=names)
        return
    for name in names:
        show.line(name)
    if not names:
        show.note(f"no queues in namespace {settings().namespace}: nothing was enqueued and no worker came yet")


queue.add_command(show_)


@queue.command("pause")
@click.argument("queues", nargs=-1, required=True, type=params.queue, metavar="QUEUE...")
def pause(queues: tuple[str, ...]) -> None:
    """Let no job of these queues start until they are resumed.

    Holds at once, for all workers. Jobs that run go on, and producers go on too.
    """
    from streamjobs.operate import queues as operate

    _each("queue.pause", operate.pause, queues, "paused", "was paused already")


@queue.command("resume")
@click.argument("queues", nargs=-1, required=True, type=params.queue, metavar="QUEUE...")
def resume(queues: tuple[str, ...]) -> None:
    """Let the jobs of paused queues start again."""
    from streamjobs.operate import queues as operate

    _each("queue.resume", operate.resume, queues, "resumed", "was not paused")


def _each(
    schema: str, move: "Callable[[str, str], Talk[bool]]", queues: tuple[str, ...], done: str, unchanged: str
) -> None:
    def tell(name: str, changed: bool) -> tuple[str, Row]:
        return f"{done} {name}" if changed else f"{name} {unchanged}", {"queue": name, "changed": changed}

    each(schema, "queues", queues, lambda name: move(settings().namespace, name), tell)


@queue.command("limit")
@click.argument("name", type=params.queue, metavar="QUEUE")
@click.option("--kind", help="The limit of this kind, not that of the whole queue.", metavar="KIND")
@click.option("--key", help="For each value of this argument of the kind.", metavar="ARGUMENT")
@click.option("--rate", type=params.rate, help="How many may start, such as 100/s, 5/m, 3/10s; off for no limit.")
@click.option("--burst", type=params.numbers(1), help="How many at once after a pause.", metavar="N")
@click.option("--concurrency", type=params.places, help="How many may run at once; off for no limit.", metavar="N")
@click.option("--max-waiting", type=params.places, help="How many jobs may wait; off for any number.", metavar="N")
@click.option(
    "--keep-dead", type=params.keep, help="How many dead jobs are kept, or how long (30d); off for all.", metavar="N"
)
@click.option("--reset", is_flag=True, help="Back to what the workers' code says.")
def limit(
    name: str,
    kind: str | None,
    key: str | None,
    rate: "tuple[int, float] | Literal['off'] | None",
    burst: int | None,
    concurrency: "int | Literal['off'] | None",
    max_waiting: "int | Literal['off'] | None",
    keep_dead: "int | timedelta | Literal['off'] | None",
    reset: bool,
) -> None:
    """Show the limits of a queue, or change one, in all workers, within a second."""
    import msgspec

    from streamjobs.client.talk import talk
    from streamjobs.core.limits import Rate
    from streamjobs.operate import limits
    from streamjobs.operate.metrics import has_counted
    from streamjobs.operate.queues import known

    if burst is not None and not isinstance(rate, tuple):
        raise click.UsageError("--burst goes with a --rate")
    values = {}
    if reset or not rate is concurrency is max_waiting is keep_dead is None:
        wanted = Rate(rate[0], per=rate[1], burst=burst) if isinstance(rate, tuple) else rate
        values = limits.changes(wanted, concurrency, kind, key, reset, max_waiting, keep_dead)
    elif kind or key:
        raise click.UsageError("--kind and --key go with --rate, --concurrency or --reset")
    executor, now_ms = settings().reach()
    keys = talk(executor, known(settings().namespace, name))
    talk(executor, limits.change(keys, values))
    found = talk(executor, limits.current(keys))
    if kind and not reset and not talk(executor, has_counted(keys, kind, now_ms)):
        show.note(f"no job of kind {kind} was counted in queue {name} within 24h: is it written like that?")
    for note in _notes(found, name, kind, key, reset=reset):
        show.note(note)
    if settings().as_json:
        show.document("queue.limit", queue=name, limits=[msgspec.structs.asdict(one) for one in found])
        return
    if not found:
        show.note(f"queue {name} has no limits")
        return
    show.Table(*LIMIT_HEADINGS).print(map(limit_cells, found))


def _notes(found: "Iterable[LimitStatus]", name: str, kind: str | None, key: str | None, *, reset: bool) -> list[str]:
    """Return what may not be as it was meant: a key that nobody knows, limits that a reset leaves."""
    if not reset:
        known = key is None or any(one.key == key and (one.code or not one.by_operator) for one in found)
        return [] if known else [f"no code limits by {key}: a kind without an argument of that name has no limit by it"]
    stay = [one for one in found if one.by_operator and not kind]
    which = dict.fromkeys((one.kind, f" --key {one.key}" if one.key else "") for one in stay)
    again = f"streamjobs queue limit {name} --reset --kind"
    return [f"that of kind {one} stays: {again} {one}{option}" for one, option in which]


queue.add_command(purge)
queue.add_command(delete)
