"""Live jobs, a page at a time: those that run, wait, or are scheduled, in the order in which they start.

What a page costs depends on its size and not on what the queue holds. A job that moves while pages are
read may be missed, or seen twice; one that stays where it is is seen once.
"""

from collections.abc import Sequence
from enum import StrEnum
from heapq import merge
from itertools import zip_longest
from typing import Any

import msgspec

from streamjobs.client.talk import Leniently, Talk
from streamjobs.core import codec, job
from streamjobs.core.errors import InvalidOption, NotFound
from streamjobs.core.job import FRESH, Meta
from streamjobs.core.names import is_local_id
from streamjobs.core.states import State
from streamjobs.operate import jobs
from streamjobs.operate.jobs import JobStatus, read_meta
from streamjobs.operate.replies import must, or_else
from streamjobs.protocol import pages, views
from streamjobs.protocol.keys import PARKED, RELEASED, QueueKeys

PAGE = 100
"""Jobs in one reply; their arguments can be 256 KiB each."""
LOOK = 10_000
"""Jobs that one listing looks at, however many it finds."""


class Live(StrEnum):
    """The states of live jobs as operators ask for them."""

    RUNNING = "running"
    WAITING = "waiting"
    RETRYING = "retrying"
    SCHEDULED = "scheduled"


class Found(msgspec.Struct, frozen=True):
    """One job on a page: where it stands there, and what is known of it at no further cost."""

    position: str
    local: str
    kind: str
    meta: Meta = FRESH


class Page(msgspec.Struct, frozen=True):
    """Some jobs, and behind which position the next page begins; "" where there is none."""

    found: list[Found]
    next: str


class Selection(msgspec.Struct, frozen=True):
    """Which live jobs are meant; empty fields select all."""

    kinds: tuple[str, ...] = ()
    since_ms: int = 0
    until_ms: int = 0
    """Both are instants of the server's clock, and included; what counts is when the job was enqueued."""

    def means(self, found: Found) -> bool:
        """Say whether a job is one of them."""
        if self.kinds and found.kind not in self.kinds:
            return False
        # A member of the sets that is not ours has no time in its name.
        enqueued_ms = job.enqueued_ms(found.local) if is_local_id(found.local) else 0
        return enqueued_ms >= self.since_ms and (not self.until_ms or enqueued_ms <= self.until_ms)


def page(keys: QueueKeys, state: Live, after: str = "", most: int = PAGE) -> Talk[Page]:
    """Read the jobs of a queue in a state behind a position: running and waiting ones by when they became ready,
    others by when they are due.
    """
    match state:
        case Live.RUNNING:
            return (yield from _running(keys, after or pages.FIRST, most))
        case Live.WAITING:
            return (yield from _waiting(keys, after or pages.FIRST, most))
        case Live.RETRYING:
            return (yield from _due(keys, keys.retries, after, most))
        case Live.SCHEDULED:
            return (yield from _due(keys, keys.scheduled, after, most))


def _running(keys: QueueKeys, after: str, most: int) -> Talk[Page]:
    [names] = yield Leniently([pages.holders(keys)])
    workers = [name for name in or_else(names, []) if name not in (RELEASED, PARKED)]
    replies = yield Leniently([pages.held(keys, name, after, most) for name in workers])
    ids = list(merge(*(or_else(reply, []) for reply in replies), key=_order))[:most]
    found = yield from _named(keys, ids)
    return Page(found, ids[-1] if len(ids) == most else "")


def _waiting(keys: QueueKeys, after: str, most: int) -> Talk[Page]:
    """Read what was given back or waits for a limit, and what was not delivered yet."""
    asides = [pages.held(keys, name, after, most) for name in (RELEASED, PARKED)]
    group, config, *held = yield Leniently([views.groups(keys), views.table(keys.config), *asides])
    delivered = views.delivered(or_else(group, views.Group()), must(config))
    [fresh] = yield [pages.entries(keys, max(after, delivered, key=_order), most)]
    entries = {entry.id: entry for entry in fresh}
    ids = list(merge(*(or_else(reply, []) for reply in held), entries, key=_order))[:most]
    found = yield from _named(keys, ids, entries)
    return Page(found, ids[-1] if len(ids) == most else "")


def _named(keys: QueueKeys, ids: Sequence[str], read: dict[str, pages.Entry] | None = None) -> Talk[list[Found]]:
    """Return what lies at these entries, those left out that are gone; some may have been read already."""
    entries = dict(read or {})
    missing = [one for one in ids if one not in entries]
    replies = yield [pages.entry(keys, one) for one in missing]
    entries |= {entry.id: entry for reply in replies for entry in reply}
    return [_found(entries[one]) for one in ids if one in entries]


def _found(entry: pages.Entry) -> Found:
    meta = read_meta(entry.meta)
    # What somebody else wrote there may be no id.
    local = meta.id if is_local_id(meta.id) else entry.id
    return Found(entry.id, local, entry.kind, meta)


