"""`streamjobs dead replay` and `purge`: count, ask, do it, and say what came of it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from streamjobs.cli import params, show
from streamjobs.cli.commands import Command
from streamjobs.cli.endings import REFUSED, Failed
from streamjobs.cli.selection import Chosen, confirmed, selecting
from streamjobs.cli.settings import settings
from streamjobs.core.errors import UsageError

if TYPE_CHECKING:
    from streamjobs.client.talk import Talk
    from streamjobs.core.registry import Handler
    from streamjobs.operate.batches import Done, Tell
    from streamjobs.operate.edit import Edit
    from streamjobs.operate.jobs import JobStatus
    from streamjobs.operate.scan import Source

    Move = Callable[[Source, Tell], Talk[Done]]
    Check = Callable[[JobStatus], object]
    """Raises UsageError for a job that is to be left dead."""

SHOWN = 10
"""Jobs left dead that are named one by one."""
_SET = "With this argument instead; JSON, else text; with -A by its type."
_APP = "Leave those dead whose arguments the app's handlers would not take."


def _deciding(command: Any) -> Any:
    command = click.option("--yes", is_flag=True, help="Do it without asking.")(command)
    return click.option("--dry-run", is_flag=True, help="Only say what would be done.")(command)


@click.command(cls=Command)
@selecting
@click.option("--set", "changes", type=params.pair, multiple=True, metavar="NAME=VALUE", help=_SET)
@click.option("-A", "--app", "app_path", metavar="MODULE:APP", help=_APP)
@click.option("--to", type=params.queue, metavar="Q", help="Into this queue, as new jobs that name the old ones.")
@click.option("--new-key", is_flag=True, help="As new jobs, with new ids and idempotency keys.")
@click.option("--rate", type=params.pace, metavar="N/TIME", help="At most so many, such as 20/s or 5/m.")
@_deciding
def replay(
    changes: tuple[tuple[str, str], ...],
    app_path: str | None,
    to: str | None,
    new_key: bool,
    rate: float | None,
    yes: bool,
    dry_run: bool,
    **options: Any,
) -> None:
    """Put dead jobs back: the same ids and arguments, attempts from 1.

    A job whose dedupe key another job holds by now is left dead and named, and so is one whose arguments do
    not fit; the exit code is then 5.
    """
    from streamjobs.operate import replay as operate

    edit = _edit(changes, app_path) if changes or app_path else None
    how = operate.How(to or "", new_key, edit, rate or 0.0)
    chosen = Chosen(**options, frozen=True)
    if to:
        chosen.check_queue(to)
    work = _Work("replay", "replayed", chosen, f" to {to}" if to else "", how.arguments)
    work.act(lambda source, tell: operate.replay(settings().namespace, source, how, tell), yes=yes, dry_run=dry_run)


def _edit(changes: tuple[tuple[str, str], ...], app_path: str | None) -> "Edit":
    """Return what sets arguments: read by the handlers' types with an app, else as JSON or text."""
    from streamjobs.cli.arguments import argument
    from streamjobs.operate.edit import Edit, encode

    texts = dict(changes)
    if len(texts) < len(changes):
        twice = next(name for name in texts if [name for name, _ in changes].count(name) > 1)
        raise UsageError(f"--set: argument {twice!r:.80} is set twice")

    def encoded(handler: "Handler | None", name: str, text: str) -> bytes:
        return encode(handler, name, argument(handler, name, text))

    find = settings().app(app_path, short=True).registry.find if app_path else None
    return Edit(texts, find, encoded)


@click.command(cls=Command)
@selecting
@_deciding
def purge(yes: bool, dry_run: bool, **options: Any) -> None:
    """Delete dead jobs for good."""
    from streamjobs.operate import dead as operate

    work = _Work("purge", "purged", Chosen(**options, frozen=True))
    work.act(lambda source, tell: operate.purge(settings().namespace, source, tell), yes=yes, dry_run=dry_run)


class _Count:
    """What a look at the jobs that are meant has found."""

    def __init__(self) -> None:
        self.jobs = 0
        self.first_ms = self.last_ms = 0
        self.left: dict[str, str] = {}


