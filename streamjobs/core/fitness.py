"""How fit a server is beyond what a worker insists on: how full, what it may lose, how far, whose clock is wrong."""

from collections.abc import Mapping, Sequence
from statistics import median

import msgspec

from streamjobs.core.server import About, Finding, Level, ServerFacts
from streamjobs.core.text import plural

MEMORY_WARN = 0.85
MEMORY_FAIL = 0.95
"""Parts of the memory. At the whole every enqueue fails, and only workers go on."""
LATENCY_WARN_S = 0.02
"""A round trip within one data centre takes less than a millisecond."""
CLOCK_WARN_S = 1.0
SLOW_MS = 10.0
"""A call of ours that holds the server for so long; 1 ms is usual, 5 the most that we mean to take."""


class Settings(msgspec.Struct, frozen=True):
    """Of the server's settings, those that it tells nowhere else; None where it does not say."""

    sync: str | None = None
    """`appendfsync`."""
    snapshots: str | None = None
    """`save`; "" for none."""
    least_replicas: int | None = None
    """`min-replicas-to-write`."""


def memory(facts: ServerFacts) -> Finding:
    """Judge how much room there is."""
    if not facts.used_bytes:
        return Finding(About.MEMORY, Level.UNKNOWN)
    whole, of = facts.limit_bytes, "its maxmemory"
    advice = "raise its maxmemory, or free some: old dead jobs, results kept for long, what others keep there"
    if not whole:
        whole, of = facts.machine_bytes, "its machine's, and there is no maxmemory"
        advice = "set a maxmemory below that, or the system may kill it; free some, or give it a larger machine"
    if not whole:
        return Finding(About.MEMORY, Level.OK, f"{megabytes(facts.used_bytes)}, without a limit")
    part = facts.used_bytes / whole
    what = f"{int(part * 100)} % full: {megabytes(facts.used_bytes)} of {megabytes(whole)}, {of}"
    level = Level.FAIL if part >= MEMORY_FAIL else Level.WARN if part >= MEMORY_WARN else Level.OK
    return Finding(About.MEMORY, level, what, "" if level is Level.OK else advice)


def megabytes(count: int) -> str:
    """Return a size as text."""
    return f"{count / 1_048_576:,.1f} MiB"


def persistence(facts: ServerFacts, settings: Settings) -> Finding:
    """Judge what a restart, or a crash, of the server loses; docs/guarantees.md has the measurements."""
    if facts.failing:
        what = f"the server could not write {' and '.join(facts.failing)}, and may refuse every enqueue until it can"
        return Finding(About.PERSISTENCE, Level.FAIL, what, "make room on its disk, and look at its log")
    if facts.appends is None:
        return Finding(About.PERSISTENCE, Level.UNKNOWN)
    if facts.appends:
        return _appending(settings.sync, facts.engine)
    advice = "set appendonly yes there, and appendfsync always where no job may be lost"
    if settings.snapshots == "":
        what = "none: a restart of the server loses every job"
        return Finding(About.PERSISTENCE, Level.WARN, what, advice)
    when = f" (save {settings.snapshots})" if settings.snapshots else ", or all if it makes none"
    what = f"snapshots at most: a restart or a crash loses what came since the last one{when}, and runs jobs again"
    return Finding(About.PERSISTENCE, Level.WARN, what, advice)


def _appending(sync: str | None, engine: str) -> Finding:
    if sync == "always":
        what = "append-only file, synced always: the end of the process loses nothing"
        return Finding(About.PERSISTENCE, Level.OK, what)
    if sync == "no":
        what = "append-only file, synced when the system likes: a crash may lose half a minute"
        return Finding(About.PERSISTENCE, Level.WARN, what, "set appendfsync everysec there, or always")
    unsaid = "" if sync else " (if synced every second: it does not say)"
    what = f"append-only file: a crash may lose about 2 s, and as long as the disk is behind{unsaid}"
    if engine == "valkey":
        what += '; an enqueue with durability="fsync" is confirmed before the sync here, so it may be lost as well'
    return Finding(About.PERSISTENCE, Level.OK, what)


def replicas(facts: ServerFacts, settings: Settings) -> Finding:
    """Judge what a failover loses, and whether the lack of replicas stops writes."""
    count, good = facts.replicas, facts.good_replicas
    if count is None:
        return Finding(About.REPLICAS, Level.UNKNOWN)
    least = settings.least_replicas or 0
    if good is not None and good < max(1, least):
        what = f"{good} of {count} replicas are near enough, and with fewer than {least or 'asked for'} it takes no job"
        return Finding(About.REPLICAS, Level.FAIL, what, "bring its replicas back, or lower min-replicas-to-write")
    if count == 0:
        return Finding(About.REPLICAS, Level.OK, "none: nothing takes over when this server is lost")
    if good is None:
        what = f"{count}, and none is waited for: a primary cut off from them takes jobs that a failover loses"
        advice = "set min-replicas-to-write 1 and min-replicas-max-lag 1 there, with two replicas or more"
        return Finding(About.REPLICAS, Level.WARN, what, advice)
    if count == 1:
        what = "1, and one must be near: after a failover the new primary takes no job until it has a replica"
        return Finding(About.REPLICAS, Level.WARN, what, "add a second replica")
    return Finding(About.REPLICAS, Level.OK, f"{good} of {count} near: a failover loses what they had not got yet")


def latency(round_trips_s: Sequence[float]) -> Finding:
    """Judge how far away the server is."""
    middle = median(round_trips_s)
    what = f"{middle * 1000:.1f} ms a round trip ({max(round_trips_s) * 1000:.1f} at most of {len(round_trips_s)})"
    if middle < LATENCY_WARN_S:
        return Finding(About.LATENCY, Level.OK, what)
    advice = "run workers and producers near the server; look whether it, or this machine, is overloaded"
    return Finding(About.LATENCY, Level.WARN, f"{what}: each enqueue waits for one", advice)


def clock(ahead_s: float, unsure_s: float) -> Finding:
    """Judge this machine's clock by the server's, which alone decides; known to half a round trip."""
    off = max(0.0, abs(ahead_s) - unsure_s)
    if off < CLOCK_WARN_S:
        return Finding(About.CLOCK, Level.OK, f"within {CLOCK_WARN_S:g} s of the server's")
    what = (
        f"this machine is {off:,.1f} s {'ahead of' if ahead_s > 0 else 'behind'} the server, which decides what is due"
    )
    advice = "let both keep time (NTP): instants made here, as for at=, are off by as much"
    return Finding(About.CLOCK, Level.WARN, what, advice)


def slow_log(slowest_ms: Mapping[str, Sequence[float]]) -> Finding:
    """Judge what of ours the server found slow: by script or command, how long each call took."""
    slow = {name: [ms for ms in times if ms >= SLOW_MS] for name, times in slowest_ms.items()}
    slow = {name: times for name, times in slow.items() if times}
    if not slow:
        return Finding(About.SLOW_LOG, Level.OK, "nothing of ours")
    worst = sorted(slow.items(), key=lambda item: -max(item[1]))
    told = ", ".join(f"{name} {plural(len(times), 'time')}, up to {max(times):.0f} ms" for name, times in worst[:5])
    advice = "look whether its machine is overloaded or swaps, and whether others run slow commands there"
    return Finding(About.SLOW_LOG, Level.WARN, f"it was slow with ours: {told}", advice)
