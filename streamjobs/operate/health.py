"""Whether a queue is healthy, and why not: facts in, a verdict out. Pure.

Each check looks at one cause and gives a reason or none. The worst reason is the verdict, and stands first; of
equally bad ones the cause stands before what follows from it.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from streamjobs.core import server
from streamjobs.core.server import ServerFacts
from streamjobs.core.text import age, brief, count, plural, rate, size, span
from streamjobs.core.thresholds import Health, Thresholds
from streamjobs.operate.metrics import Tally
from streamjobs.operate.stats import QueueStats

FORECAST_S = 3600.0
"""Falling behind is said when the age of the oldest job will pass a limit within this time."""
LEAST_GROWTH = 10
"""Jobs by which a backlog must have grown, so that single ones are not taken for a trend."""
LEAST_ENDED = 20
"""Starts that must have ended, so that single failures are not taken for a rate."""


class Reason(msgspec.Struct, frozen=True):
    """One thing that is not as it should be."""

    level: Health
    about: str
    """A word for programs."""
    text: str
    command: str = ""
    """What shows more of it, or helps; "" for none."""

    def __str__(self) -> str:
        return f"{self.text} ({self.command})" if self.command else self.text


class Verdict(msgspec.Struct, frozen=True):
    """How a queue or a server is, and why it is not better: the worst first."""

    reasons: tuple[Reason, ...] = ()

    @property
    def health(self) -> Health:
        return max((reason.level for reason in self.reasons), default=Health.OK)


class QueueFacts(msgspec.Struct, frozen=True):
    """What is known of a queue when it is judged."""

    stats: QueueStats
    minutes: Sequence[Tally] = ()
    """What was counted in each of the last 5 minutes, the oldest first; none where nothing is known."""

    @property
    def lately(self) -> Tally:
        """What was counted in all of them."""
        names = {name for step in self.minutes for name in step.counts}
        sums = {name: sum(step.of(name) for step in self.minutes) for name in names}
        return Tally(sum(step.seconds for step in self.minutes) or 1.0, sums)

    @property
    def backlog(self) -> bool:
        """Whether there is anything that a worker should be at."""
        stats = self.stats
        return stats.waiting > 0 or stats.oldest_ready_ms > 0 or (stats.running > 0 and not stats.workers)


Check = Callable[[QueueFacts, Thresholds], Reason | None]


def judge(facts: QueueFacts, thresholds: Thresholds) -> Verdict:
    """Return the verdict on a queue."""
    if key := facts.stats.unreadable:
        # What follows from counts that could not be had is no reason.
        text = f"unreadable: {key} is of a wrong type"
        return Verdict((Reason(Health.CRITICAL, "unreadable", text, "streamjobs doctor"),))
    return _verdict(check(facts, thresholds) for check in CHECKS)


def judge_server(facts: ServerFacts, latency_s: float, thresholds: Thresholds) -> Verdict:
    """Return the verdict on the server; `latency_s` is how long it took for its quickest answer."""
    return _verdict([_eviction(facts), _memory(facts, thresholds), _latency(latency_s, thresholds)])


def _verdict(reasons: Iterable[Reason | None]) -> Verdict:
    found = [reason for reason in reasons if reason and reason.level]
    return Verdict(tuple(sorted(found, key=lambda reason: -reason.level)))


def _waited(stats: QueueStats, thresholds: Thresholds) -> Health:
    return thresholds.level("oldest", stats.oldest_ready_ms / 1000)


def _paused(facts: QueueFacts, thresholds: Thresholds) -> Reason | None:
    if not facts.stats.paused:
        return None
    # It is why the oldest job waits: as bad as that, and said before it.
    level = max(Health.DEGRADED, _waited(facts.stats, thresholds))
    return Reason(level, "paused", "paused", f"streamjobs queue resume {facts.stats.queue}")


def _no_worker(facts: QueueFacts, thresholds: Thresholds) -> Reason | None:
    stats = facts.stats
    if stats.workers or not facts.backlog:
        return None
    text = "no worker is subscribed"
    if stats.vanished:
        text += f", {plural(stats.vanished, 'worker')} vanished within 10m"
    return Reason(Health.CRITICAL, "no_worker", text, f"streamjobs worker -A APP -Q {stats.queue}")


def _quiet(facts: QueueFacts, thresholds: Thresholds) -> Reason | None:
    stats = facts.stats
    if not stats.workers or stats.slots or not facts.backlog:
        return None
    text = f"all {stats.workers} workers are quiet" if stats.workers > 1 else "its only worker is quiet"
    return Reason(Health.CRITICAL, "quiet", text, "streamjobs workers quiet NAME --undo")


def _oldest(facts: QueueFacts, thresholds: Thresholds) -> Reason | None:
    stats = facts.stats
    level = _waited(stats, thresholds)
    limit = brief(round(thresholds.passed("oldest", stats.oldest_ready_ms / 1000) * 1000))
    text = f"oldest ready job has waited {age(stats.oldest_ready_ms)} (limit {limit})"
    if stats.limited:
        text += f", {count(stats.limited)} wait for a rate or a concurrency"
        return Reason(level, "oldest", text, f"streamjobs queue limit {stats.queue}")
    if stats.slots and stats.running >= stats.slots:
        text += f", all {plural(stats.slots, 'slot')} are busy" if stats.slots > 1 else ", its one slot is busy"
    return Reason(level, "oldest", text)


def _falling_behind(facts: QueueFacts, thresholds: Thresholds) -> Reason | None:
    stats, lately = facts.stats, facts.lately
    came, left = lately.ready_per_s, lately.left_per_s
    grown = (came - left) * lately.seconds
    growing = [step.ready_per_s > step.left_per_s for step in facts.minutes]
    # A burst makes up to three of the minutes that slide over it grow: nearly all must, and the last one.
    steady = growing and growing[-1] and growing.count(False) <= len(growing) // 5
    if stats.paused or not stats.slots or not steady or grown < LEAST_GROWTH or stats.waiting < grown / 2:
        return None
    text = f"falling behind: {rate(came)}/s come, {rate(left)}/s go"
    limit_s = next(
        (bound for bound in thresholds.pair("oldest") if bound and stats.oldest_ready_ms < bound * 1000), None
    )
    if limit_s is not None:
        # Who comes now finds the backlog grown by what came meanwhile and did not go.
        left_s = (limit_s - stats.oldest_ready_ms / 1000) / (1 - left / came)
        if left_s > FORECAST_S:
            return None
        text += f"; its oldest job will have waited {brief(round(limit_s * 1000))} in {age(round(left_s) * 1000)}"
    return Reason(Health.DEGRADED, "falling_behind", text, f"streamjobs stats {stats.queue} --by kind")


def _waiting(facts: QueueFacts, thresholds: Thresholds) -> Reason | None:
    stats = facts.stats
    level = thresholds.level("waiting", stats.waiting)
    limit = round(thresholds.passed("waiting", stats.waiting))
    return Reason(level, "waiting", f"{plural(stats.waiting, 'job')} waiting (limit {count(limit)})")


def _full(facts: QueueFacts, thresholds: Thresholds) -> Reason | None:
    stats = facts.stats
    if stats.max_waiting is None or stats.waiting < stats.max_waiting:
        return None
    text = f"full: {count(stats.waiting)} of {count(stats.max_waiting)} wait, more are refused"
    return Reason(Health.DEGRADED, "full", text, f"streamjobs queue limit {stats.queue}")


def _failures(facts: QueueFacts, thresholds: Thresholds) -> Reason | None:
    lately = facts.lately
    share = lately.failure_rate
    if share is None or lately.ended < LEAST_ENDED:
        return None
    text = f"{share:.0%} of {count(round(lately.ended))} runs failed within {_within(facts)}"
    text += f" (limit {thresholds.passed('failures', share):.0%})"
    if error := next((name for name in lately.errors if name != "expired"), ""):
        text += f", most by {error}"
    level = thresholds.level("failures", share)
    return Reason(level, "failures", text, f"streamjobs stats {facts.stats.queue} --by kind")


def _unknown_kinds(facts: QueueFacts, thresholds: Thresholds) -> Reason | None:
    # Each job is parked again after 60 s at the latest: less than a minute says nothing of those parked before.
    parked = round(max((step.of("snoozed.parks") for step in facts.minutes[-2:]), default=0.0))
    if not parked:
        return None
    text = f"jobs of kinds that no worker here knows: put off {plural(parked, 'time')} in a minute"
    return Reason(
        Health.DEGRADED, "unknown_kinds", text, f"streamjobs job list -Q {facts.stats.queue} --state scheduled"
    )


def _crashes(facts: QueueFacts, thresholds: Thresholds) -> Reason | None:
    vanished = facts.stats.vanished
    level, text = thresholds.level("crashes", vanished), f"{plural(vanished, 'worker')} vanished within 10m"
    if not (poisoned := round(facts.lately.of("dead.crash_limit"))):
        return Reason(level, "crashes", text)
    killed = f"{plural(poisoned, 'job')} died within {_within(facts)} of having killed workers"
    return Reason(
        max(level, Health.DEGRADED),
        "crashes",
        f"{text}; {killed}" if level else killed,
        f"streamjobs dead list -Q {facts.stats.queue} --reason crash_limit",
    )


def _lost(facts: QueueFacts, thresholds: Thresholds) -> Reason | None:
    lost = round(facts.lately.of("lost"))
    lease = f" its lease ({brief(facts.stats.lease_ms)})" if facts.stats.lease_ms else " its lease"
    text = f"{plural(lost, 'job')} ended too late within {_within(facts)}: a worker stands still for longer than{lease}"
    return Reason(thresholds.level("lost", lost), "lost", text)


def _dead(facts: QueueFacts, thresholds: Thresholds) -> Reason | None:
    dead, more = facts.stats.dead, round(facts.lately.of("dead"))
    text = plural(dead, "dead job") + (f", {count(more)} died within {_within(facts)}" if more else "")
    level = thresholds.level("dead", dead)
    return Reason(level, "dead", text, f"streamjobs dead groups -Q {facts.stats.queue}")


CHECKS: Sequence[Check] = (
    *(_paused, _no_worker, _quiet, _oldest, _waiting, _full, _falling_behind),
    *(_unknown_kinds, _crashes, _failures, _lost, _dead),
)


def _within(facts: QueueFacts) -> str:
    return brief(round(facts.lately.seconds * 1000))


def _eviction(facts: ServerFacts) -> Reason | None:
    finding = server.eviction(facts)
    level = {server.Level.FAIL: Health.CRITICAL, server.Level.WARN: Health.DEGRADED}.get(finding.level, Health.OK)
    return Reason(level, "eviction", str(finding))


def _memory(facts: ServerFacts, thresholds: Thresholds) -> Reason | None:
    if not facts.limit_bytes:
        return None
    share = facts.used_bytes / facts.limit_bytes
    text = f"{share:.0%} of its memory is used ({size(facts.used_bytes)} of {size(facts.limit_bytes)})"
    if facts.eviction == server.KEEPS:
        text += "; when it is full, enqueues fail"
    return Reason(thresholds.level("memory", share), "memory", text)


def _latency(latency_s: float, thresholds: Thresholds) -> Reason | None:
    text = f"it takes {span(latency_s * 1000)} for an answer"
    text += f" (limit {span(thresholds.passed('latency', latency_s) * 1000)})"
    return Reason(thresholds.level("latency", latency_s), "latency", text)
