"""`streamjobs queue`: show queues, stop them and let them go on."""

from typing import TYPE_CHECKING

import click

from streamjobs.cli import params, show
from streamjobs.cli.commands import Group
from streamjobs.cli.endings import fail_by
from streamjobs.cli.settings import settings
from streamjobs.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamjobs.client.talk import Talk


@click.group("queue", cls=Group)
def queue() -> None:
    """Show queues, stop them and let them go on."""


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
    """Do the same to each queue; those that are not there are named, the others have it done all the same."""
    from streamjobs.client.talk import talk

    executor, _ = settings().reach()
    rows, errors = [], []
    for name in dict.fromkeys(queues):
        try:
            changed = talk(executor, move(settings().namespace, name))
        except NotFound as error:
            errors.append(error)
            continue
        rows.append({"queue": name, "changed": changed})
        if not settings().as_json:
            show.line(f"{done} {name}" if changed else f"{name} {unchanged}")
    if settings().as_json:
        show.document(schema, queues=rows)
    fail_by(errors)
