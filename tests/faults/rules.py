"""What a history is judged by, and what a verdict says."""

import msgspec

from tests.faults import clock
from tests.faults.audit import Live, Row, Snapshot
from tests.faults.history import Fault
from tests.faults.stories import Stories, Story

PEACEFUL = ("SIGTERM", "SIGINT")


class Limits(msgspec.Struct, frozen=True):
    """What a kind allows its jobs."""

    max_attempts: int = 8
    max_crashes: int = 3


class Pace(msgspec.Struct, frozen=True):
    """In any time t at most t * per_s + burst starts."""

    per_s: float
    burst: int


class Rules(msgspec.Struct, frozen=True):
    """The settings of a run. Times that are None are not judged."""

    limits: dict[str, Limits] = {}
    """Per kind; for others the defaults."""
    places: dict[str, int] = {}
    """How many runs at once each limit allows, for each of its keys, by the name that handlers give it."""
    paces: dict[str, Pace] = {}
    """How many starts in a time, likewise."""
    slots_s: dict[str, float] = {}
    """How far apart the slots are of each cron that leaves none out."""
    lease_s: float | None = None
    sweep_s: float = 0.0
    slack_s: float = 1.0
    """What a busy machine may add to any limit of time."""
    alone_s: float = 30.0
    """How long a suspect may wait for a process of its own, beyond lease and sweep."""
    heal_s: float | None = None
    """After a fault has ended, a ready job starts within this time."""
    start_s: float | None = None
    """Any job starts within this time of being ready; only for runs without a backlog."""
    grace_s: float | None = None
    """A process that got SIGTERM is gone after so long."""
    early_ms: float = 1.0
    steady_clock: bool = True
    """The server's clock was not shifted: delays can be compared with our own."""
    drained: bool = True
    """The run waited until nothing was left to do."""
    park_ms: int = 24 * 3_600_000

    def limits_of(self, kind: str) -> Limits:
        return self.limits.get(kind, _DEFAULT)


_DEFAULT = Limits()


class Finding(msgspec.Struct, frozen=True):
    """One breach of an invariant."""

    invariant: str
    job: str
    """Empty for what concerns no single job."""
    text: str
    events: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.invariant}: {self.job + ': ' if self.job else ''}{self.text}", *self.events]
        return "\n    ".join(lines)


class Evidence:
    """All that the judges look at."""

    def __init__(self, stories: Stories, snapshot: Snapshot, rules: Rules) -> None:
        self.stories, self.snapshot, self.rules = stories, snapshot, rules
        self.jumps: list[Fault] = []
        """When the server's clock was set; known once the calls have been judged."""
        self.live: dict[str, list[Live]] = {}
        for live in snapshot.live:
            self.live.setdefault(live.job, []).append(live)
        self.dead: dict[str, list[Row]] = {}
        for row in snapshot.dead:
            self.dead.setdefault(row.job, []).append(row)

    def disturbed(self, pid: int, since: float, until: float) -> bool:
        """Say whether something befell a process in this time, or in the lease before; a stop in peace is nothing."""
        since -= self.rules.lease_s or 0.0
        signals = any(
            one.pid == pid and since <= one.at <= until and one.name not in PEACEFUL for one in self.stories.signals
        )
        return signals or any(
            fault.pid in (0, pid) and fault.since <= until and since <= fault.at for fault in self.stories.faults
        )

    def find_jumps(self) -> None:
        """Find when the server's clock was set, now that each call has its job."""
        if self.rules.steady_clock:
            self.jumps = list(clock.jumps(self.stories.fates))
            self.stories.faults += self.jumps

    def steady(self, since: float, until: float) -> bool:
        """Say whether the server's clock kept pace with ours all this time."""
        return self.rules.steady_clock and not any(one.since <= until and since <= one.at for one in self.jumps)

    def touched(self, story: Story) -> bool:
        """Say whether something of a job was acknowledged in a time whose acknowledgements may be lost."""
        losses = self.stories.losses
        if not losses:
            return False
        spans = [(move.event.sent, move.event.at) for move in story.moves]
        if story.fate:
            spans += [(story.fate.called.at, answer.at) for answer in story.fate.answers]
        return any(loss.since <= at and sent <= loss.at for loss in losses for sent, at in spans)
