"""End jobs that have not started: those of a queue that wait, are to be retried, or scheduled.

They end as cancelled, so who waits for one is told, its dedupe key is free again, and the counts add up.
What runs is spared, also what was claimed a moment before its turn came.
"""

from collections.abc import Callable, Sequence

import msgspec

from streamjobs.client.talk import Talk
from streamjobs.core import codec
from streamjobs.operate import live
from streamjobs.operate.live import Found, Live, Selection
from streamjobs.protocol import settle
from streamjobs.protocol.keys import QueueKeys

STATES = (Live.SCHEDULED, Live.RETRYING, Live.WAITING)
"""What can be purged; what becomes due meanwhile is met again at the end."""
STEP = 100
"""Jobs in one step: about 1 ms of the server's time."""


class Purged(msgspec.Struct, frozen=True):
    """What came of a purge, or of a step of one."""

    jobs: int = 0
    """Ended as cancelled."""
    running: int = 0
    """Started meanwhile, and left running."""
    gone: int = 0
    """Ended, or moved elsewhere, meanwhile."""
    next: str = ""
    """Behind which position the next step begins; "" for none."""

    def plus(self, other: "Purged") -> "Purged":
        """Return what came of both, of which the other was the later."""
        return Purged(self.jobs + other.jobs, self.running + other.running, self.gone + other.gone, other.next)


def step(
    keys: QueueKeys, state: Live, selection: Selection, after: str, reason: str, *, limit: int = 0, spares: bool = True
) -> Talk[Purged]:
    """End some of the selected jobs behind a position, at most 100; with a limit at most so many.

    `spares`: leave running ones alone.
    """
    page = yield from live.page(keys, state, after, STEP)
    meant = [one for one in page.found if selection.means(one)]
    chosen = meant[:limit] if limit else meant
    next_ = page.next if len(chosen) == len(meant) else ""
    if not chosen:
        return Purged(next=next_)
    kept = codec.encode_value({"state": "cancelled", "reason": reason}, "reason")
    [words] = yield [settle.cancel(keys, settle.SPARING if spares else "", [_ending(one, kept) for one in chosen])]
    running = words.count("BUSY")
    gone = words.count("GONE") + words.count("DEAD")
    return Purged(len(words) - running - gone, running, gone, next_)


def _ending(found: Found, kept: bytes) -> settle.Ending:
    meta = found.meta
    return settle.Ending(b"", 0, found.local, meta.dedupe_key, meta.result_ttl_ms, kept)


def purge(
    keys: QueueKeys,
    states: Sequence[Live],
    selection: Selection,
    reason: str,
    *,
    limit: int = 0,
    spares: bool = True,
    tell: Callable[[Purged], None] = lambda so_far: None,
) -> Talk[Purged]:
    """End the selected jobs in bounded steps; each is one step of the server's, so it can be interrupted.

    Args:
        keys: of the queue.
        states: of which jobs; those in an earlier one are ended first.
        selection: which of those.
        reason: kept with the results of those that keep one.
        limit: at most so many; 0 for all.
        spares: leave running ones alone.
        tell: called after each step with what came of all so far.
    """
    whole = Purged()
    for state in states:
        after = ""
        while True:
            left = limit - whole.jobs if limit else 0
            part = yield from step(keys, state, selection, after, reason, limit=left, spares=spares)
            whole = whole.plus(part)
            tell(whole)
            after = part.next
            if limit and whole.jobs >= limit:
                return whole
            if not after:
                break
    return whole


def count(keys: QueueKeys, states: Sequence[Live], selection: Selection, limit: int = 0) -> Talk[int]:
    """Count the selected jobs, by looking at each; at most `limit` if it is not 0."""
    found = 0
    for state in states:
        after = ""
        while True:
            page = yield from live.page(keys, state, after, STEP)
            found += sum(map(selection.means, page.found))
            after = page.next
            if limit and found >= limit:
                return limit
            if not after:
                break
    return found
