"""The peers as text: one table for a terminal, one for a page."""

from collections.abc import Iterator

from ..measure import Spread
from ..table import head
from .document import Document, Row

WAYS = ("one", "one_awaited", "together", "bulk", "drain")
_ROW = "{:<14}{:<8}{:>8}{:>9}{:>10}{:>9}{:>9}{:>8}  {}"
_TITLES = ("PEER", "CONFIG", "ONE", "AWAITED", "TOGETHER", "BULK", "DRAIN", "BYTES", "")


def render(document: Document) -> str:
    """Return the table as text of 80 columns: medians, in jobs/s."""
    lines = [*head(document.machine, document.versions, document.commit)]
    lines += [f"medians of {document.repeats} repeats, in jobs/s", "", _ROW.format(*_TITLES)]
    for row in document.rows:
        if row.failed:
            lines.append(f"{row.peer:<14}{row.config:<8}{row.failed}"[:80])
        else:
            memory = "" if row.bytes_per_waiting_job is None else f"{row.bytes_per_waiting_job:,.0f}"
            figures = [_median(getattr(row, way)) for way in WAYS]
            lines.append(_ROW.format(row.peer, row.config, *figures, memory, "?" if row.doubtful else ""))
    if any(row.doubtful for row in document.rows):
        lines.append("?: far slower than this adapter is known to be; does not count")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _median(figure: Spread | None) -> str:
    return f"{figure.median:,.0f}" if figure else ""


def markdown(document: Document) -> str:
    """Return the same for a page, with the spreads."""
    return "\n".join(_markdown(document)) + "\n"


def _markdown(document: Document) -> Iterator[str]:
    yield "| peer | one by one | one by one, awaited | 100 at once | in bulk | drained | bytes per waiting job |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for row in document.rows:
        name = f"{row.peer} {row.version}, {row.config}"
        if row.failed:
            yield f"| {name} | {row.failed} | | | | | |"
            continue
        figures = " | ".join(_spread(row, way) for way in WAYS)
        yield f"| {name} | {figures} | {row.bytes_per_waiting_job or 0:,.0f} |"


def _spread(row: Row, way: str) -> str:
    figure: Spread | None = getattr(row, way)
    if figure is None:
        return ""
    doubt = " doubtful" if way in row.doubtful else ""
    ratio = f", {row.of_bare[way].median:.2g} of bare" if way in row.of_bare else ""
    return f"{figure.median:,.0f} ({figure.min:,.0f}-{figure.max:,.0f}){ratio}{doubt}"
