"""How much there is: counts per state, ages, workers and totals of each queue. Reads only.

The cost is a fixed number of commands per queue, in two round trips, whatever the queues hold: O(1) each, one
O(workers).
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from time import perf_counter
from typing import Any

import msgspec

from streamjobs.client.talk import Leniently, Talk
from streamjobs.core.errors import Rejected
from streamjobs.core.numbers import whole
from streamjobs.core.server import ServerFacts
from streamjobs.core.thresholds import Thresholds, stored
from streamjobs.operate.queues import no_queue
from streamjobs.operate.replies import must, of_wrong_type, or_else
from streamjobs.protocol import config, server, upkeep, views
from streamjobs.protocol.calls import Command
from streamjobs.protocol.keys import PARKED, RELEASED, QueueKeys
from streamjobs.protocol.workers import KEEP_MS

LIVE_MS = 15_000
"""A worker not seen for so long counts as gone; a live one shows itself every 5 s."""


def live_ones(workers: Mapping[str, tuple[int, str]], now_ms: int) -> dict[str, str]:
    """Return those of a queue's workers that were seen lately, each with its note."""
    return {name: note for name, (at_ms, note) in workers.items() if now_ms - at_ms <= LIVE_MS}


class QueueStats(msgspec.Struct, frozen=True):
    """One queue, as of a moment; the counts are exact when nothing moves."""

    queue: str
    waiting: int = 0
    running: int = 0
    """Claimed by workers, those read ahead included."""
    limited: int = 0
    """Of those waiting: they wait for a rate or a concurrency."""
    slots: int = 0
    scheduled: int = 0
    retrying: int = 0
    dead: int = 0
    oldest_ready_ms: int = 0
    """How long the oldest job has been ready to run without running; 0 for none."""
    workers: int = 0
    """Live ones."""
    vanished: int = 0
    """Workers that were last seen within the last 10 min, and have gone without a farewell."""
    lease_ms: int = 0
    """0 before the first worker has come."""
    paused: bool = False
    max_waiting: int | None = None
    """How many jobs may wait before an enqueue is refused; None for any number."""
    used_bytes: int | None = 0
    """Memory that the jobs take which are there, dead ones too: an estimate; None where the server does not say."""
    thresholds: Thresholds = Thresholds()
    """As the workers' code has them."""
    totals: dict[str, int] = {}
    """Moves since the queue was made, by their words."""
    unreadable: str = ""
    """A key that is of a wrong type: what it should hold counts as nothing here; "" where all could be read."""

    @property
    def done(self) -> int:
        """Jobs that ended well, since the queue was made."""
        return self.totals.get("done", 0)

    @property
    def failed(self) -> int:
        """Failures since the queue was made, retried or dead."""
        return self.totals.get("retried", 0) + self.totals.get("dead", 0)


class Snapshot(msgspec.Struct, frozen=True):
    """Everything that `stats` shows."""

    at_ms: int
    server: ServerFacts
    queues: list[QueueStats]
    latency_s: float = 0.0
    """The quickest answer that the server gave."""


def snapshot(namespace: str, names: Sequence[str] = ()) -> Talk[Snapshot]:
    """Read the stats of some queues, by default of all.

    Raises:
        NotFound: a queue that was named is not there.
    """
    asked = perf_counter()
    known, now_ms, told = yield Leniently([views.queue_names(namespace), upkeep.server_time(), server.info()])
    answered_s = perf_counter() - asked
    known, now_ms = must(known), must(now_ms)
    keys = [QueueKeys(namespace, name) for name in names or known]
    asks = [_requests(one) for one in keys]
    replies = iter((yield Leniently(request for some in asks for request in some)))
    parts = [_Replies(one, some, list(islice(replies, len(some)))) for one, some in zip(keys, asks, strict=True)]
    asked = perf_counter()
    first = yield Leniently(views.first_after(one, part.delivered) for one, part in zip(keys, parts, strict=True))
    answered_s = min(answered_s, perf_counter() - asked) if keys else answered_s
    found = [part.stats(one.queue, now_ms, head) for one, part, head in zip(keys, parts, first, strict=True)]
    for stats in found:
        if stats.queue not in known and msgspec.structs.replace(stats, used_bytes=0) == QueueStats(stats.queue):
            raise no_queue(namespace, stats.queue, known)
    return Snapshot(now_ms, server.facts(told), found, answered_s)


