"""Which of several queues are read, and how much of each: by their weights, or in strict order.

An order is asked before each read. It says what to ask of which queue, is sent how much came, and may ask on
while there is room. Where nothing came, the worker waits on the server for all queues at once.
"""

from collections.abc import Generator, Sequence
from time import monotonic
from typing import Protocol, TypeAlias

from streamjobs.worker.execution import WorkerQueue

Asks: TypeAlias = Generator[list[tuple[WorkerQueue, int]], list[int], None]
"""Yields queues, each with the most entries to read of it, and is sent how many came of each."""

PASSED_READS = 16
PASSED_S = 1.0
"""Under a strict order, a queue that was passed over so often and so long has a quarter of one read."""
RETRY_READS = 8
"""A queue that gave less than was asked of it is asked again after so many reads, or when no other has work."""


class Order(Protocol):
    """Divides the room of a read among queues."""

    def asks(self, queues: Sequence[WorkerQueue], room: int) -> Asks:
        """Say what to read of these queues into this room, which is at least 1."""
        ...


class Shares:
    """Each queue has its weight's share while it has work; what it does not need is the others'."""

    def __init__(self) -> None:
        self._credit: dict[WorkerQueue, float] = {}
        self._dry: set[WorkerQueue] = set()
        self._reads = 0

    def asks(self, queues: Sequence[WorkerQueue], room: int) -> Asks:
        self._reads += 1
        if self._reads % RETRY_READS == 0 or self._dry.issuperset(queues):
            self._dry.clear()
        asked = self._divide([queue for queue in queues if queue not in self._dry], room)
        came = yield asked
        for (queue, most), count in zip(asked, came, strict=True):
            self._credit[queue] -= count
            if count < most:
                # An empty queue saves nothing up, else it would hold up the others later.
                self._credit[queue] = 0.0
                self._dry.add(queue)

    def _divide(self, queues: list[WorkerQueue], room: int) -> list[tuple[WorkerQueue, int]]:
        whole = sum(queue.weight for queue in queues)
        for queue in queues:
            self._credit[queue] = self._credit.get(queue, 0.0) + room * queue.weight / whole
        shares: dict[WorkerQueue, int] = {}
        left = room
        for queue in sorted(queues, key=lambda queue: -self._credit[queue]):
            shares[queue] = min(left, max(0, int(self._credit[queue])))
            left -= shares[queue]
        # Parts of one add up to what is left: the next in turn has it.
        shares[next((queue for queue, most in shares.items() if not most), queues[0])] += left
        return [(queue, most) for queue, most in shares.items() if most]


class Strict:
    """A queue is read when those before it have no more to give; one that is passed over for long ages."""

    def __init__(self) -> None:
        self._asked: dict[WorkerQueue, tuple[int, float]] = {}
        """The read, and the time, at which each queue was last asked."""
        self._reads = 0

    def asks(self, queues: Sequence[WorkerQueue], room: int) -> Asks:
        self._reads += 1
        aged = [queue for queue in queues if self._is_aged(queue)]
        for queue in aged[:1]:
            room -= yield from self._ask(queue, max(1, room // 4))
        for queue in queues:
            if room <= 0:
                return
            room -= yield from self._ask(queue, room)

    def _is_aged(self, queue: WorkerQueue) -> bool:
        read, at = self._asked.setdefault(queue, (self._reads, monotonic()))
        return self._reads - read > PASSED_READS and monotonic() - at > PASSED_S

    def _ask(self, queue: WorkerQueue, most: int) -> Generator[list[tuple[WorkerQueue, int]], list[int], int]:
        self._asked[queue] = (self._reads, monotonic())
        [came] = yield [(queue, most)]
        return came
