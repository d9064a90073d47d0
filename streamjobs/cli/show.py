"""Print: tables that fit the screen, JSON documents, and text of others made harmless."""

import json
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from math import ceil
from time import monotonic
from typing import Any

import click

from streamjobs.cli.settings import settings
from streamjobs.core.text import age as age
from streamjobs.core.text import ago as ago
from streamjobs.core.text import count as count
from streamjobs.core.text import plural as plural
from streamjobs.core.text import short as short
from streamjobs.core.text import size as size

VERSION = 1
"""Of every JSON document."""
GAP = "  "
BARS = "▁▂▃▄▅▆▇█"
PLAIN_BARS = "_.-=+*#@"
NARROWEST = 8
"""A column is not cut to less."""
SHOWN_AFTER_S = 2.0
_NOT_PLAIN = re.compile(r"[^ -~]")


def clean(text: str) -> str:
    """Return text with everything that could steer a terminal (ESC, line ends, bidi marks) written out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def width(text: str) -> int:
    """Return how many columns a terminal takes for clean text."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, columns: int) -> str:
    """Return text that takes at most so many columns; what was cut is marked by `…`."""
    if width(text) <= columns:
        return text
    while text and width(text) >= columns:
        text = text[:-1]
    return text + "…" if columns > 0 else ""


def screen_columns() -> int:
    """Return the width to print for: of the terminal, else COLUMNS, else 80."""
    return max(40, shutil.get_terminal_size((80, 24)).columns)


class Table:
    """Aligned columns. Marks before a heading: `>` stands to the right, `~` may be cut to fit the screen.

    Widths are those of the first rows printed; later ones keep them, and shift only where they must. Texts in the last
    column that `tints` has are in that colour.
    """

    def __init__(self, *headings: str, gap: str = GAP, tints: Mapping[str, str] | None = None) -> None:
        self._gap = gap
        self._tints = tints or {}
        self._right = [heading.startswith(">") for heading in headings]
        self._yields = [heading.startswith("~") for heading in headings]
        self._headings = [heading.lstrip(">~") for heading in headings]
        self._widths: list[int] = []

    def print(self, rows: Iterable[Sequence[str]]) -> None:
        """Print rows, under the headings if they are the first."""
        for text in self.lines(rows):
            click.echo(text, color=settings().color)

    def lines(self, rows: Iterable[Sequence[str]]) -> list[str]:
        """Return rows as lines with colours, under the headings if they are the first."""
        cells = [[clean(cell) for cell in row] for row in rows]
        head = []
        if not self._widths:
            columns = list(zip(self._headings, *cells, strict=True))
            self._widths = self._fitted([max(map(width, column)) for column in columns])
            head = [click.style(self._line(self._headings), bold=True)]
        return head + [self._tinted(self._line(row), row[-1]) for row in cells]

    def _tinted(self, text: str, last: str) -> str:
        colour = self._tints.get(last)
        return text.removesuffix(last) + click.style(last, fg=colour) if colour else text

    def _fitted(self, widths: list[int]) -> list[int]:
        """Return widths that fit the screen, as far as the columns that may be cut allow."""
        floors = [max(NARROWEST, width(heading)) for heading in self._headings]
        while sum(widths) + len(self._gap) * (len(widths) - 1) > screen_columns():
            able = [i for i, may in enumerate(self._yields) if may and widths[i] > floors[i]]
            if not able:
                break
            widths[max(able, key=lambda i: widths[i])] -= 1
        if self._yields[-1]:
            # Later rows may use what the first ones left free.
            widths[-1] = max(widths[-1], screen_columns() - sum(widths[:-1]) - len(self._gap) * (len(widths) - 1))
        return widths

    def _line(self, cells: Sequence[str]) -> str:
        parts = []
        for cell, columns, right, may in zip(cells, self._widths, self._right, self._yields, strict=True):
            shown = cut(cell, columns) if may else cell
            pad = " " * (columns - width(shown))
            parts.append(pad + shown if right else shown + pad)
        return self._gap.join(parts).rstrip()


def line(text: str = "") -> None:
    """Print one line of text that may come from jobs."""
    click.echo(clean(text), color=settings().color)


