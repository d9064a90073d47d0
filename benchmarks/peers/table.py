"""The peers as text: one table for a terminal, one for a page, each in two parts, adding and running."""

from collections.abc import Iterator

from ..measure import Spread
from ..table import head
from .document import Document, Row

PARTS = {
    "added, jobs/s": {
        "one": "ONE",
        "one_awaited": "AWAITED",
        "together": "TOGETHER",
        "bulk": "BULK",
        "bytes_per_waiting_job": "BYTES",
    },
    "run, jobs/s": {
        "drain": "DRAIN",
        "two": "TWO",
        "plain": "PLAIN",
        "latency_p50_ms": "P50 MS",
        "latency_p99_ms": "P99 MS",
    },
}
_PAGE = {
    "one": "one by one",
    "one_awaited": "one by one, awaited",
    "together": "100 at once",
    "bulk": "in bulk",
    "bytes_per_waiting_job": "bytes per waiting job",
    "drain": "drained",
    "two": "by two workers",
    "plain": "by plain functions",
    "latency_p50_ms": "ms to the start, p50",
    "latency_p99_ms": "ms to the start, p99",
}
_ROW = "{:<14}{:<8}{:>11}{:>11}{:>11}{:>11}{:>11}"
_LEGEND = (
    # mark, what it says, which of a row's fields has it
    ("+", "better than streamjobs in the same configuration", "better"),
    ("?", "far slower than this adapter is known to be; does not count", "doubtful"),
    ("-", "it has no such thing: the document says why", "lacking"),
    ("!", "it did not do that as it should: the document says how that ended", "broken"),
)


def render(document: Document) -> str:
    """Return the table as text of 80 columns: medians."""
    lines = [*head(document.machine, document.versions, document.commit)]
    lines.append(f"medians of {document.repeats} repeats")
    for title, columns in PARTS.items():
        lines += ["", title, _ROW.format("PEER", "CONFIG", *columns.values())]
        for row in document.rows:
            if row.failed:
                lines.append(f"{row.peer:<14}{row.config:<8}{row.failed}"[:80])
            else:
                lines.append(_ROW.format(row.peer, row.config, *(_cell(row, what) for what in columns)))
    marks = [f"{mark}: {said}" for mark, said, field in _LEGEND if any(getattr(row, field) for row in document.rows)]
    return "\n".join(line.rstrip() for line in [*lines, *([""] if marks else []), *marks]) + "\n"


def _cell(row: Row, what: str) -> str:
    marks = "".join(mark for mark, _, field in _LEGEND if what in getattr(row, field))
    figure = row.median(what)
    # Digits stay below each other.
    return f"{marks}{' ' * (not marks)}" if figure is None else f"{_number(figure, what)}{marks or ' '}"


def _number(figure: float, what: str) -> str:
    return f"{figure:,.2f}" if what.endswith("_ms") else f"{figure:,.0f}"


def markdown(document: Document) -> str:
    """Return the same for a page, with the spreads; bold is what is better than ours."""
    return "\n\n".join("\n".join(_markdown(document, list(columns))) for columns in PARTS.values()) + "\n"


def _markdown(document: Document, columns: list[str]) -> Iterator[str]:
    yield f"| peer | {' | '.join(_PAGE[what] for what in columns)} |"
    yield "|---|" + "---:|" * len(columns)
    for row in document.rows:
        name = f"{row.peer} {row.version}, {row.config}"
        if row.failed:
            yield f"| {name} | {row.failed} |" + " |" * (len(columns) - 1)
            continue
        yield f"| {name} | {' | '.join(_spread(row, what) for what in columns)} |"


def _spread(row: Row, what: str) -> str:
    median = row.median(what)
    if median is None:
        return "broken" if what in row.broken else "-" if what in row.lacking else ""
    figure: Spread | float | None = getattr(row, what)
    text = _number(median, what)
    if what in row.better:
        text = f"**{text}**"
    if isinstance(figure, Spread):
        text += f" ({_number(figure.min, what)}-{_number(figure.max, what)})"
    ratio = f", {row.of_bare[what].median:.2g} of bare" if what in row.of_bare else ""
    return f"{text}{ratio}{' doubtful' if what in row.doubtful else ''}"
