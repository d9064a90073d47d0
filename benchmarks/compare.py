"""Two documents side by side: what both measured, by how much it differs, and whether that is more than the spread."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import msgspec

from .document import Document, Result
from .measure import Spread

_ROW = "{:<38}{:>13}{:>13}{:>8}  {}"


class Unreadable(Exception):
    """A file holds no document of a benchmark; the message says which and why."""


def load(path: Path) -> Document:
    """Return the document in a file.

    Raises:
        Unreadable: there is none.
        OSError: the file cannot be read.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Document)
    except msgspec.MsgspecError as error:
        raise Unreadable(f"{path}: not what `run --json FILE` writes: {error}") from error


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that both measured."""

    scenario: str
    variant: str
    what: str
    a: Spread
    b: Spread
    by: float | None
    """The second median by the first."""
    apart: bool
    """Whether the spreads do not meet: the difference is more than noise."""


def rows(first: Document, second: Document) -> Iterator[Row]:
    """Yield all that both measured, in the order of the second; nothing of void results."""
    before = {(one.scenario, one.variant): one for one in first.results if isinstance(one, Result)}
    for b in second.results:
        if not isinstance(b, Result) or b.void:
            continue
        a = before.get((b.scenario, b.variant))
        if a is None or a.void:
            continue
        yield from _row(b, "jobs/s", a.jobs_per_s, b.jobs_per_s)
        yield from _row(b, f"of the {b.base}" if a.base == b.base else "of its base", a.ratio_spread, b.ratio_spread)
        for name, figure in b.figures.items():
            yield from _row(b, name, a.figures.get(name), figure)


def _row(result: Result, what: str, a: Spread | None, b: Spread | None) -> Iterator[Row]:
    if a is None or b is None:
        return
    by = round(b.median / a.median, 3) if a.median else None
    apart = a.max < b.min or b.max < a.min
    yield Row(scenario=result.scenario, variant=result.variant, what=what, a=a, b=b, by=by, apart=apart)


def render(first: Document, second: Document) -> str:
    """Return what both measured, as text."""
    lines = [f"A  {_head(first)}", f"B  {_head(second)}"]
    if _machine(first) != _machine(second):
        lines.append("two machines: compare the ratios, not the figures")
    found = list(rows(first, second))
    if not found:
        return "\n".join([*lines, "nothing was measured in both"]) + "\n"
    lines += ["", _ROW.format("SCENARIO", "A", "B", "B/A", "").rstrip()]
    for name, group in groupby(found, key=lambda row: f"{row.scenario} {row.variant}"):
        lines += [name, *map(_line, group)]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    what = row.what if len(row.what) <= 35 else f"{row.what[:34]}…"
    by = "" if row.by is None else f"{row.by:.2f}"
    a, b = (_number(one.median) for one in (row.a, row.b))
    return _ROW.format(f"  {what}", a, b, by, "apart" if row.apart else "").rstrip()


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _head(document: Document) -> str:
    return f"{document.started_at}  commit {(document.commit or 'unknown')[:12]}  {document.machine.cpu}"[:77]


def _machine(document: Document) -> tuple[str, int, str]:
    machine = document.machine
    return machine.cpu, machine.cores, machine.python.rpartition(".")[0]