class _Work:
    """One replay or purge."""

    def __init__(self, verb: str, past: str, chosen: Chosen, to: str = "", check: "Check | None" = None) -> None:
        self._verb, self._past, self._chosen, self._to, self._check = verb, past, chosen, to, check

    def act(self, move: "Move", *, yes: bool, dry_run: bool) -> None:
        """Count, ask, and do it."""
        from streamjobs.operate.batches import Done

        count = self._count() if dry_run or not yes else None
        if dry_run:
            assert count is not None
            self._say(f"would {self._what(count)}{self._skipped}", Done(left=count.left), count.jobs)
            self._name(Done(left=count.left))
            return
        if count is None or count.jobs:
            if count is not None and not confirmed(self._what(count), yes=False):
                raise Failed("not confirmed; nothing was changed", REFUSED)
            done = self._do(move, count.jobs if count else 0)
        else:
            done = Done(left=count.left)
        if not done.any:
            self._say(f"nothing to {self._verb} in {self._chosen.target}{self._skipped}", done, None)
            return
        gone = f"; {show.count(done.gone)} were gone already" if done.gone else ""
        jobs = show.plural(done.done, "job")
        self._say(f"{self._past} {jobs} of {self._chosen.target}{self._to}{gone}{self._skipped}", done, None)
        self._name(done)
        if left := len(done.conflicts) + len(done.left):
            raise Failed(f"{show.plural(left, 'job')} left dead", REFUSED)

    def _count(self) -> _Count:
        found = _Count()
        with self._chosen.reading() as source:
            while page := self._chosen.do(source.page()):
                for job in page:
                    try:
                        if self._check:
                            self._check(job)
                    except UsageError as error:
                        found.left[job.id] = str(error)
                        continue
                    found.jobs += 1
                    found.first_ms = min(found.first_ms or job.died_ms, job.died_ms)
                    found.last_ms = max(found.last_ms, job.died_ms)
        return found

    def _what(self, count: _Count) -> str:
        """Return what is to be done: how many, where, and how old they are."""
        since, until = (show.ago(self._chosen.now_ms - at_ms) for at_ms in (count.first_ms, count.last_ms))
        died = f", died {since}{'' if since == until else f' to {until}'}" if count.jobs else ""
        left = f"; {show.plural(len(count.left), 'job')} would be left dead" if count.left else ""
        return f"{self._verb} {show.plural(count.jobs, 'job')} of {self._chosen.target}{self._to}{died}{left}"

    @property
    def _skipped(self) -> str:
        return f"; {self._chosen.skipped}" if self._chosen.skipped else ""

    def _do(self, move: "Move", count: int) -> "Done":
        """Do it in batches; `count` is 0 where they were not counted."""
        done = 0
        try:
            with show.progress(count, self._past) as advance:

                def tell(so_far: "Done") -> None:
                    nonlocal done
                    done = so_far.done
                    advance(done)

                return self._chosen.do(move(self._chosen.source(), tell))
        except BaseException as error:
            if done or isinstance(error, KeyboardInterrupt):
                # A batch under way has not told what became of it.
                jobs = show.plural(done, "job")
                show.note(f"{self._past} {jobs} before it ended, perhaps one batch more: do it again for the rest")
            raise

    def _say(self, text: str, done: "Done", would: int | None) -> None:
        if not settings().as_json:
            show.line(text)
            return
        fields: dict[str, Any] = {"dry_run": would is not None, "jobs": done.done if would is None else would}
        if self._verb == "replay":
            fields["conflicts"] = [{"id": job, "held_by": holder} for job, holder in done.conflicts.items()]
        left = [{"id": job, "why": why} for job, why in done.left.items()]
        show.document(f"dead.{self._verb}", **fields, gone=done.gone, left=left)

    def _name(self, done: "Done") -> None:
        reasons = {job: f"{holder} holds its dedupe key" for job, holder in done.conflicts.items()} | done.left
        for job, why in list(reasons.items())[:SHOWN]:
            show.note(f"{job} is left dead: {why}")
        if len(reasons) > SHOWN:
            show.note(f"and {show.count(len(reasons) - SHOWN)} more")
