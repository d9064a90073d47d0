"""Dead jobs in bounded batches, and what came of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec

from streamjobs.operate.jobs import JobStatus
from streamjobs.protocol.keys import QueueKeys

MOST = 500
MOST_BYTES = 1024 * 1024


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
    most = most or MOST
    piles: dict[str, list[JobStatus]] = {}
    sizes: Counter[str] = Counter()
    for job in found:
        tag = job.id.partition(":")[0]
        pile = piles.setdefault(tag, [])
        if pile and (len(pile) >= most or sizes[tag] + len(job.body) > MOST_BYTES):
            yield keys_of(namespace, tag), pile
            pile = piles[tag] = []
            sizes[tag] = 0
        pile.append(job)
        sizes[tag] += len(job.body)
    for tag, pile in piles.items():
        yield keys_of(namespace, tag), pile


def keys_of(namespace: str, tag: str) -> QueueKeys:
    """Return the keys of a queue named with its partition, `mail` or `mail/1`."""
    queue, _, partition = tag.partition("/")
    return QueueKeys(namespace, queue, int(partition or 0))