def _requests(keys: QueueKeys) -> list[Command[Any]]:
    return [
        views.length(keys.stream),
        views.groups(keys),
        views.members(keys.scheduled),
        views.members(keys.retries),
        views.length(keys.dead),
        upkeep.workers(keys),
        views.table(keys.totals),
        views.table(keys.config),
        views.first_due(keys.scheduled),
        views.first_due(keys.retries),
        views.oldest_pending(keys),
        views.oldest_pending(keys, RELEASED),
        views.oldest_pending(keys, PARKED),
        views.aside(keys),
        views.memory(keys.stream),
        views.memory(keys.bodies),
        views.memory(keys.dead),
    ]


NOTHING: Sequence[Any] = (0, views.Group(), 0, 0, 0, {}, {}, {}, 0, 0, "", "", "", views.Aside(), None, None, None)
"""What keys of a wrong type count for, request by request."""


def _key(request: Command[Any], keys: QueueKeys) -> str:
    return next(str(word) for word in request.words if str(word).startswith(keys.base))


class _Replies:
    """The replies to the requests of one queue."""

    def __init__(self, keys: QueueKeys, requests: Sequence[Command[Any]], replies: Sequence[Any]) -> None:
        wrong = [of_wrong_type(one) for one in replies]
        bad = [_key(request, keys) for request, one in zip(requests, wrong, strict=True) if one]
        # Where nobody can count, all else goes on: totals of a wrong type are no reason to distrust the rest.
        self.unreadable = next((key for key in bad if key != keys.totals), "")
        replies = [nothing if no else one for one, no, nothing in zip(replies, wrong, NOTHING, strict=True)]
        (
            length, group, scheduled, retrying, dead, workers, totals, config, due, due_retry,
            oldest, oldest_released, oldest_parked, aside, *memory,
        ) = replies  # fmt: skip
        self.length = must(length)
        self.scheduled, self.retrying, self.dead = must(scheduled), must(retrying), must(dead)
        self.workers, self.totals = must(workers), must(totals)
        self.config: dict[str, str] = must(config)
        self.due = [must(due), must(due_retry)]
        self.group = or_else(group, views.Group())
        self.oldest = or_else(oldest, "")
        self.oldest_aside = [or_else(oldest_released, ""), or_else(oldest_parked, "")]
        self.aside = or_else(aside, views.Aside())
        self.delivered = views.delivered(self.group, self.config)
        # Some servers do not know the command, some users may not use it.
        self.used_bytes = sum(memory) if all(isinstance(one, int) for one in memory) else None

    def stats(self, queue: str, now_ms: int, first: Any) -> QueueStats:
        first = "" if self.unreadable and isinstance(first, Rejected) else must(first)
        running = max(0, self.group.pending - self.aside.released - self.aside.parked)
        live = list(live_ones(self.workers, now_ms).values())
        silent_ms = [now_ms - at_ms for at_ms, _ in self.workers.values()]
        # What nobody alive holds is backlog, and its age is that of the oldest ready job.
        entries = [first, *self.oldest_aside, "" if live else self.oldest]
        ready_ms = [int(entry.partition("-")[0]) for entry in entries if entry]
        ready_ms += [due_ms for due_ms in self.due if due_ms]
        return QueueStats(
            queue,
            waiting=max(0, self.length - running),
            running=running,
            limited=self.aside.parked,
            slots=sum(int(note) for note in live if note.isdigit()),
            scheduled=self.scheduled,
            retrying=self.retrying,
            dead=self.dead,
            oldest_ready_ms=max(0, now_ms - min(ready_ms)) if ready_ms else 0,
            workers=len(live),
            vanished=sum(LIVE_MS < ms <= KEEP_MS for ms in silent_ms),
            lease_ms=whole(self.config.get("lease_ms", "")),
            paused="paused" in self.config,
            max_waiting=config.max_waiting_in(self.config),
            used_bytes=self.used_bytes,
            thresholds=stored(self.config.get(config.THRESHOLDS, "")),
            totals={name: whole(value) for name, value in self.totals.items()},
            unreadable=self.unreadable,
        )
