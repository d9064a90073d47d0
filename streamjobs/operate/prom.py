"""What each queue holds, as metrics: from a snapshot alone, so no worker's state is needed. Pure."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from streamjobs.core.exposition import OTHER, Family, exposition
from streamjobs.operate.overview import Overview
from streamjobs.operate.stats import QueueStats, Snapshot

MOST_QUEUES = 1000
"""So many have labels of their own; any producer can make queues, and each costs a monitor memory for good."""

DIED = "dead"
"""Is told before the first death: a monitor sees no growth in what was not there."""

_HEALTH = "0 for ok, 1 for degraded, 2 for critical."
_STATES = ("waiting", "running", "scheduled", "retrying", "dead")


def families(snapshot: Snapshot, health: Mapping[str, int] | None = None) -> str:
    """Return the metrics of the queues of a snapshot, in Prometheus's text format.

    Args:
        snapshot: what there is.
        health: by queue 0 (ok), 1 (degraded) or 2 (critical), where they were judged.
    """
    queues = _labelled(snapshot.queues)
    jobs = [({"queue": one.queue, "state": state}, getattr(one, state)) for one in queues for state in _STATES]
    ages = [({"queue": one.queue}, one.oldest_ready_ms / 1000) for one in queues]
    moves = [
        ({"queue": one.queue, "move": move}, one.totals.get(move, 0))
        for one in queues
        for move in sorted({*one.totals, DIED})
    ]
    verdicts = [({"queue": one}, value) for one, value in _labelled_health(queues, health or {}).items()]
    oldest = "How long the oldest job has been ready to run without running."
    return exposition(
        [
            Family("streamjobs_queue_jobs", "gauge", "Jobs in each state.", jobs),
            _gauge("limited_jobs", "Of those waiting: jobs that wait for a rate or a concurrency.", queues, "limited"),
            Family("streamjobs_queue_oldest_ready_seconds", "gauge", oldest, ages),
            *([Family("streamjobs_queue_health", "gauge", _HEALTH, verdicts)] if verdicts else []),
            _gauge("workers", "Live workers.", queues, "workers"),
            _gauge("slots", "Jobs that live workers can run at once.", queues, "slots"),
            _gauge("paused", "1 while no job may start.", queues, "paused"),
            Family("streamjobs_queue_moves_total", "counter", "Moves of jobs since the queue was made.", moves),
        ]
    )


def judged(seen: Overview) -> str:
    """Return the metrics of the queues of an overview, their verdicts among them."""
    stats = [view.stats for view in seen.queues]
    health = {view.stats.queue: int(view.verdict.health) for view in seen.queues}
    return families(Snapshot(seen.at_ms, seen.server, stats, seen.latency_s), health)


def _gauge(name: str, help: str, queues: Iterable[QueueStats], field: str) -> Family:
    samples = [({"queue": one.queue}, float(getattr(one, field))) for one in queues]
    return Family(f"streamjobs_queue_{name}", "gauge", help, samples)


def _labelled(queues: Sequence[QueueStats]) -> list[QueueStats]:
    """Return the queues, those beyond the first thousand as one."""
    some, rest = list(queues[:MOST_QUEUES]), queues[MOST_QUEUES:]
    if not rest:
        return some
    totals: dict[str, int] = {}
    for one in rest:
        for move, count in one.totals.items():
            totals[move] = totals.get(move, 0) + count
    counts = {name: sum(getattr(one, name) for one in rest) for name in (*_STATES, "limited", "workers", "slots")}
    oldest_ms = max(one.oldest_ready_ms for one in rest)
    paused = any(one.paused for one in rest)
    other = QueueStats(OTHER, oldest_ready_ms=oldest_ms, paused=paused, totals=totals)
    return [*some, msgspec.structs.replace(other, **counts)]


def _labelled_health(queues: Sequence[QueueStats], health: Mapping[str, int]) -> dict[str, int]:
    """Return the health of each labelled queue; of those that are one, that of the worst."""
    named = {one.queue for one in queues}
    found: dict[str, int] = {}
    for queue, value in health.items():
        label = queue if queue in named else OTHER
        found[label] = max(value, found.get(label, 0))
    return found
