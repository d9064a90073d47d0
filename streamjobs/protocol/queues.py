"""What is said of a queue as a whole: what it costs in memory, and that it is to be forgotten."""

import msgspec

from streamjobs.protocol.calls import Call, Command, Word
from streamjobs.protocol.keys import QueueKeys, queues

MINUTES = 26 * 60 + 2
"""For so many minutes counters are kept, the one under way and the one that is about to go included."""


class Deleted(msgspec.Struct, frozen=True):
    """What came of a deletion."""

    word: str
    """OK, or why it was not done: JOBS, WORKERS, EARLY."""
    number: int
    """How many jobs or workers are there; the ms to wait."""


def delete(keys: QueueKeys, *, served: bool, gone_ms: int, clock: str = "") -> Call[Deleted]:
    """Forget a queue that holds no job.

    Args:
        keys: of the queue.
        served: do it even if workers serve it.
        gone_ms: how long ago a worker was seen that counts as gone.
        clock: for tests.
    """
    first = [keys.stream, keys.ids, keys.scheduled, keys.retries, keys.dead_ids, keys.workers]
    rest = [key for key in keys.named.values() if key not in first]
    words: list[Word] = [clock, int(served), gone_ms]
    return Call("delete", [*first, *rest], words, lambda raw: Deleted(raw[0].decode(), raw[1]))


def forget_minutes(keys: QueueKeys, now_ms: int) -> Command[int]:
    """Delete what was counted by the minute."""
    last = now_ms // 60_000
    return Command(["UNLINK", *(f"{keys.metrics}{last - n}" for n in range(-1, MINUTES))], int)


def forget_name(namespace: str, queue: str) -> Command[int]:
    """Take a queue out of the set of names."""
    return Command(["SREM", queues(namespace), queue], int)
