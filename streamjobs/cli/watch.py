"""Show something again and again: on a terminal in place, elsewhere one after the other."""

import os
import sys
from collections.abc import Callable, Sequence
from shutil import get_terminal_size
from time import sleep
from typing import NoReturn

import click

from streamjobs.cli import show
from streamjobs.cli.endings import complain
from streamjobs.cli.settings import settings
from streamjobs.core.errors import OutcomeUnknown, Unavailable


class Screen:
    """Draws lines over those that it drew before, where that is possible, in one write: nothing flickers."""

    def __init__(self) -> None:
        self._drawn = 0
        self._live = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"

    def draw(self, lines: Sequence[str]) -> None:
        """Show lines in place of those shown before."""
        if not self._live:
            if self._drawn:
                click.echo()
            click.echo("\n".join(lines), color=settings().color)
            self._drawn = len(lines)
            return
        room = get_terminal_size((80, 24)).lines - 1
        if len(lines) > room:
            lines = [*lines[: room - 1], f"… and {show.plural(len(lines) - room + 1, 'line')} more"]
        if settings().color is False:
            lines = [click.unstyle(line) for line in lines]
        # Lines that are too long are cut by the terminal: wrapped, they would move all that follows.
        body = "".join(f"\r{line}\x1b[K\n" for line in lines)
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        sys.stdout.write(f"{up}\x1b[?7l{body}\x1b[J\x1b[?7h")
        sys.stdout.flush()
        self._drawn = len(lines)


def watch(every_s: float, look: Callable[[], Sequence[str]], tell: Callable[[], None] | None = None) -> NoReturn:
    """Look every so often and draw what comes of it, until interrupted.

    A server that is away is said and waited for: who watches wants to see it come back.

    Args:
        every_s: seconds from one look to the next.
        look: returns the lines to draw.
        tell: instead prints what there is, one after the other.
    """
    screen, lines = Screen(), ["(nothing was seen yet)"]
    while True:
        try:
            if tell:
                tell()
                sys.stdout.flush()
            else:
                lines = list(look())
                screen.draw(lines)
        except (Unavailable, OutcomeUnknown) as error:
            if tell:
                complain(f"{error}; trying on")
            else:
                screen.draw([*lines, "", click.style(show.clean(f"error: {error}; trying on"), fg="red")])
        sleep(every_s)
