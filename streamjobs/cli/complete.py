"""What a shell may complete a word to: names of queues from the server, names of kinds from the app.

Nothing here says anything: whoever presses a key in the middle of a command wants no error there.
"""

import os
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from threading import Thread
from typing import TYPE_CHECKING

import click

from streamjobs.cli.settings import Settings

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

PATIENCE_S = 1.0
"""How long a shell waits for the server."""
_PLAIN = re.compile(r"[\w./:@+-]+\Z")
"""What no shell takes for more than a word."""


def items(
    there_are: Callable[[click.Context], list[str]], ctx: click.Context, incomplete: str, sign: str = ""
) -> "list[CompletionItem[str]]":
    """Return what a word may become.

    Args:
        there_are: finds what there is.
        ctx: of the command, as far as it is written.
        incomplete: the word so far.
        sign: parts several values in one word; "" for a word of one value.
    """
    from click.shell_completion import CompletionItem

    before, found, last = incomplete.rpartition(sign) if sign else ("", "", incomplete)
    try:
        names = there_are(ctx)
    except (Exception, SystemExit):
        return []
    taken = before.split(sign) if found else []
    return [CompletionItem(f"{before}{found}{name}") for name in names if name.startswith(last) and name not in taken]


def queue_names(ctx: click.Context) -> list[str]:
    """Return the names of all queues; none where the server does not answer in time."""
    settings = ctx.find_object(Settings)
    assert settings is not None
    found: list[str] = []
    asking = Thread(target=_ask, args=(settings, found), daemon=True)
    asking.start()
    asking.join(PATIENCE_S)
    return list(found)


def _ask(settings: Settings, found: list[str]) -> None:
    from streamjobs.client import Connections
    from streamjobs.client.spawn import read_address
    from streamjobs.core.errors import StreamJobsError
    from streamjobs.protocol import views

    try:
        target = settings.target
        if target.scheme == "embedded":
            # To join it would start one that does not run.
            address = read_address(target.folder)
            if address is None:
                return
            target = address.target(target.text)
        connections = Connections(target, reply_s=PATIENCE_S)
        try:
            names = connections.sync().run(views.queue_names(settings.namespace))
        finally:
            connections.close()
    except StreamJobsError:
        return
    found += names


def kinds(ctx: click.Context) -> list[str]:
    """Return the kinds of the app that -A or STREAMJOBS_APP names; none without."""
    from streamjobs.cli.apps import load_app

    # Not the file's: in a folder of others a key would run their code.
    path = ctx.params.get("app_path") or os.environ.get("STREAMJOBS_APP")
    if not path:
        return []
    with open(os.devnull, "w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        app = load_app(path)
    return sorted(filter(_PLAIN.match, app.registry.all()))
