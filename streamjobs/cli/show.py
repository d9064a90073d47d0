"""Print: tables that fit the screen, JSON documents, and text of others made harmless."""

import json
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import click

from streamjobs.cli.settings import settings
from streamjobs.core.wording import plural as plural

VERSION = 1
"""Of every JSON document."""
GAP = "  "
NARROWEST = 8
"""A column is not cut to less."""


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

    Widths are those of the first rows printed; later ones keep them, and shift only where they must.
    """

    def __init__(self, *headings: str) -> None:
        self._right = [heading.startswith(">") for heading in headings]
        self._yields = [heading.startswith("~") for heading in headings]
        self._headings = [heading.lstrip(">~") for heading in headings]
        self._widths: list[int] = []

    def print(self, rows: Iterable[Sequence[str]]) -> None:
        """Print rows, under the headings if they are the first."""
        cells = [[clean(cell) for cell in row] for row in rows]
        if not self._widths:
            columns = list(zip(self._headings, *cells, strict=True))
            self._widths = self._fitted([max(map(width, column)) for column in columns])
            paint(self._line(self._headings), bold=True)
        for row in cells:
            click.echo(self._line(row), color=settings().color)

    def _fitted(self, widths: list[int]) -> list[int]:
        """Return widths that fit the screen, as far as the columns that may be cut allow."""
        floors = [max(NARROWEST, width(heading)) for heading in self._headings]
        while sum(widths) + len(GAP) * (len(widths) - 1) > screen_columns():
            able = [i for i, may in enumerate(self._yields) if may and widths[i] > floors[i]]
            if not able:
                break
            widths[max(able, key=lambda i: widths[i])] -= 1
        if self._yields[-1]:
            # Later rows may use what the first ones left free.
            widths[-1] = max(widths[-1], screen_columns() - sum(widths[:-1]) - len(GAP) * (len(widths) - 1))
        return widths

    def _line(self, cells: Sequence[str]) -> str:
        parts = []
        for cell, columns, right, may in zip(cells, self._widths, self._right, self._yields, strict=True):
            shown = cut(cell, columns) if may else cell
            pad = " " * (columns - width(shown))
            parts.append(pad + shown if right else shown + pad)
        return GAP.join(parts).rstrip()


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


@contextmanager
def progress(length: int, label: str) -> Iterator[Callable[[int], None]]:
    """Show on a terminal's stderr how far long work has come; yields a function that takes that number."""
    if not length or settings().quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    with click.progressbar(length=length, label=label, file=sys.stderr) as bar:
        yield lambda done: bar.update(done - bar.pos)


def pairs(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and values; empty values are left out."""
    shown = [(name, value) for name, value in rows if value]
    wide = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        line(f"{name.ljust(wide)}  {value}")


def count(number: int) -> str:
    """Return a number as people read it: 12,418."""
    return f"{number:,}"


def short(number: int) -> str:
    """Return a number that takes little room: exact below 100,000, then 124k, 1.2M, 35M, 2.1G."""
    if number < 100_000:
        return count(number)
    amount, power = number / 1000, 0
    while amount >= 999.5 and power < 2:
        amount, power = amount / 1000, power + 1
    return f"{amount:.0f}{'kMG'[power]}" if not power or amount >= 9.95 else f"{amount:.1f}{'kMG'[power]}"


def size(count_bytes: int) -> str:
    """Return a size as people read it: 512B, 1.9M, 4.0G."""
    amount, power = float(count_bytes), 0
    while amount >= 1024 and power < 4:
        amount, power = amount / 1024, power + 1
    return f"{amount:.0f}{'BKMGT'[power]}" if not power or amount >= 100 else f"{amount:.1f}{'BKMGT'[power]}"


def ago(ms: int) -> str:
    """Return how long ago something was: 0s ago, 4s ago, 3h05m ago."""
    return f"{age(max(0, ms) // 1000 * 1000).replace('.0', '')} ago"


def age(ms: int) -> str:
    """Return a time span as people read it: 0s, 4.2s, 18m02s, 3h05m, 12d04h."""
    total = max(0, ms) // 1000
    minutes, hours, days = total // 60, total // 3600, total // 86_400
    if total < 60:
        return f"{max(0, ms) / 1000:.1f}s" if 0 < ms < 10_000 else f"{total}s"
    if minutes < 60:
        return f"{minutes}m{total % 60:02}s"
    if hours < 24:
        return f"{hours}h{minutes % 60:02}m"
    return f"{days}d{hours % 24:02}h"


def time_of(ms: int) -> str | None:
    """Return an instant in RFC 3339, in UTC; None for one that is unknown, or not in the calendar."""
    if ms <= 0:
        return None
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
    except (OverflowError, ValueError, OSError):
        return None


def document(name: str, **fields: Any) -> None:
    """Print one JSON document, `schema` and `version` first."""
    click.echo(_json({"schema": f"streamjobs.{name}", "version": VERSION, **fields}, indent=2))


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
    except ValueError:
        from base64 import b64encode

        return {"args": None, "body_base64": b64encode(body).decode()}
    return {"args": msgspec.Raw(body)}
