"""Delete a queue, and say before what goes with it."""

import msgspec

from streamjobs.client.talk import Pause, Talk
from streamjobs.core.errors import Refused
from streamjobs.operate import dead, selection
from streamjobs.operate.live import Live, Selection
from streamjobs.operate.purge import STATES, purge
from streamjobs.operate.queues import known
from streamjobs.operate.scan import Scan
from streamjobs.operate.stats import LIVE_MS, QueueStats, snapshot
from streamjobs.protocol import crons, lanes, queues, upkeep
from streamjobs.protocol.keys import QueueKeys

ROUNDS = 3
"""How often a queue is emptied, into which new jobs come meanwhile."""
LONGEST_MS = 5_000
"""So long it is waited until the last id is old enough; it is a second, unless the server's clock was set back."""
REASON = "its queue was deleted"
_FORCE = "delete it all the same with --force (force=True in code)"


class Contents(msgspec.Struct, frozen=True):
    """What goes with a queue."""

    stats: QueueStats
    limits: int
    """Set at run time."""
    crons: int
    """Whose standing is kept."""

    @property
    def jobs(self) -> int:
        """Live and dead ones."""
        now = self.stats
        return now.waiting + now.running + now.retrying + now.scheduled + now.dead

    @property
    def parts(self) -> list[tuple[int, str]]:
        """What there is of which, named in the singular; what there is none of is left out."""
        now = self.stats
        told = [
            (now.waiting, "waiting job"),
            (now.running, "running job"),
            (now.retrying, "retrying job"),
            (now.scheduled, "scheduled job"),
            (now.dead, "dead job"),
            (self.limits, "run-time limit"),
            (self.crons, "cron"),
        ]
        return [(number, noun) for number, noun in told if number]


def contents(namespace: str, queue: str) -> Talk[Contents]:
    """Find out what goes with a queue.

    Raises:
        NotFound: there is no such queue.
        Refused: a key of it is of a wrong type, so what goes with it cannot be said.
    """
    keys = yield from known(namespace, queue)
    now = yield from snapshot(namespace, [queue])
    if key := now.queues[0].unreadable:
        raise Refused(f"queue {queue}: {key} is of a wrong type: move it away first (RENAME)")
    overrides, rows = yield [lanes.overrides(keys), crons.rows(keys)]
    return Contents(now.queues[0], len(overrides), len(rows))


def delete(namespace: str, queue: str, *, force: bool = False) -> Talk[None]:
    """Delete a queue: all its keys that have a name, and its name. Its jobs end as cancelled, its dead ones are purged.

    Args:
        namespace: of the queue.
        queue: its name.
        force: delete it with its jobs, those that run included, and even if workers serve it: they make it anew.

    Raises:
        NotFound: there is no such queue.
        Refused: it holds jobs or is served, and is not to be deleted all the same; or new jobs keep coming.
    """
    keys = yield from known(namespace, queue)
    rounds = ROUNDS if force else 1
    while True:
        if force:
            yield from _empty(keys)
        deleted = yield from _try(keys, force)
        rounds -= 1
        if deleted.word != "JOBS" or not rounds:
            break
    if deleted.word != "OK":
        raise _refused(queue, deleted, force)
    [now_ms] = yield [upkeep.server_time()]
    # The name goes last: who is interrupted before that finds the queue, and can delete it again.
    yield [queues.forget_minutes(keys, now_ms)]
    yield [queues.forget_name(namespace, queue)]


def _try(keys: QueueKeys, force: bool) -> Talk[queues.Deleted]:
    call = queues.delete(keys, served=force, gone_ms=LIVE_MS)
    [deleted] = yield [call]
    if deleted.word == "EARLY" and deleted.number <= LONGEST_MS:
        yield Pause(deleted.number / 1000)
        [deleted] = yield [call]
    found: queues.Deleted = deleted
    return found


def _empty(keys: QueueKeys) -> Talk[None]:
    yield from purge(keys, [*STATES, Live.RUNNING], Selection(), REASON, spares=False)
    yield from dead.purge(keys.namespace, Scan([keys], selection.Selection()))


def _refused(queue: str, why: queues.Deleted, force: bool) -> Refused:
    match why.word:
        case "JOBS" if force:
            text = "new jobs keep coming; stop those who send them first"
        case "JOBS":
            text = f"it holds jobs ({why.number}): let them end, purge them, or {_FORCE}"
        case "WORKERS":
            text = f"workers serve it ({why.number}): stop them, or {_FORCE}"
        case _:
            text = f"its last id lies ahead of the server's clock; try again in {why.number / 1000:.0f} s"
    return Refused(f"queue {queue} is not deleted: {text}")
