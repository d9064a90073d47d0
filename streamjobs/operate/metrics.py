"""What was counted and measured lately: rates, failures, percentiles, series. Read in bounded chunks.

The counters are per minute of the server's clock. A window ends now: of its oldest minute it takes the part that
lies in it, and of the minute that runs all that has been counted, so that a rate does not jump when a minute begins.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from streamjobs.client.talk import Leniently, Talk
from streamjobs.core.histogram import percentile
from streamjobs.core.states import DeadReason
from streamjobs.operate.replies import counted
from streamjobs.protocol import metrics
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.metrics import HOUR_MS, MINUTE_MS, WHOLE_QUEUE, ByKind

CHUNK = 300
"""Hashes in one round trip."""


class Window(msgspec.Struct, frozen=True):
    """How far back is looked, and in what steps a series goes back."""

    name: str
    ms: int
    step_ms: int
    steps: int

    @property
    def reach_ms(self) -> int:
        """How far back anything of it goes."""
        return max(self.ms, self.step_ms * self.steps)

    @property
    def by_hours(self) -> bool:
        """Whether times are read by hours: those of single minutes are kept for 2 h."""
        return self.ms > HOUR_MS


WINDOWS = {
    one.name: one
    for one in (
        Window("1m", MINUTE_MS, MINUTE_MS, 20),
        Window("5m", 5 * MINUTE_MS, MINUTE_MS, 20),
        Window("1h", HOUR_MS, 3 * MINUTE_MS, 20),
        Window("24h", 24 * HOUR_MS, HOUR_MS, 24),
    )
}
"""All that can be asked for."""


UNSTARTED = tuple(f"dead.{one}" for one in (DeadReason.EXPIRED, DeadReason.UNDECODABLE, DeadReason.UNKNOWN_KIND))
"""Deaths of jobs that never ran."""


class Tally(msgspec.Struct, frozen=True):
    """What was counted in a window; the oldest minute counts in part, so numbers are no whole ones."""

    seconds: float
    counts: dict[str, float] = {}

    def of(self, *names: str) -> float:
        """Return the sum of some counters."""
        return sum(self.counts.get(name, 0.0) for name in names)

    @property
    def in_per_s(self) -> float:
        """Jobs enqueued per second, delayed ones too."""
        return self.of("enqueued") / self.seconds

    @property
    def out_per_s(self) -> float:
        """Jobs that ended per second: done, dead or cancelled."""
        return self.of("done", "dead", "cancelled") / self.seconds

    @property
    def ready_per_s(self) -> float:
        """Jobs that became ready to run, per second."""
        return max(0.0, self.of("enqueued", "promoted", "replayed") - self.of("delayed")) / self.seconds

    @property
    def left_per_s(self) -> float:
        """Jobs per second that no longer were ready nor ran: ended, or sent to run later."""
        return (self.of("done", "dead", "cancelled") + self.of("retried", "snoozed")) / self.seconds

    @property
    def failed(self) -> float:
        """Failures of runs: retried or dead. A job that died unstarted is none."""
        return max(0.0, self.of("retried", "dead") - self.of(*UNSTARTED))

    @property
    def ended(self) -> float:
        """Starts that ended well or failed."""
        return self.of("done") + self.failed

    @property
    def failure_rate(self) -> float | None:
        """The share of those that failed; None for none."""
        return self.failed / self.ended if self.ended > 0 else None

    @property
    def errors(self) -> dict[str, float]:
        """Failures by the class of their error, the most frequent first."""
        found = {name[6:]: count for name, count in self.counts.items() if name.startswith("error.") and count > 0}
        return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


class Spread(msgspec.Struct, frozen=True):
    """How long some starts waited, or ran: ms. Percentiles are off by at most 6.25 %; None for no starts."""

    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class KindStats(msgspec.Struct, frozen=True):
    """The jobs of one kind, in a window."""

    kind: str
    tally: Tally
    run: Spread = Spread()
    wait: Spread = Spread()


def shares(now_ms: int, begin_ms: int, end_ms: int, unit_ms: int) -> Iterator[tuple[int, float]]:
    """Yield each minute (or hour: `unit_ms`) that has a part in a window, and the share of its counts that falls in it.

    `begin_ms`, `end_ms`: how long before now the window begins and ends. What is counted in a minute is taken
    to be spread evenly: over all of it, or over what has passed of it.
    """
    begin, end = now_ms - begin_ms, now_ms - end_ms
    for number in range(begin // unit_ms, now_ms // unit_ms + 1):
        starts = number * unit_ms
        passed = min(unit_ms, now_ms - starts)
        inside = min(end, starts + passed) - max(begin, starts)
        if passed <= 0:
            # Just begun: what is counted in it already is of this moment.
            yield number, 1.0 if end_ms == 0 else 0.0
        elif inside > 0:
            yield number, inside / passed


class Counters:
    """What was counted of one queue, minute by minute."""

    def __init__(self, now_ms: int, minutes: Mapping[int, ByKind]) -> None:
        self._now_ms = now_ms
        self._minutes = minutes
        self._sums = {number: _summed(kinds) for number, kinds in minutes.items()}

    @property
    def kinds(self) -> list[str]:
        """All kinds of which anything was counted."""
        return sorted({kind for kinds in self._minutes.values() for kind in kinds} - {WHOLE_QUEUE})

    def tally(self, begin_ms: int, end_ms: int = 0, kind: str | None = None) -> Tally:
        """Return what was counted from so long ago to so long ago; of one kind, or of all."""
        counts: dict[str, float] = {}
        for number, share in shares(self._now_ms, begin_ms, end_ms, MINUTE_MS):
            fields = self._sums.get(number, {}) if kind is None else self._minutes.get(number, {}).get(kind, {})
            for name, count in fields.items():
                counts[name] = counts.get(name, 0.0) + count * share
        return Tally((begin_ms - end_ms) / 1000, counts)

    def series(self, step_ms: int, steps: int) -> list[Tally]:
        """Return what was counted in steps that end now, the oldest first."""
        return [self.tally((step + 1) * step_ms, step * step_ms) for step in reversed(range(steps))]


def read_counters(queues: Sequence[QueueKeys], now_ms: int, reach_ms: int) -> Talk[list[Counters]]:
    """Read what was counted of some queues, as far back as that."""
    numbers = range((now_ms - reach_ms) // MINUTE_MS, now_ms // MINUTE_MS + 1)
    hashes = yield from _read([keys.minute(number) for keys in queues for number in numbers])
    each = len(numbers)
    parts = [hashes[at : at + each] for at in range(0, len(hashes), each)]
    return [Counters(now_ms, dict(zip(numbers, part, strict=True))) for part in parts]


def has_counted(keys: QueueKeys, kind: str, now_ms: int) -> Talk[bool]:
    """Say whether a queue has counted anything of a kind within the last 24 h."""
    [counters] = yield from read_counters([keys], now_ms, WINDOWS["24h"].reach_ms)
    return kind in counters.kinds


def read_kinds(keys: QueueKeys, counters: Counters, now_ms: int, window: Window) -> Talk[list[KindStats]]:
    """Read how long the jobs of a queue waited and ran, by kind; the kinds with the most starts first."""
    unit_ms = HOUR_MS if window.by_hours else MINUTE_MS
    parts = list(shares(now_ms, window.ms, 0, unit_ms))
    name = keys.times_of_hour if window.by_hours else keys.times
    hashes = yield from _read([name(number) for number, _ in parts])
    times: dict[str, dict[str, float]] = {}
    for (_, share), kinds in zip(parts, hashes, strict=True):
        for kind, fields in kinds.items():
            sums = times.setdefault(kind, {})
            for field, count in fields.items():
                sums[field] = sums.get(field, 0.0) + count * share
    found = []
    for kind in {*counters.kinds, *times}:
        tally, measured = counters.tally(window.ms, kind=kind), times.get(kind, {})
        if measured or any(tally.counts.values()):
            run, wait = _spread(measured, "run", "run_us", 1000), _spread(measured, "wait", "wait_ms", 1)
            found.append(KindStats(kind, tally, run, wait))
    return sorted(found, key=lambda one: (-one.tally.ended, -one.tally.of("enqueued"), one.kind))


def _read(names: Sequence[str]) -> Talk[list[ByKind]]:
    found: list[ByKind] = []
    for at in range(0, len(names), CHUNK):
        found += map(counted, (yield Leniently([metrics.read(name) for name in names[at : at + CHUNK]])))
    return found


def _summed(kinds: ByKind) -> dict[str, int]:
    sums: dict[str, int] = {}
    for fields in kinds.values():
        for name, count in fields.items():
            sums[name] = sums.get(name, 0) + count
    return sums


def _spread(fields: Mapping[str, float], name: str, total: str, per_ms: int) -> Spread:
    ran = fields.get("ran", 0.0)
    if ran <= 0:
        return Spread()
    named = ((field.removeprefix(f"{name}."), count) for field, count in fields.items())
    counts = {int(index): count for index, count in named if index.isdigit()}
    p50, p95, p99 = (_ms(percentile(counts, share), per_ms) for share in (0.5, 0.95, 0.99))
    return Spread(fields.get(total, 0.0) / ran / per_ms, p50, p95, p99)


def _ms(value: float | None, per_ms: int) -> float | None:
    return None if value is None else value / per_ms
