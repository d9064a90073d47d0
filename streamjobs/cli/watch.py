"""Show something again and again: on a terminal in place, elsewhere one after the other."""

import os
import sys
from collections.abc import Callable, Sequence
from shutil import get_terminal_size
from textwrap import wrap
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

    @property
    def room(self) -> int | None:
        """How many lines can be seen at once; None for any number."""
        return get_terminal_size((80, 24)).lines - 1 if self._live else None

    def draw(self, lines: Sequence[str]) -> None:
        """Show lines in place of those shown before."""
        room = self.room
        if room is None:
            if self._drawn:
                click.echo()
            click.echo("\n".join(lines), color=settings().color)
            self._drawn = len(lines)
            return
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


def alarm(text: str) -> list[str]:
    """Return an error as lines that a terminal does not cut."""
    return [click.style(line, fg="red") for line in wrap(show.clean(f"error: {text}"), show.screen_columns())]


def watch(
    every_s: float, look: Callable[[int | None], Sequence[str]], tell: Callable[[], None] | None = None
) -> NoReturn:
    """Look every so often and draw what comes of it, until interrupted.

    A server that is away is said and waited for: who watches wants to see it come back.

    Args:
        every_s: seconds from one look to the next.
        look: returns the lines to draw, the heading first; it is told how many can be seen at once.
        tell: instead prints what there is, one after the other.
    """
    screen, lines = Screen(), ["(nothing was seen yet)"]
    while True:
        try:
            if tell:
                tell()
                sys.stdout.flush()
            else:
                lines = list(look(screen.room))
                screen.draw(lines)
        except (Unavailable, OutcomeUnknown) as error:
            if tell:
                complain(f"{error}; trying on")
            else:
                # First: what stands last is cut where the terminal is full.
                screen.draw([lines[0], *alarm(f"{error}; trying on"), *lines[1:]])
        sleep(every_s)
