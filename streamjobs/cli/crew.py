"""Workers as they tell of themselves: as tables for people, as fields for programs."""

import re
from typing import TYPE_CHECKING, Any

from streamjobs.cli import show

if TYPE_CHECKING:
    from streamjobs.operate.workers import Workers, WorkerStatus

_NAME = re.compile(r"(?P<host>.+)-\d+-(?P<own>[0-9a-f]{8})\Z")
WIDE = 100
"""From so many columns on there is room for two spaces between columns."""
LONGEST = 20
"""Jobs that are shown of all that run."""


def table(found: "Workers", headings: str) -> list[str]:
    """Return workers as lines, with the columns of these headings."""
    names = [heading.lstrip("~>") for heading in headings.split()]
    rows = [[_cell(one, name, found.at_ms) for name in names] for one in found.workers]
    return show.Table(*headings.split(), gap=" " if show.screen_columns() < WIDE else show.GAP).lines(rows)


def jobs(found: "Workers") -> list[str]:
    """Return the jobs that run as lines, those first that have run for longest; nothing where none does."""
    live = [one for one in found.workers if one.live]
    told = [(max(0, one.note.at_ms - job.started_ms), _own(one), job) for one in live for job in one.note.jobs]
    if not told:
        return []
    longest = sorted(told, key=lambda each: each[0], reverse=True)[:LONGEST]
    rows = [(own, job.id, job.kind, show.age(age_ms)) for age_ms, own, job in longest]
    more = sum(one.note.running for one in live) - len(rows)
    lines = show.Table("~NAME", "ID", "~KIND", ">RUNS FOR").lines(rows)
    return [*lines, f"and {show.plural(more, 'job')} more"] if more > 0 else lines


def _own(one: "WorkerStatus") -> str:
    """Return the end of a name, which tells it from all others; the rest of it is host and process."""
    parts = _NAME.match(one.name)
    return parts["own"] if parts else one.name


def _cell(one: "WorkerStatus", name: str, now_ms: int) -> str:
    note = one.note
    match name:
        case "NAME":
            return _own(one)
        case "HOST":
            parts = _NAME.match(one.name)
            return parts["host"] if parts else note.host
        case "VERSION":
            return note.version or "-"
        case "STATE":
            return f"{one.state}{f' ({one.order})' if one.order and one.live else ''}"
        case "RUN/SLOTS":
            return f"{show.short(note.running)}/{show.short(note.slots)}" if one.told else "?"
        case "OLDEST":
            return show.age(note.at_ms - note.jobs[0].started_ms) if note.jobs else "-"
        case "RSS":
            return show.size(note.rss_bytes) if note.rss_bytes else "-"
        case "LAG":
            return f"{note.lag_ms / 1000:.1f}s" if one.told else "-"
        case "SEEN":
            return show.age((now_ms - one.seen_ms) // 1000 * 1000)
    return ",".join(one.queues)


def fields(one: "WorkerStatus") -> dict[str, Any]:
    """Return what a worker tells, for a JSON document."""
    note = one.note
    return {
        "name": one.name,
        "state": one.state,
        "order": one.order or None,
        "seen": show.time_of(one.seen_ms),
        "told": show.time_of(note.at_ms),
        "host": note.host or None,
        "pid": note.pid or None,
        "supervisor": note.supervisor or None,
        "version": note.version or None,
        "started": show.time_of(note.started_ms),
        "queues": list(one.queues),
        "slots": note.slots if one.told else None,
        "running": note.running,
        "claimed": note.claimed,
        "stuck": note.stuck,
        "jobs": [
            {"id": job.id, "kind": job.kind, "started": show.time_of(job.started_ms),
             "age_s": max(0, note.at_ms - job.started_ms) / 1000}
            for job in note.jobs
        ],
        "done": note.done,
        "failed": note.failed,
        "rss_bytes": note.rss_bytes or None,
        "lag_s": note.lag_ms / 1000 if one.told else None,
    }  # fmt: skip
