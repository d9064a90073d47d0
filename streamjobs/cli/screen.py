"""What `stats` shows to people, as lines: what each queue holds, what came and went, and why that is not well."""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

import click

from streamjobs.cli import crew, show
from streamjobs.cli.settings import settings
from streamjobs.core.text import age, brief, count, rate, short, size, span
from streamjobs.core.thresholds import Health

if TYPE_CHECKING:
    from streamjobs.core.server import ServerFacts
    from streamjobs.operate.metrics import KindStats, Spread, Tally
    from streamjobs.operate.overview import Overview, QueueView

SLIM = 54
"""From so many columns on there is room for more than how many jobs wait, and for how long."""
USUAL = 80
"""From so many columns on there is room for rates."""
WIDE = 100
"""From so many columns on all of a queue's numbers have room, and two spaces between them."""
WIDEST = 120
"""From here on also its size, and what came lately."""
TINTS = {"degraded": "yellow", "critical": "red"}
NAME = 24
"""Columns that a queue's name may take beside its reasons."""


def overview(seen: "Overview", room: int | None = None, *, named: bool) -> list[str]:
    """Return the screen of queues; of those that were `named` also what came and went.

    Where there is `room` for so many lines only, healthy queues are left out first, and reasons last.
    """
    reasons = list(_reasons(seen))
    if not seen.queues:
        return [*heading(seen), "", *reasons]
    table = _table(seen.queues)
    if room is not None and len(table) > room - _height(reasons):
        # The worst first: what does not fit is cut from below.
        order = sorted(range(len(seen.queues)), key=lambda i: -seen.queues[i].verdict.health)
        table = [table[0], *(table[i + 1] for i in order)]
    return _screen(seen, table, [reasons, list(_trends(seen)) if named else []], room)


def _height(reasons: Sequence[str]) -> int:
    """Return how many lines a screen has beside its table."""
    return 2 + (len(reasons) + 1 if reasons else 0)


def _screen(seen: "Overview", table: Sequence[str], blocks: Iterable[Sequence[str]], room: int | None) -> list[str]:
    """Return heading, table and blocks. Of the table only as much as leaves room for the first block: reasons."""
    first, *rest = blocks
    if room is not None and len(table) > (most := max(2, room - _height(first))):
        table = [*table[: most - 1], f"… and {show.plural(len(table) - most + 1, 'row')} more"]
    lines = [*heading(seen), "", *table]
    for block in (first, *rest):
        lines += ["", *block] if block else []
    return lines


def kinds(seen: "Overview", room: int | None = None) -> list[str]:
    """Return the screen of kinds."""
    lines: list[str] = []
    rows = [row for view in seen.queues for one in view.kinds or () for row in _kind_rows(view.stats.queue, one)]
    if rows:
        lines += show.Table(*"~QUEUE ~KIND >RUNS >FAIL% TIME >MEAN >P50 >P95 >P99".split()).lines(rows)
    errors = [
        (view.stats.queue, one.kind, ", ".join(f"{name} {count(round(n))}" for name, n in one.tally.errors.items()))
        for view in seen.queues
        for one in view.kinds or ()
        if one.tally.errors
    ]
    if errors:
        lines += ["", *show.Table("~QUEUE", "~KIND", "~ERRORS").lines(errors)]
    if not rows:
        lines.append(f"nothing was counted within {seen.window.name}")
    return _screen(seen, lines, [list(_reasons(seen))], room)


def _kind_rows(queue: str, one: "KindStats") -> Iterator[tuple[str, ...]]:
    def spread(times: "Spread") -> list[str]:
        return ["-" if ms is None else span(ms) for ms in (times.mean, times.p50, times.p95, times.p99)]

    yield (queue, one.kind, short(round(one.tally.ended)), _share(one.tally), "run", *spread(one.run))
    yield ("", "", "", "", "wait", *spread(one.wait))


def workers(seen: "Overview", room: int | None = None) -> list[str]:
    """Return the screen of workers: each, and the jobs that have run for longest."""
    lines: list[str] = []
    found = seen.workers
    if found is None or not found.workers:
        lines.append("no workers")
    else:
        lines += crew.table(found, "~NAME ~HOST VERSION STATE >RUN/SLOTS >RSS >LAG >SEEN ~QUEUES")
        if running := crew.jobs(found):
            lines += ["", *running]
    return _screen(seen, lines, [list(_reasons(seen))], room)


def heading(seen: "Overview") -> list[str]:
    """Return the line above all: which server, how full it is, and its time."""
    server = seen.server
    place = settings().connections.target.text.removeprefix("redis://")
    name = f"{server.engine or 'server'} {server.version}".strip()
    parts = [f"namespace {settings().namespace}", server.eviction, _memory(server)]
    rest = "".join(f"   {part}" for part in parts if part)
    time = f"{(show.time_of(seen.at_ms) or '')[11:19]}Z"
    room = show.screen_columns() - show.width(f"{name} @ {rest}   {time}")
    # Of a long path the end says more than the beginning.
    place = place if show.width(place) <= room else "…" + place[-max(8, room - 1) :]
    return [show.clean(f"{name} @ {place}{rest}" + " " * max(3, room - show.width(place) + 3) + time)]


def _memory(server: "ServerFacts") -> str:
    if not server.used_bytes:
        return ""
    used = size(server.used_bytes)
    return f"{used} / {size(server.limit_bytes)}" if server.limit_bytes else used


