"""`streamjobs queue show`: everything about one queue on one screen."""

from typing import TYPE_CHECKING, Any

import click

from streamjobs.cli import params, show
from streamjobs.cli.commands import Command
from streamjobs.cli.endings import FAILED, Failed
from streamjobs.cli.settings import settings

if TYPE_CHECKING:
    from streamjobs.operate.limits import LimitStatus
    from streamjobs.operate.one_queue import OneQueue
    from streamjobs.operate.stats import QueueStats

LIMIT_HEADINGS = ("LIMIT", "~KIND", "KEY", "~TO", "~SET BY", ">WAITING")


@click.command("show", cls=Command)
@click.argument("name", type=params.queue, metavar="QUEUE")
def show_(name: str) -> None:
    """Show everything about a queue: counts, limits, crons, workers, and the memory of its keys."""
    from streamjobs.client.talk import talk
    from streamjobs.operate.one_queue import one_queue

    executor, _ = settings().reach()
    found = talk(executor, one_queue(settings().namespace, name))
    if settings().as_json:
        show.document("queue.show", **_fields(found))
    else:
        show.pairs(_about(found))
        for title, rows in _tables(found).items():
            if rows:
                show.line()
                show.Table(*title.split("|")).print(rows)
    if key := found.stats.unreadable:
        raise Failed(f"{key} is of a wrong type, and what it should hold counts as 0 (streamjobs doctor)", FAILED)


def limit_cells(one: "LimitStatus") -> tuple[str, ...]:
    """Return a limit as a row under `LIMIT_HEADINGS`."""
    by = f"operator (code: {one.code})" if one.code else "operator" if one.by_operator else "code"
    return one.limits, one.kind or "all", one.key, str(one), by, show.count(one.waiting)


def _about(found: "OneQueue") -> list[tuple[str, str]]:
    now = found.stats
    limited = f", {show.count(now.limited)} of them for a limit" if now.limited else ""
    rows = [
        ("queue", now.queue),
        ("state", _state(now)),
        ("lease", show.age(now.lease_ms) if now.lease_ms else "not set: no worker came yet"),
        ("waiting", show.count(now.waiting) + limited),
        ("running", f"{show.count(now.running)} of {show.plural(now.slots, 'slot')}"),
        ("retrying", show.count(now.retrying)),
        ("scheduled", show.count(now.scheduled)),
        ("dead", show.count(now.dead)),
        ("oldest ready", show.age(now.oldest_ready_ms)),
        ("counted", ", ".join(f"{show.count(number)} {word}" for word, number in sorted(now.totals.items()))),
    ]
    if found.memory is not None:
        rows.append(("memory", f"{show.size(sum(found.memory.values()))}, without the keys of single jobs"))
    return rows


def _state(now: "QueueStats") -> str:
    if now.paused:
        return "paused"
    if not now.workers:
        return "open, but no worker is subscribed"
    return "open" if now.slots else "open, but all its workers are quiet"


def _tables(found: "OneQueue") -> dict[str, list[tuple[str, ...]]]:
    memory = sorted((found.memory or {}).items(), key=lambda item: -item[1])
    return {
        "|".join(LIMIT_HEADINGS): [limit_cells(one) for one in found.limits],
        "~CRON|~SCHEDULE|>NEXT|STATE": [
            (one.name, one.schedule, _until(one.next_ms(found.at_ms) - found.at_ms), "paused" if one.paused else "ok")
            for one in found.crons
        ],
        "~WORKER|STATE|>RUN/SLOTS|>SEEN": [
            (one.name, one.state, f"{one.note.running}/{one.note.slots}", show.ago(found.at_ms - one.seen_ms))
            for one in found.workers
        ],
        "KEY|>MEMORY": [(name, show.size(size)) for name, size in memory],
    }


def _until(ms: int) -> str:
    return show.age(ms // 1000 * 1000) if ms > 0 else "-"


def _fields(found: "OneQueue") -> dict[str, Any]:
    import msgspec

    now, at_ms = found.stats, found.at_ms
    return {
        "queue": now.queue,
        "time": show.time_of(at_ms),
        "paused": now.paused,
        "lease_s": now.lease_ms / 1000 or None,
        **{name: getattr(now, name) for name in ("waiting", "limited", "running", "slots")},
        **{name: getattr(now, name) for name in ("retrying", "scheduled", "dead")},
        "oldest_ready_s": now.oldest_ready_ms / 1000,
        "totals": dict(sorted(now.totals.items())),
        "limits": [msgspec.structs.asdict(one) for one in found.limits],
        "crons": [
            {"name": one.name, "schedule": one.schedule, "next": show.time_of(one.next_ms(at_ms)),
             "paused": one.paused, "workers": one.workers}
            for one in found.crons
        ],
        "workers": [
            {"name": one.name, "state": one.state, "seen": show.time_of(one.seen_ms),
             "slots": one.note.slots if one.told else None, "running": one.note.running,
             "version": one.note.version or None}
            for one in found.workers
        ],
        "memory": found.memory,
        "memory_bytes": None if found.memory is None else sum(found.memory.values()),
    }  # fmt: skip
