"""A chart per scenario, as SVG: a panel for each thing that was measured, a bar for each variant that has it.

A bar is the median; the thin line across its end goes from the least to the greatest repeat.
"""

from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

from .document import Document, Result
from .measure import Spread

WIDTH = 760
LABEL = 230
"""Room for the names at the left."""
VALUE = 110
"""Room for the figures at the right."""
BAR = 16
STEP = 24
TITLE = 34
OURS = "#2f6f9f"
BASE = "#b9c4cc"
_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    ' font-family="system-ui, sans-serif" font-size="12" fill="#222">'
    '<rect width="100%" height="100%" fill="#fff"/>'
)

Bar = tuple[str, Spread, str]
"""Name, figures, colour."""
Panel = tuple[str, list[Bar]]


def write(document: Document, folder: Path) -> list[Path]:
    """Write `<scenario>.svg` into a folder for each scenario that measured something; return what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Result]] = {}
    for result in document.results:
        if isinstance(result, Result) and not result.void:
            found.setdefault(result.scenario, []).append(result)
    written = []
    for scenario, results in found.items():
        path = folder / f"{scenario}.svg"
        path.write_text(draw(scenario, _foot(document), panels(results)), "utf-8")
        written.append(path)
    return written


def panels(results: Iterable[Result]) -> list[Panel]:
    """Return what is to be drawn: jobs/s first, then each figure by its name."""
    rates: list[Bar] = []
    figures: dict[str, list[Bar]] = {}
    for result in results:
        if result.jobs_per_s is not None and (result.bare_jobs_per_s is not None or not result.figures):
            rates.append((result.variant, result.jobs_per_s, OURS))
        if result.bare_jobs_per_s is not None:
            rates.append((result.base, result.bare_jobs_per_s, BASE))
        for name, figure in result.figures.items():
            figures.setdefault(name, []).append((result.variant, figure, OURS))
    return [("jobs/s", rates), *figures.items()] if rates else [*figures.items()]


def draw(title: str, foot: str, found: Iterable[Panel]) -> str:
    """Return the chart as SVG."""
    parts: list[str] = [_text(12, 26, title, size=18)]
    y = 40
    for name, bars in found:
        parts.append(_text(12, y + 20, name, size=13))
        y += TITLE
        parts += _bars(bars, y)
        y += STEP * len(bars)
    parts.append(_text(12, y + 26, foot, size=10))
    return "\n".join([_HEAD.format(width=WIDTH, height=y + 40), *parts, "</svg>"]) + "\n"


def _bars(bars: list[Bar], top: int) -> Iterator[str]:
    room = WIDTH - LABEL - VALUE
    most = max((max(figure.max, 0.0) for _, figure, _ in bars), default=0.0) or 1.0
    for row, (name, figure, colour) in enumerate(bars):
        y = top + row * STEP
        low, middle, high = (LABEL + room * max(value, 0.0) / most for value in (figure.min, figure.median, figure.max))
        yield _text(LABEL - 8, y + 12, name, anchor="end")
        yield f'<rect x="{LABEL}" y="{y}" width="{middle - LABEL:.1f}" height="{BAR}" fill="{colour}"/>'
        if high > low:
            across = y + BAR / 2
            yield f'<path d="M{low:.1f} {across}H{high:.1f}M{low:.1f} {y + 4}v8M{high:.1f} {y + 4}v8" stroke="#222"/>'
        yield _text(max(middle, high) + 6, y + 12, f"{figure.median:,.4g}" if figure.median < 1e4 else _whole(figure))


def _whole(figure: Spread) -> str:
    return f"{figure.median:,.0f}"


def _text(x: float, y: float, text: str, *, size: int = 12, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'


def _foot(document: Document) -> str:
    machine, commit = document.machine, (document.commit or "unknown")[:12]
    server = document.versions.get("server", "")
    return f"{machine.cpu}, {machine.cores} cores, {machine.python}, {server}, commit {commit}"
