"""All that `stats` shows: what each queue holds, what came and went lately, and whether that is healthy. Reads only.

The cost is a fixed number of requests per queue, by kinds also per minute that is looked at, by workers also per
worker, whatever the queues hold.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from streamjobs.client.talk import Talk
from streamjobs.core.server import ServerFacts
from streamjobs.core.thresholds import Health, Thresholds
from streamjobs.operate.health import QueueFacts, Verdict, judge, judge_server
from streamjobs.operate.metrics import WINDOWS, Counters, KindStats, Tally, Window, read_counters, read_kinds
from streamjobs.operate.stats import QueueStats, snapshot
from streamjobs.operate.workers import Workers, look
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.metrics import MINUTE_MS

JUDGED_MINUTES = 5


class QueueView(msgspec.Struct, frozen=True):
    """One queue: what it holds, what was counted in the window, and the verdict."""

    stats: QueueStats
    tally: Tally
    lately: Sequence[Tally]
    """The last minute, and the last five."""
    series: Sequence[Tally]
    """The window's steps, the oldest first."""
    thresholds: Thresholds
    verdict: Verdict
    kinds: Sequence[KindStats] | None = None
    """None where they were not asked for."""

    @property
    def drain_s(self) -> float:
        """Seconds until nothing waits at the pace of the window: 0 where nothing does, infinite if that never comes."""
        if not self.stats.waiting:
            return 0.0
        if self.stats.paused or not self.stats.slots:
            # What left in this window is no pace any more.
            return math.inf
        pace = self.tally.left_per_s - self.tally.ready_per_s
        return self.stats.waiting / pace if pace > 0 else math.inf


class Overview(msgspec.Struct, frozen=True):
    """All queues and their server, as of a moment."""

    at_ms: int
    server: ServerFacts
    latency_s: float
    window: Window
    verdict: Verdict
    """On the server."""
    queues: Sequence[QueueView]
    workers: Workers | None = None
    """None where they were not asked for."""

    @property
    def health(self) -> Health:
        """The worst of all."""
        return max([self.verdict.health, *(queue.verdict.health for queue in self.queues)])


def overview(
    namespace: str,
    names: Sequence[str] = (),
    *,
    window: Window = WINDOWS["1m"],
    thresholds: Mapping[str, Any] | None = None,
    by_kind: bool = False,
    by_worker: bool = False,
) -> Talk[Overview]:
    """Look at some queues, by default at all.

    Args:
        namespace: where they are.
        names: of the queues.
        window: how far back rates, failures and times go. The verdict always takes the last 5 min.
        thresholds: those that are to hold in place of the queues' own.
        by_kind: read how long the jobs of each kind waited and ran, too.
        by_worker: read what the workers of these queues tell of themselves, too.

    Raises:
        NotFound: a queue that was named is not there.
        InvalidOption: there is no such threshold.
    """
    changes = thresholds or {}
    of_server = Thresholds().changed(changes)
    found = yield from snapshot(namespace, names)
    keys = [QueueKeys(namespace, stats.queue) for stats in found.queues]
    counted = yield from read_counters(keys, found.at_ms, max(window.reach_ms, JUDGED_MINUTES * MINUTE_MS))
    views = []
    for one, stats, counters in zip(keys, found.queues, counted, strict=True):
        kinds = None
        if by_kind:
            kinds = yield from read_kinds(one, counters, found.at_ms, window)
        views.append(_view(stats, counters, window, stats.thresholds.changed(changes), kinds))
    workers = (yield from look(namespace, names)) if by_worker else None
    verdict = judge_server(found.server, found.latency_s, of_server)
    return Overview(found.at_ms, found.server, found.latency_s, window, verdict, views, workers)


def _view(
    stats: QueueStats, counters: Counters, window: Window, thresholds: Thresholds, kinds: Sequence[KindStats] | None
) -> QueueView:
    minutes = counters.series(MINUTE_MS, JUDGED_MINUTES)
    return QueueView(
        stats,
        counters.tally(window.ms),
        [minutes[-1], counters.tally(JUDGED_MINUTES * MINUTE_MS)],
        counters.series(window.step_ms, window.steps),
        thresholds,
        judge(QueueFacts(stats, minutes), thresholds),
        kinds,
    )
