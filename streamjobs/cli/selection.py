"""Which dead jobs a command means: the same options everywhere, and the question before they are touched."""

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from streamjobs.cli import params, show
from streamjobs.cli.params import Names, flat
from streamjobs.cli.settings import settings
from streamjobs.core.errors import InvalidOption, Refused
from streamjobs.core.names import split_job_id
from streamjobs.core.states import DeadReason

if TYPE_CHECKING:
    from streamjobs.operate.scan import Named, Scan

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
_REASONS = click.Choice([reason.value for reason in DeadReason])


def selecting(command: F) -> F:
    """Add the options that select dead jobs; the command makes a `Chosen` of them."""
    options = [
        click.option("-Q", "--queue", "queues", type=params.queues, multiple=True, metavar="Q[,Q…]",
                     help="Of these queues; default all."),
        click.option("--kind", "kinds", type=params.kind, metavar="KIND", multiple=True, help="Of this kind."),
        click.option("--reason", "reasons", type=_REASONS, multiple=True, metavar="REASON",
                     help=f"Dead for this reason: {', '.join(_REASONS.choices)}."),
        click.option("--error", type=params.words, metavar="TEXT",
                     help="With this in the last error's type or text, as it is or as groups shows it."),
        click.option("--class", "classes", type=params.words, multiple=True, metavar="CLASS",
                     help="With a last error of this class, such as timeout."),
        click.option("--where", type=params.pair, multiple=True, metavar="NAME=VALUE",
                     help="With this argument; JSON, or text."),
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
        ids: tuple[str, ...],
        since: datetime | float | None,
        until: datetime | float | None,
        limit: int | None,
        error: str | None,
        after: str | None = None,
        frozen: bool = False,
        **rest: Any,
    ) -> None:
        """Reach the server and note its time.

        Args:
            queues, ids, since, until, limit, error: as given.
            after: where an earlier list ended.
            frozen: what dies from now on is not meant.
            rest: what else `Selection` has.
        """
        from streamjobs.operate.selection import Selection
        from streamjobs.protocol import views

        names = flat(queues)
        self._ids = list(dict.fromkeys(ids))
        if names and (stray := [one for one in self._ids if split_job_id(one)[0] not in names]):
            raise InvalidOption(f"--id {stray[0]} is not of the queue given by -Q")
        if self._ids and (limit or after):
            raise InvalidOption("--id names the jobs: leave out --limit and --after")
        self.executor, self.now_ms = settings().reach()
        for name in names:
            self.check_queue(name)
        since_ms, until_ms = params.instant_ms(since, self.now_ms), params.instant_ms(until, self.now_ms)
        if until_ms and since_ms > until_ms:
            raise InvalidOption("--since is later than --until: no job can have died between them")
        self.queues = names or self.executor.run(views.queue_names(settings().namespace))
        until_ms = until_ms or (self.now_ms if frozen else 0)
        self._selection = Selection(**rest, error=error or "", since_ms=since_ms, until_ms=until_ms)
        self._limit, self._after = limit or 0, after or ""
        self._source: Scan | Named = self.source()

    def source(self) -> "Scan | Named":
        """Return what gives them, the newest first, from the beginning."""
        from streamjobs.operate.scan import Named, Scan

        if self._ids:
            self._source = Named(settings().namespace, self._ids, self._selection)
        else:
            keys = [settings().keys(name) for name in self.queues]
            self._source = Scan(keys, self._selection, after=self._after, limit=self._limit)
        return self._source

    def check_queue(self, name: str) -> None:
        """See that there is a queue of that name.

        Raises:
            NotFound: there is none.
        """
        from streamjobs.operate.queues import known

        self.do(known(settings().namespace, name))

    def do(self, conversation: "Generator[Any, Any, T]") -> T:
        """Carry a conversation with the server through."""
        from streamjobs.client.talk import talk

        return talk(self.executor, conversation)

    @contextmanager
    def reading(self) -> "Iterator[Scan | Named]":
        """Return what gives them, and show how far the reading has come where it takes long."""
        from streamjobs.operate.scan import Scan
        from streamjobs.protocol import views

        source = self.source()
        rows = 0
        if isinstance(source, Scan) and sys.stderr is not None and sys.stderr.isatty():
            rows = sum(self.executor.run(views.length(settings().keys(name).dead)) for name in self.queues)
        with show.progress(rows, "read") as advance:
            if isinstance(source, Scan):
                source.on_read = advance
            yield source

    @property
    def skipped(self) -> str:
        """What the last pass left out, and why."""
        return ", ".join(f"{show.count(n)} skipped: {why}" for why, n in sorted(self._source.skipped.items()))

    @property
    def target(self) -> str:
        """The queues, as a sentence names them: those of the jobs that were found, or that were looked for."""
        if self._source.queues:
            names = sorted(self._source.queues)
        elif self._ids:
            names = list(dict.fromkeys(split_job_id(one)[0] for one in self._ids))
        else:
            names = self.queues
        return named(names) or f"namespace {settings().namespace}"


def named(queues: Sequence[str]) -> str:
    """Return queues as a sentence names them; "" for none."""
    return ", ".join(queues[:4]) + (f" and {show.plural(len(queues) - 4, 'more queue')}" if len(queues) > 4 else "")


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
