"""Which dead jobs a command means: the same options everywhere, and the question before they are touched."""

import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from streamjobs.cli import params, show
from streamjobs.cli.params import Names, flat
from streamjobs.cli.settings import settings
from streamjobs.core.errors import InvalidOption, NotFound, Refused
from streamjobs.core.names import split_job_id
from streamjobs.core.states import DeadReason

if TYPE_CHECKING:
    from streamjobs.operate.jobs import JobStatus

F = TypeVar("F", bound=Callable[..., Any])
_REASONS = click.Choice([reason.value for reason in DeadReason])


def selecting(command: F) -> F:
    """Add the options that select dead jobs; the command makes a `Chosen` of them."""
    options = [
        click.option("-Q", "--queue", "queues", type=params.queues, multiple=True, metavar="Q[,Q…]",
                     help="Of these queues; default all."),
        click.option("--kind", "kinds", multiple=True, help="Of this kind."),
        click.option("--reason", "reasons", type=_REASONS, multiple=True, help="Dead for this reason."),
        click.option("--error", default="", metavar="TEXT",
                     help="With this in the last error's type or text."),
        click.option("--since", type=params.when, help="Died no longer ago than this (4h), or since this instant."),
        click.option("--until", type=params.when, help="Died at least so long ago, or until this instant."),
        click.option("--id", "ids", type=params.job_id, multiple=True, metavar="ID", help="This job."),
        click.option("--limit", type=params.numbers(1), metavar="N",
                     help="At most so many, the newest first; default all."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


class Chosen:
    """The dead jobs that a command line means."""

    def __init__(
        self,
        *,
        queues: Names,
        kinds: tuple[str, ...],
        reasons: tuple[str, ...],
        error: str,
        since: datetime | float | None,
        until: datetime | float | None,
        ids: tuple[str, ...],
        limit: int | None,
        frozen: bool = False,
    ) -> None:
        """Reach the server and note its time. `frozen`: what dies from now on is not meant."""
        from streamjobs.operate.dead import Dead, Selection
        from streamjobs.protocol import views

        self.executor, self.now_ms = settings().reach()
        self.ids = list(dict.fromkeys(ids))
        names = flat(queues)
        known = self.executor.run(views.queue_names(settings().namespace))
        if strange := [name for name in names if name not in known]:
            raise NotFound(f"queue {strange[0]}: there is none in namespace {settings().namespace}")
        if names and (stray := [one for one in self.ids if split_job_id(one)[0] not in names]):
            raise InvalidOption(f"--id {stray[0]} is not of the queue given by -Q")
        until_ms = self._instant(until) or (self.now_ms if frozen else 0)
        selection = Selection(kinds, reasons, error, self._instant(since), until_ms)
        self.queues = names or known
        self._limit = limit or 0
        self._dead = Dead(self.executor, map(settings().keys, self.queues), selection)

    def _instant(self, when: datetime | float | None) -> int:
        if isinstance(when, datetime):
            return round(when.timestamp() * 1000)
        return 0 if when is None else self.now_ms - round(when * 1000)

    def jobs(self) -> "Iterator[JobStatus]":
        """Yield them, the newest first."""
        if self.ids:
            return self._dead.find(self.ids, settings().namespace)
        return self._dead.scan(self._limit)

    @property
    def skipped(self) -> str:
        """What the last pass left out, and why."""
        return ", ".join(f"{show.count(n)} skipped: {why}" for why, n in sorted(self._dead.skipped.items()))

    @property
    def target(self) -> str:
        """The queues, as a sentence names them."""
        if self.ids:
            names = list(dict.fromkeys(split_job_id(one)[0] for one in self.ids))
        else:
            names = self.queues
        if not names:
            return f"namespace {settings().namespace}"
        return ", ".join(names[:4]) + (f" and {len(names) - 4} more queues" if len(names) > 4 else "")


def confirmed(what: str, *, yes: bool) -> bool:
    """Ask on a terminal whether to do what was described; `yes` was said on the command line.

    Raises:
        Refused: nobody can be asked.
    """
    if yes:
        return True
    # Either is None where the shell has closed it.
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        raise Refused(f"this would {what}: add --yes to do it, or --dry-run to see it; nothing was changed")
    return click.confirm(f"{what}?", err=True)
