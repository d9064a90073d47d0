"""`streamjobs demo`."""

import sys
from pathlib import Path

import click

from streamjobs.cli import show
from streamjobs.cli.commands import Command
from streamjobs.cli.settings import settings


@click.command(cls=Command)
@click.option("--folder", type=click.Path(path_type=Path), help="Keep everything here; else a temporary folder.")
@click.option("--files", type=click.IntRange(min=1), help="Index at most so many files; default all.")
def demo(folder: Path | None, files: int | None) -> int:
    """See it all at work: index this Python's standard library, with failures, a killed worker and a replay.

    Starts a server of its own, unless --url names one. Exit code 0 only if the final check holds.
    """
    from streamjobs.demo.run import run

    with click.progressbar(length=1, label="indexed", file=sys.stderr, show_pos=True) as bar:

        def progress(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        return run(settings().flags.get("url"), folder, files=files, progress=progress, say=show.line)
