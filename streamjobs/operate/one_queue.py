"""Everything about one queue: what it holds, how it is set, who serves it, and what its keys take."""

import msgspec

from streamjobs.client.talk import Leniently, Talk
from streamjobs.core.errors import Rejected
from streamjobs.operate import crons, limits, stats, workers
from streamjobs.operate.crons import CronStatus
from streamjobs.operate.limits import LimitStatus
from streamjobs.operate.queues import known
from streamjobs.operate.replies import must
from streamjobs.operate.stats import QueueStats
from streamjobs.operate.workers import WorkerStatus
from streamjobs.protocol import views


class OneQueue(msgspec.Struct, frozen=True):
    """One queue, as of a moment."""

    at_ms: int
    stats: QueueStats
    limits: list[LimitStatus]
    crons: list[CronStatus]
    workers: list[WorkerStatus]
    memory: dict[str, int] | None
    """Bytes by key, those with a name of their own only; None where the server does not tell."""


def one_queue(namespace: str, queue: str) -> Talk[OneQueue]:
    """Read everything about a queue; the cost grows with its workers, and not with what it holds.

    Raises:
        NotFound: there is no such queue.
    """
    keys = yield from known(namespace, queue)
    now = yield from stats.snapshot(namespace, [queue])
    set_ = yield from limits.current(keys)
    scheduled = yield from crons.look(namespace, now.at_ms, [queue])
    served = yield from workers.look(namespace, [queue])
    sizes = yield Leniently([views.memory(name) for name in keys.named.values()])
    memory = None
    if not any(isinstance(size, Rejected) for size in sizes):
        pairs = zip(keys.named, map(must, sizes), strict=True)
        memory = {name: size for name, size in pairs if size}
    return OneQueue(now.at_ms, now.queues[0], set_, scheduled, served.workers, memory)
