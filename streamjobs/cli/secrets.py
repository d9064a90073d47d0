"""What of a job's arguments is shown: all that its code does not call secret, unless `--reveal` says otherwise."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from streamjobs.cli.settings import Settings, settings

if TYPE_CHECKING:
    from streamjobs.operate.jobs import JobStatus

F = TypeVar("F", bound=Callable[..., Any])
_REVEAL = "reveal"
_KNOWN = "streamjobs.secrets"
"""Where the command that runs keeps what the queues said."""


def revealing(command: F) -> F:
    """Add the option that shows arguments in full."""
    return click.option(
        "--reveal",
        is_flag=True,
        expose_value=False,
        callback=_note,
        help="Show redacted arguments too.",
    )(command)


def _note(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    found = ctx.find_object(Settings)
    if value and found is not None:
        found.flags[_REVEAL] = True


def shown_body(job: "JobStatus") -> bytes:
    """Return the arguments of a job as they may be shown.

    Raises:
        Rejected: this user may not read which of them are secret.
    """
    return shown(job.queue, job.kind, job.body)


def shown(queue: str, kind: str, body: bytes) -> bytes:
    """Return arguments as they may be shown; see `shown_body`."""
    from streamjobs.core.redact import hide
    from streamjobs.protocol import secrets

    if _REVEAL in settings().flags or not kind:
        return body
    known = click.get_current_context().meta.setdefault(_KNOWN, {})
    if queue not in known:
        known[queue] = settings().connections.sync().run(secrets.declared(settings().keys(queue)))
    names = known[queue].get(kind)
    return hide(body, names) if names else body