def _due(keys: QueueKeys, key: str, after: str, most: int) -> Talk[Page]:
    begin, behind = 0, (0, "")
    if after:
        at, _, local = after.partition("/")
        behind = int(at), local
        rank, before = yield [pages.rank(key, local), pages.due_before(key, behind[0])]
        # Where it is gone, those due at the same instant are told apart by their names, as the server does.
        begin = before if rank is None else rank + 1
    while True:
        [rows] = yield [pages.due(key, begin, most)]
        fresh = [row for row in rows if (row.at_ms, row.job) > behind]
        if fresh or len(rows) < most:
            break
        # All of these were seen: to go on behind the last of them would show those between it and `behind` again.
        begin += most
    next_ = f"{rows[-1].at_ms}/{rows[-1].job}" if len(rows) == most else ""
    rows = fresh
    [envelopes] = (yield [pages.envelopes(keys, [row.job for row in rows])]) if rows else [[]]
    pairs = zip(rows, envelopes, strict=True)
    return Page([_unpacked(row, raw) for row, raw in pairs if raw is not None], next_)


def _unpacked(row: pages.Due, raw: bytes) -> Found:
    position = f"{row.at_ms}/{row.job}"
    try:
        kind, _, meta = codec.split_envelope(raw)
    except ValueError:
        # Not ours; it goes dead when it is due.
        return Found(position, row.job, "")
    return Found(position, row.job, kind.decode("utf-8", "replace"), read_meta(meta))


def _order(entry: str) -> tuple[int, int]:
    ms, _, seq = entry.partition("-")
    return int(ms), int(seq or 0)


class Cursor(msgspec.Struct, frozen=True):
    """Where a listing stands: behind a position among the jobs of a queue in a state."""

    state: Live
    queue: str
    position: str = ""

    @classmethod
    def of(cls, text: str) -> "Cursor":
        """Read what `str` has written.

        Raises:
            InvalidOption: it is no such text.
        """
        state, _, rest = text.partition("/")
        queue, _, position = rest.partition("/")
        at, _, local = position.partition("/")
        try:
            cursor = cls(Live(state), queue, position)
            _ = position and (int(at) if local else _order(at))
        except ValueError:
            raise InvalidOption(
                f"{text!r:.80} is no place in a listing: take what the page before ended with"
            ) from None
        return cursor

    def __str__(self) -> str:
        return f"{self.state}/{self.queue}/{self.position}"


class Listing(msgspec.Struct, frozen=True):
    """Some live jobs, and where the next listing goes on; "" where nothing can be left."""

    jobs: list[JobStatus]
    next: str = ""
    looked: int = 0
    """How many were looked at."""


def listing(
    namespace: str,
    queues: Sequence[str],
    states: Sequence[Live],
    selection: Selection,
    *,
    after: str = "",
    limit: int = PAGE,
    look: int = LOOK,
) -> Talk[Listing]:
    """Read live jobs: state by state and queue by queue as they are given, in each those first that start first.

    At most `limit` jobs, and at most about `look` are looked at for that.

    Raises:
        InvalidOption: `after` is no place in this listing.
    """
    found: list[JobStatus] = []
    looked = 0
    parts = _parts(queues, states, after)
    for part, following in zip_longest(parts, parts[1:]):
        keys, position = QueueKeys(namespace, part.queue), part.position
        while True:
            here = yield from page(keys, part.state, position)
            looked += len(here.found)
            fits = [one for one in here.found if selection.means(one)]
            meant = fits[: limit - len(found)]
            found += yield from _looked_up(keys, part.state, meant)
            position = here.next if len(meant) == len(fits) else meant[-1].position
            if len(found) >= limit or looked >= look:
                next_ = Cursor(part.state, part.queue, position) if position else following
                return Listing(found, str(next_ or ""), looked)
            if not position:
                break
    return Listing(found, looked=looked)


def _parts(queues: Sequence[str], states: Sequence[Live], after: str) -> list[Cursor]:
    """Return where each part of a listing begins."""
    parts = [Cursor(state, queue) for state in states for queue in queues]
    if after:
        begin = Cursor.of(after)
        at = next((i for i, one in enumerate(parts) if (one.state, one.queue) == (begin.state, begin.queue)), -1)
        if at < 0:
            raise InvalidOption(f"{after!r:.80} is no place in this listing: ask for the same states and queues again")
        parts[: at + 1] = [begin]
    return parts


def _looked_up(keys: QueueKeys, state: Live, meant: Sequence[Found]) -> Talk[list[JobStatus]]:
    """Return these jobs in full; those left out that have left the state meanwhile."""
    replies: list[Any] = yield Leniently([jobs.lookup(keys, one.local) for one in meant])
    return [status for reply in replies if (status := _still(reply, state)) is not None]


def _still(reply: Any, state: Live) -> JobStatus | None:
    if isinstance(reply, NotFound):
        return None
    status: JobStatus = must(reply)
    return status if live_state(status) == state else None


def live_state(status: JobStatus) -> str:
    """Return the state of a job as operators ask for it."""
    retrying = status.state is State.SCHEDULED and status.retrying
    return Live.RETRYING if retrying else status.state.value
