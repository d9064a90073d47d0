"""`streamjobs queue`: show queues."""

import click

from streamjobs.cli import show
from streamjobs.cli.commands import Group
from streamjobs.cli.settings import settings


@click.group("queue", cls=Group)
def queue() -> None:
    """Show queues."""


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
