"""`streamjobs demo`."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click

from streamjobs.cli import params, show
from streamjobs.cli.commands import Command
from streamjobs.cli.settings import settings


@click.command(cls=Command)
@click.option("--folder", type=click.Path(path_type=Path), help="Keep everything here; else a temporary folder.")
@click.option(
    "--files", type=params.numbers(1), metavar="N", help="Index at most so many files, 200 or more; default all."
)
def demo(folder: Path | None, files: int | None) -> int:
    """See it all at work: index this Python's standard library, with failures, a killed worker and a replay.

    Starts a server of its own, unless --url names one. Exit code 0 only if the final check holds.
    """
    from streamjobs.demo.run import run

    with _Stage() as stage:
        url = settings().flags.get("url")
        return run(url, folder, files=files, progress=stage.progress, say=stage.say)


class _Stage(ExitStack):
    """Lines on stdout, and a bar on stderr while there is progress to show."""

    _advance: Callable[[int], None] | None = None
    """Moves the bar; None while there is none."""

    def progress(self, done: int, total: int) -> None:
        """Show how many files are through."""
        if self._advance is None:
            self._advance = self.enter_context(show.progress(total, "indexed"))
        self._advance(done)
        if done >= total:
            self.close()
            self._advance = None

    def say(self, text: str) -> None:
        """Print text of our own, over the bar if there is one: it is drawn again below."""
        if self._advance is not None and sys.stderr.isatty():
            click.echo("\r\x1b[K", nl=False, err=True)
        for one in text.split("\n"):
            show.line(one)
