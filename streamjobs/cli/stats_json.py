"""What `stats` shows to programs: docs/schemas/stats.json."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from streamjobs.cli import crew, show
from streamjobs.cli.settings import settings

if TYPE_CHECKING:
    from streamjobs.core.thresholds import Thresholds
    from streamjobs.operate.conditions import Broken
    from streamjobs.operate.health import Verdict
    from streamjobs.operate.metrics import KindStats, Spread, Tally
    from streamjobs.operate.overview import Overview, QueueView


def fields(seen: "Overview", broken: "Sequence[Broken]") -> dict[str, Any]:
    """Return the fields of the document."""
    server = seen.server
    workers = {} if seen.workers is None else {"workers": [crew.fields(one) for one in seen.workers.workers]}
    return {
        "time": show.time_of(seen.at_ms),
        "namespace": settings().namespace,
        "health": seen.health.word,
        "failed": [
            {"queue": one.queue, "condition": one.condition.text, "measured": _finite(one.measured)} for one in broken
        ],
        "window_s": seen.window.ms / 1000,
        "server": {
            "url": settings().connections.target.text,
            "engine": server.engine,
            "version": server.version,
            "eviction": server.eviction,
            "used_bytes": server.used_bytes,
            "limit_bytes": server.limit_bytes or None,
            "latency_s": round(seen.latency_s, 6),
            **_verdict(seen.verdict),
        },
        "queues": [_queue(view, seen) for view in seen.queues],
        **workers,
    }


def _queue(view: "QueueView", seen: "Overview") -> dict[str, Any]:
    stats = view.stats
    kinds = {} if view.kinds is None else {"kinds": [_kind(one) for one in view.kinds]}
    return {
        "queue": stats.queue,
        **_verdict(view.verdict),
        "waiting": stats.waiting,
        "limited": stats.limited,
        "max_waiting": stats.max_waiting,
        "running": stats.running,
        "slots": stats.slots,
        "scheduled": stats.scheduled,
        "retrying": stats.retrying,
        "dead": stats.dead,
        "oldest_ready_s": stats.oldest_ready_ms / 1000,
        "workers": stats.workers,
        "vanished": stats.vanished,
        "lease_s": stats.lease_ms / 1000 or None,
        "paused": stats.paused,
        "used_bytes": stats.used_bytes,
        "done": stats.done,
        "failed": stats.failed,
        **_rates(view.tally),
        "drain_s": _finite(view.drain_s),
        "last_1m": _rates(view.lately[0]),
        "last_5m": _rates(view.lately[1]),
        "series": {
            "step_s": seen.window.step_ms / 1000,
            "in_per_s": [round(step.in_per_s, 6) for step in view.series],
            "out_per_s": [round(step.out_per_s, 6) for step in view.series],
        },
        "totals": dict(sorted(stats.totals.items())),
        "thresholds": _thresholds(view.thresholds),
        **kinds,
    }


def _verdict(verdict: "Verdict") -> dict[str, Any]:
    reasons = [
        {"level": one.level.word, "about": one.about, "text": one.text, "command": one.command or None}
        for one in verdict.reasons
    ]
    return {"health": verdict.health.word, "reasons": reasons}


def _rates(tally: "Tally") -> dict[str, float | None]:
    share = tally.failure_rate
    return {
        "in_per_s": round(tally.in_per_s, 6),
        "out_per_s": round(tally.out_per_s, 6),
        "failure_rate": None if share is None else round(share, 6),
    }


def _thresholds(thresholds: "Thresholds") -> dict[str, Any]:
    return {name: thresholds.pair(name) for name in thresholds.__struct_fields__}


def _kind(one: "KindStats") -> dict[str, Any]:
    tally = one.tally
    return {
        "kind": one.kind,
        "enqueued": round(tally.of("enqueued")),
        "done": round(tally.of("done")),
        "failed": round(tally.failed),
        "failure_rate": _rates(tally)["failure_rate"],
        "errors": {name: round(count) for name, count in tally.errors.items()},
        "run": _spread(one.run),
        "wait": _spread(one.wait),
    }


def _spread(times: "Spread") -> dict[str, float | None]:
    def seconds(ms: float | None) -> float | None:
        return None if ms is None else round(ms / 1000, 6)

    return {
        "mean_s": seconds(times.mean),
        "p50_s": seconds(times.p50),
        "p95_s": seconds(times.p95),
        "p99_s": seconds(times.p99),
    }


def _finite(value: float) -> float | None:
    return None if value == float("inf") else round(value, 6)
