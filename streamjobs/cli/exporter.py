"""`streamjobs exporter`."""

import logging
from typing import TYPE_CHECKING

import click

from streamjobs.cli import params
from streamjobs.cli.commands import Command
from streamjobs.cli.logs import logging_to_stderr
from streamjobs.cli.settings import settings

if TYPE_CHECKING:
    from streamjobs.client import Connections

_HELP = "Where to serve: a port of this machine alone, HOST:PORT, or :PORT for all interfaces."


@click.command(cls=Command)
@click.option("--port", type=params.address, metavar="[HOST:]PORT", required=True, help=_HELP)
def exporter(port: str) -> None:
    """Serve /metrics for Prometheus: what each queue holds, from the server alone.

    One is enough for all queues of a namespace. It runs until SIGTERM or Ctrl-C.
    """
    import asyncio

    # A bad one is said before anything is waited for.
    namespace, connections = settings().namespace, settings().connections
    level = logging.WARNING if settings().quiet else logging.INFO
    with logging_to_stderr("text", level):
        asyncio.run(_serve(connections, namespace, port))


async def _serve(connections: "Connections", namespace: str, port: str) -> None:
    import asyncio
    import signal

    from streamjobs.operate.exporter import Exporter

    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    try:
        async with Exporter(connections, namespace).serving(port):
            await told.wait()
    finally:
        await connections.aclose()
