"""`streamjobs dead export` and `import`: dead jobs as lines of text, and back."""

import sys
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any

import click

from streamjobs.cli import show
from streamjobs.cli.commands import Command
from streamjobs.cli.secrets import revealing, shown
from streamjobs.cli.selection import Chosen, selecting
from streamjobs.cli.settings import settings
from streamjobs.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamjobs.operate.carry import Parsed, Restored
    from streamjobs.protocol.keys import QueueKeys

MOST_BYTES = 64 * 1024 * 1024
"""A longer line is no line of ours."""
SPOOLED_BYTES = 8 * 1024 * 1024
"""More than this of stdin is kept in a file, not in memory."""
SHOWN = 10


@click.command("export", cls=Command)
@selecting
@revealing
def export(**options: Any) -> None:
    """Print dead jobs as lines of JSON, the newest first; they stay dead."""
    chosen = Chosen(**options)
    exported = foreign = hidden = 0
    with chosen.reading() as source:
        while rows := chosen.do(source.rows()):
            for row in rows:
                text, redacted = _line(*row)
                if text is None:
                    foreign += 1
                    continue
                show.ascii_line(text)
                exported += 1
                hidden += redacted
    strange = f"; {show.count(foreign)} skipped: no id" if foreign else ""
    skipped = f"; {chosen.skipped}" if chosen.skipped else ""
    show.note(f"exported {show.plural(exported, 'job')} of {chosen.target}{skipped}{strange}")
    if hidden:
        show.note(
            f"{show.plural(hidden, 'job')} with hidden arguments, which cannot be imported: --reveal exports them whole"
        )


def _line(keys: "QueueKeys", entry: str, fields: "Mapping[str, bytes]") -> tuple[bytes | None, bool]:
    """Return a row as a line, and whether some of its arguments are hidden."""
    from streamjobs.operate.carry import line

    body = fields.get("body", b"")
    may_show = shown(keys.queue, fields.get("kind", b"").decode("utf-8", "replace"), body)
    if may_show == body:
        return line(keys, entry, fields), False
    return line(keys, entry, {**fields, "body": may_show}, redacted=True), True


@click.command("import", cls=Command)
@click.argument("file", metavar="FILE")
@click.option("--dry-run", is_flag=True, help="Only check the file.")
def import_(file: str, dry_run: bool) -> None:
    """Put exported jobs back among the dead; FILE is - for stdin.

    The whole file is checked first: with a damaged line nothing is imported. A job that is dead here already,
    or alive, is left alone.
    """
    from streamjobs.client.talk import talk
    from streamjobs.operate.carry import Restored, restore

    with _opened(file) as lines:
        executor, now_ms = settings().reach()
        exported = _Exported(file, lines, now_ms)
        count = exported.check()
        if dry_run:
            _say(f"would import {show.plural(count, 'job')}, unless they are here", Restored(), count)
            return
        whole = Restored()
        try:
            with show.progress(count, "imported") as advance:
                talk(executor, restore(settings().namespace, exported.jobs(advance), whole))
        except BaseException:
            if whole.done:
                show.note(f"imported {show.plural(whole.done, 'job')} before it ended: do it again for the rest")
            raise
    _say(f"imported {show.plural(whole.done, 'job')}{_left_alone(whole)}", whole, None)
    for job in list(whole.alive)[:SHOWN]:
        show.note(f"{job} is alive here: left alone")


class _Exported:
    """A file of exported jobs."""

    def __init__(self, name: str, lines: IO[bytes], now_ms: int) -> None:
        self._name = name
        self._lines = lines
        self._now_ms = now_ms
        self._starts = array("Q")
        """Where each line begins."""

    def check(self) -> int:
        """Read it all; return how many jobs it has.

        Raises:
            UsageError: a line is damaged; it says which, and why.
        """
        jobs = at = 0
        while text := self._lines.readline(MOST_BYTES):
            self._starts.append(at)
            at += len(text)
            if len(text) == MOST_BYTES:
                why = f"longer than {show.size(MOST_BYTES)}"
                raise UsageError(f"{self._name}: line {len(self._starts)}: {why}; nothing was imported")
            try:
                jobs += self._parsed(len(self._starts), text) is not None
            except UsageError as error:
                raise UsageError(f"{error}; nothing was imported") from error
        return jobs

    def jobs(self, advance: Callable[[int], None]) -> "Iterator[Parsed]":
        """Yield the jobs, the last one first: so they lie in the same order as before."""
        for done, number in enumerate(range(len(self._starts), 0, -1)):
            self._lines.seek(self._starts[number - 1])
            if parsed := self._parsed(number, self._lines.readline(MOST_BYTES)):
                yield parsed
            advance(done)

    def _parsed(self, number: int, text: bytes) -> "Parsed | None":
        """Return the job of a line; None for an empty one."""
        from streamjobs.operate.carry import parse

        if not text.strip():
            return None
        try:
            return parse(text, self._now_ms)
        except UsageError as error:
            raise UsageError(f"{self._name}: line {number}: {error}") from error


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    """Open a file that can be read twice."""
    if file == "-":
        if sys.stdin is None:
            raise UsageError("-: stdin is closed")
        with _spooled(sys.stdin.buffer) as lines:
            yield lines
        return
    try:
        opened = open(file, "rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    with opened:
        if opened.seekable():
            yield opened
        else:
            with _spooled(opened) as lines:
                yield lines


@contextmanager
def _spooled(source: IO[bytes]) -> Iterator[IO[bytes]]:
    with SpooledTemporaryFile(SPOOLED_BYTES) as lines:
        copyfileobj(source, lines)
        lines.seek(0)
        yield lines


def _left_alone(whole: "Restored") -> str:
    dead = f"; {show.count(whole.dead)} were dead here already" if whole.dead else ""
    return f"{dead}; {show.count(len(whole.alive))} are alive here" if whole.alive else dead


def _say(text: str, whole: "Restored", would: int | None) -> None:
    if not settings().as_json:
        show.line(text)
        return
    jobs = whole.done if would is None else would
    show.document("dead.import", dry_run=would is not None, jobs=jobs, dead=whole.dead, alive=list(whole.alive))
