"""What a worker knows of each queue that it serves, and the server's clock as it sees it."""

from collections import deque
from time import monotonic

from streamjobs.core.execution import Execution
from streamjobs.core.job import Claim
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.leases import SWEEP_BEGIN


class Held:
    """One claim in this process: read ahead, running, or decided and not yet settled."""

    __slots__ = ("claim", "execution")

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.execution: Execution | None = None


class WorkerQueue:
    """One queue of a worker: its keys, its lease, what is held of it."""

    def __init__(self, keys: QueueKeys, lease_ms: int) -> None:
        self.keys = keys
        self.lease_ms = lease_ms
        self.held: dict[bytes, Held] = {}
        """By entry. The lease thread reads it while the loop writes it: only through `list(...)`."""
        self.ready: deque[Held] = deque()
        self.cursor = SWEEP_BEGIN
        self.next_sweep = 0.0
        self.rung = False
        """Something was given back: take before reading."""

    def add(self, claim: Claim) -> Held | None:
        """Take a claim in; None when this process holds the entry already, and now under this claim's fence."""
        held = self.held.get(claim.entry)
        if held is not None:
            held.claim.deliveries = claim.deliveries
            held.claim.claimed_at = claim.claimed_at
            return None
        held = self.held[claim.entry] = Held(claim)
        return held

    def expired(self, claim: Claim, now: float) -> bool:
        """Say whether the lease has ended by the local monotonic clock."""
        return now - claim.claimed_at > self.lease_ms / 1000


class ServerClock:
    """The server's time, kept between the replies that carry it. Decides nothing; dates logs and counters."""

    def __init__(self) -> None:
        self._offset = 0.0

    def sync(self, now_ms: int) -> None:
        """Take note of the server's time as of now."""
        self._offset = now_ms - monotonic() * 1000

    def now_ms(self) -> int:
        """Return the server's time as it should be now."""
        return int(monotonic() * 1000 + self._offset)