def paint(text: str, **style: Any) -> None:
    """Print a line of our own in colour, where colours are wanted."""
    click.echo(click.style(text, **style), color=settings().color)


def note(text: str) -> None:
    """Say something on stderr that is no data."""
    if not settings().quiet:
        click.echo(clean(text), err=True)


def sparkline(values: Sequence[float]) -> str:
    """Return a small diagram of values, in one line; from nought to the greatest of them."""
    bars = BARS if _can_print(BARS) else PLAIN_BARS
    top = max(values, default=0.0)
    # Nothing but nought is at the bottom: a trickle beside a flood is not nothing.
    return "".join(
        bars[min(len(bars) - 1, ceil(value / top * (len(bars) - 1)))] if value > 0 else bars[0] for value in values
    )


def _can_print(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


@contextmanager
def progress(length: int, label: str) -> Iterator[Callable[[int], None]]:
    """Show on a terminal's stderr how far work has come, once it takes 2 s; yields a function that is told that."""
    if not length or settings().quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda done: None
        return
    begun = monotonic()
    with ExitStack() as stack:
        bars: list[Any] = []

        def advance(done: int) -> None:
            if not bars and monotonic() - begun >= SHOWN_AFTER_S:
                bars.append(stack.enter_context(click.progressbar(length=length, label=label, file=sys.stderr)))
            for bar in bars:
                bar.update(done - bar.pos)

        yield advance


def pairs(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and values; empty values are left out."""
    shown = [(name, value) for name, value in rows if value]
    wide = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        line(f"{name.ljust(wide)}  {value}")


def time_of(ms: int) -> str | None:
    """Return an instant in RFC 3339, in UTC; None for one that is unknown, or not in the calendar."""
    if ms <= 0:
        return None
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
    except (OverflowError, ValueError, OSError):
        return None


def document(name: str, /, **fields: Any) -> None:
    """Print one JSON document, `schema` and `version` first."""
    click.echo(_json({"schema": f"streamjobs.{name}", "version": VERSION, **fields}, indent=2))


def document_line(name: str, /, **fields: Any) -> None:
    """Print one JSON document in one line, for whoever reads one after the other."""
    click.echo(_json({"schema": f"streamjobs.{name}", "version": VERSION, **fields}))


def listing(name: str, key: str, items: Iterable[Any], after: Callable[[], dict[str, Any]] = dict) -> None:
    """Print one JSON document that holds a list, an item a line, as the items come.

    `after` gives the fields that stand behind the list; it is called once the list has ended.
    """
    head = _json({"schema": f"streamjobs.{name}", "version": VERSION})
    click.echo(f"{head[:-1]},{_json(key)}:[", nl=False)
    comma = ""
    for item in items:
        click.echo(f"{comma}\n{_json(item)}", nl=False)
        comma = ","
    fields = after()
    click.echo(f"\n]{',' if fields else ''}{_json(fields)[1:]}")


def ascii_line(raw: bytes) -> None:
    """Print one JSON document as a line that no terminal and no encoding of the output changes."""
    click.echo(_NOT_PLAIN.sub(lambda found: json.dumps(found[0])[1:-1], raw.decode()))


def value(result: Any) -> None:
    """Print one value as JSON."""
    click.echo(_json(result))


def compact(result: Any) -> str:
    """Return one value as JSON."""
    return _json(result)


def _json(value: Any, indent: int | None = None) -> str:
    import msgspec

    raw = msgspec.json.encode(value)
    text = (msgspec.json.format(raw, indent=indent) if indent else raw).decode()
    if text.isascii() and "\x7f" not in text:
        return text
    # Within JSON text such characters stand in strings only, where this is another way to write them.
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def arguments(body: bytes) -> dict[str, Any]:
    """Return a job's arguments for a JSON document: as they are, or as base64 where they are no JSON."""
    import msgspec

    try:
        msgspec.json.decode(body)
        body.decode()
    except (ValueError, RecursionError):
        from base64 import b64encode

        return {"args": None, "body_base64": b64encode(body).decode()}
    return {"args": msgspec.Raw(body)}
