"""The results as text for people: aligned, at most 80 columns; of duels ours above the bare loop."""

from collections.abc import Iterable, Iterator, Mapping
from textwrap import wrap

from streamjobs.core.text import plural

from .document import Document, Machine, Result, Soak
from .measure import Spread

WIDTH = 80
MOST_FINDINGS = 20
_ROW = "{:<21}{:>30}{:>9}{:>9}  {}"


def render(document: Document) -> str:
    """Return the whole document as text."""
    lines = [*head(document.machine, document.versions, document.commit)]
    duels = [result for result in document.results if isinstance(result, Result)]
    if duels:
        lines += ["CLIENT and SERVER: microseconds of CPU time per job", ""]
        lines.append(_ROW.format("SCENARIO", "JOBS/S (MIN-MAX)", "CLIENT", "SERVER", "RATIO"))
    for result in duels:
        lines += _void(result) if result.void else _rows(result)
    for soak in document.results:
        lines += _soak(soak) if isinstance(soak, Soak) else ()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def head(machine: Machine, versions: Mapping[str, str], commit: str | None) -> Iterator[str]:
    """Yield where figures come from."""
    parts = [machine.cpu, f"{machine.cores} cores", f"load {machine.load_1m}", machine.system, machine.python]
    parts += [f"{name} {found}" for name, found in versions.items()]
    yield from wrap(", ".join(parts), WIDTH)
    yield f"commit {commit or 'unknown'}"


def _rows(result: Result) -> Iterable[str]:
    name = f"{result.scenario} {result.variant}"
    yield _row(name, result.jobs_per_s, result.client_us_per_job, result.server_us_per_job, _ratio(result))
    size = plural(result.repeats, "repeat") + (f" of {plural(result.jobs, 'job')}" if result.jobs else "")
    if result.bare_jobs_per_s is not None:
        bare = (result.bare_jobs_per_s, result.bare_client_us_per_job, result.bare_server_us_per_job)
        yield _row(f"  {result.base}", *bare, "DOUBTFUL" if result.baseline_doubtful else "")
    for what, figure in result.figures.items():
        yield f"  {_figure(figure)} {what}"
    memory = "" if result.bytes_per_waiting_job is None else f"{result.bytes_per_waiting_job} bytes per waiting job; "
    yield f"  {memory}{size}"


def _figure(figure: Spread) -> str:
    if figure.min == figure.max:
        return f"{figure.median:,.4g}"
    return f"{figure.median:,.4g} ({figure.min:,.4g}-{figure.max:,.4g})"


def _row(name: str, rate: Spread | None, client_us: float | None, server_us: float | None, last: str) -> str:
    return _ROW.format(name, _rate(rate), _number(client_us), _number(server_us), last)


def _void(result: Result) -> Iterable[str]:
    yield f"{result.scenario} {result.variant}"
    yield f"  VOID: {result.void}"


def _soak(soak: Soak) -> Iterator[str]:
    yield ""
    yield f"{soak.scenario} {soak.variant}: {soak.seconds:g} s of faults, seed {soak.seed}"
    for names in (
        "jobs least_jobs_per_s dead unknown",
        "lost invented stuck",
        "duplicated reclaimed refused",
        "duplicates_refused limited slots effects_skipped",
        "kills pauses cuts flushes restarts stops",
    ):
        yield "  " + "  ".join(f"{name} {getattr(soak, name):,}" for name in names.split())
    after = f" after a {soak.longest_recovery_after}" if soak.longest_recovery_after else ""
    yield f"  longest recovery {soak.longest_recovery_s:.2f} s{after}"
    for text in soak.wrong[:MOST_FINDINGS]:
        yield from wrap(text.partition("\n")[0], WIDTH, initial_indent="  WRONG: ", subsequent_indent="    ")


def _rate(rate: Spread | None) -> str:
    return f"{rate.median:,.0f} ({rate.min:,.0f}-{rate.max:,.0f})" if rate else ""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _ratio(result: Result) -> str:
    return "" if result.ratio_to_bare is None else f"{result.ratio_to_bare:.2f}"