def _table(views: Sequence["QueueView"]) -> list[str]:
    columns = show.screen_columns()
    # The terminal cuts what is too long, and HEALTH stands last.
    if columns < SLIM:
        headings = "~QUEUE >WAITING >OLDEST HEALTH"
        table = show.Table(*headings.split(), gap=" ", tints=TINTS)
    elif columns < USUAL:
        headings = "~QUEUE >WAITING >RUN/SLOTS >DEAD >OLDEST HEALTH"
        table = show.Table(*headings.split(), gap=" ", tints=TINTS)
    elif columns < WIDE:
        headings = "~QUEUE >WAITING >RUN/SLOTS >SCHED >RETRY >DEAD >OLDEST >IN/s >OUT/s >FAIL% HEALTH"
        table = show.Table(*headings.split(), gap=" ", tints=TINTS)
    elif columns < WIDEST:
        headings = "~QUEUE >WAITING >RUN/SLOTS >SCHED >RETRY >DEAD >OLDEST >IN/s >OUT/s >DRAIN >FAIL% HEALTH"
        table = show.Table(*headings.split(), tints=TINTS)
    else:
        headings = "~QUEUE >WAITING >RUN/SLOTS >SCHED >RETRY >DEAD >SIZE >OLDEST >IN/s >OUT/s >DRAIN >FAIL% HEALTH"
        table = show.Table(*headings.split(), tints=TINTS)
    names = [heading.lstrip("~>") for heading in headings.split()]
    return table.lines([[_cell(view, name, tight=columns < WIDE) for name in names] for view in views])


def _cell(view: "QueueView", name: str, *, tight: bool) -> str:
    """Return what stands in a column; in a tight table no number takes more than five characters but the first."""
    stats, tally = view.stats, view.tally
    number = rate if tight else short
    match name:
        case "QUEUE":
            return stats.queue + ("" if stats.slots else "*")
        case "WAITING":
            return short(stats.waiting)
        case "RUN/SLOTS":
            return f"{number(stats.running)}/{number(stats.slots)}"
        case "SCHED":
            return number(stats.scheduled)
        case "RETRY":
            return number(stats.retrying)
        case "DEAD":
            return number(stats.dead)
        case "SIZE":
            return "-" if stats.used_bytes is None else size(stats.used_bytes)
        case "OLDEST":
            return age(stats.oldest_ready_ms)
        case "IN/s":
            return rate(tally.in_per_s)
        case "OUT/s":
            return rate(tally.out_per_s)
        case "DRAIN":
            return "never" if view.drain_s == float("inf") else age(round(view.drain_s) * 1000)
        case "FAIL%":
            return _share(tally)
    return view.verdict.health.word


def _share(tally: "Tally") -> str:
    return "-" if tally.failure_rate is None else f"{100 * tally.failure_rate:.1f}"


def _reasons(seen: "Overview") -> Iterator[str]:
    """Yield why the server or a queue is not well, and what is worth knowing of one that is."""
    rows: list[tuple[str, str, list[str]]] = []
    if seen.verdict.reasons:
        rows.append(("(server)", seen.verdict.health.word, [str(reason) for reason in seen.verdict.reasons]))
    for view in seen.queues:
        if view.verdict.reasons:
            texts = [str(reason) for reason in view.verdict.reasons]
            rows.append((view.stats.queue, view.verdict.health.word, texts))
        if notes := list(_notes(view)):
            rows.append((view.stats.queue, "note", notes))
    names = min(NAME, max((show.width(name) for name, _, _ in rows), default=0))
    words = max(len(health.word) for health in Health)
    for name, word, texts in rows:
        lead = f"{show.cut(name, names):<{names}}  "
        tinted = click.style(word, fg=TINTS[word]) if word in TINTS else word
        first, *rest = _packed(texts, show.screen_columns() - len(lead) - words - 2)
        yield f"{lead}{tinted}{' ' * (words - len(word))}  {first}"
        yield from (" " * (len(lead) + words + 2) + line for line in rest)


def _notes(view: "QueueView") -> Iterator[str]:
    stats, said = view.stats, {reason.about for reason in view.verdict.reasons}
    if stats.limited and "oldest" not in said:
        command = f"streamjobs queue limit {stats.queue}"
        yield f"{count(stats.limited)} of those waiting wait for a rate or a concurrency ({command})"
    if stats.max_waiting is not None and "full" not in said and stats.waiting * 2 >= stats.max_waiting:
        yield f"{count(stats.waiting)} of {count(stats.max_waiting)} jobs wait that may"


def _packed(texts: Iterable[str], columns: int) -> list[str]:
    """Return texts as few lines, parted by semicolons. A command is never broken in two: it is to be copied."""
    lines: list[str] = []
    for text in map(show.clean, texts):
        if lines and show.width(lines[-1]) + show.width(text) + 2 <= columns:
            lines[-1] += f"; {text}"
        elif show.width(text) <= columns:
            lines.append(text)
        else:
            said, _, command = text.partition(" (streamjobs ")
            lines += wrap(said, max(20, columns), break_on_hyphens=False)
            lines += [f"(streamjobs {command}"] if command else []
    return lines


def _trends(seen: "Overview") -> Iterator[str]:
    """Yield what came and went in each queue over time."""
    back = brief(seen.window.step_ms * seen.window.steps)
    names = min(NAME, max(show.width(view.stats.queue) for view in seen.queues))
    for view in seen.queues:
        name = f"{show.cut(view.stats.queue, names):<{names}}"
        for word, values in (
            ("in", [step.in_per_s for step in view.series]),
            ("out", [step.out_per_s for step in view.series]),
        ):
            yield f"{name}  {word:<3}  {show.sparkline(values)}  {rate(max(values))}/s at most, {back}"
            name = " " * names
