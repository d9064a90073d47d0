"""Dead jobs in bounded batches, and what came of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec

from streamjobs.operate.jobs import JobStatus
from streamjobs.protocol.intake import MAX_BATCH_BYTES, MAX_BATCH_JOBS
from streamjobs.protocol.keys import QueueKeys

T = TypeVar("T")

FOREIGN = "no job leads to this row, so somebody else wrote it: purge it"
"""Why such a row cannot be replayed."""


class Done(msgspec.Struct):
    """What came of a replay or a purge."""

    done: int = 0
    gone: int = 0
    """Replayed or purged by somebody else meanwhile."""
    conflicts: dict[str, str] = {}
    """Jobs left dead, each with the job that holds its dedupe key."""
    left: dict[str, str] = {}
    """Jobs left dead for another reason, each with that."""

    @property
    def any(self) -> bool:
        """Whether there was anything to do."""
        return bool(self.done or self.gone or self.conflicts or self.left)


Tell = Callable[[Done], None]
"""Is told after each batch what came of all so far."""


def batches(namespace: str, found: Iterable[JobStatus], most: int = 0) -> Iterator[tuple[QueueKeys, list[JobStatus]]]:
    """Cut jobs into batches of one queue, at most so many jobs (0: 500) and 1 MiB each."""
    for tag, batch in cut(found, lambda job: (job.id.partition(":")[0], len(job.body)), most):
        yield keys_of(namespace, tag), batch


def cut(things: Iterable[T], of: Callable[[T], tuple[str, int]], most: int = 0) -> Iterator[tuple[str, list[T]]]:
    """Cut things into batches of one queue, each in order. `of` gives the queue, with its partition, and the bytes."""
    piles: dict[str, list[T]] = {}
    sizes: Counter[str] = Counter()
    most = most or MAX_BATCH_JOBS
    for thing in things:
        tag, size = of(thing)
        pile = piles.setdefault(tag, [])
        if pile and (len(pile) >= most or sizes[tag] + size > MAX_BATCH_BYTES):
            yield tag, pile
            pile = piles[tag] = []
            sizes[tag] = 0
        pile.append(thing)
        sizes[tag] += size
    yield from piles.items()


def keys_of(namespace: str, tag: str) -> QueueKeys:
    """Return the keys of a queue named with its partition, `mail` or `mail/1`."""
    queue, _, partition = tag.partition("/")
    return QueueKeys(namespace, queue, int(partition or 0))
