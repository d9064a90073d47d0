"""What a worker holds: its queues, and in each the claims on their way to being settled."""

import asyncio
from collections.abc import Sequence
from enum import Enum
from time import monotonic
from typing import Any

import msgspec

from streamjobs.client.aio import AsyncExecutor
from streamjobs.client.sync import SyncExecutor
from streamjobs.core import job
from streamjobs.core.codec import Arguments, DecodeFailed
from streamjobs.core.errors import UsageError
from streamjobs.core.job import FRESH, Claim, Meta
from streamjobs.core.limits import Limit, Plan, plan
from streamjobs.core.registry import Handler
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.leases import SWEEP_BEGIN


class Ending(Enum):
    """Why a running handler is being ended from outside."""

    NONE = "none"
    DEADLINE = "deadline"
    STOP = "stop"
    """The worker stops, or cannot reach the server for a lease: the job goes back, uncharged."""
    LOST = "lost"
    """Another worker holds the job, or it was cancelled: whatever follows is dropped."""


class Access(msgspec.Struct, frozen=True, eq=False):
    """What a handler reaches the server by, and the name under which its worker holds the job."""

    aio: AsyncExecutor
    sync: SyncExecutor
    consumer: str


class WorkerQueue:
    """One queue of a worker: its keys, its lease, what is held of it."""

    def __init__(self, keys: QueueKeys, lease_ms: int, *, weight: int = 1) -> None:
        self.keys = keys
        self.weight = weight
        self.lease_ms = lease_ms
        self.held: dict[bytes, Execution] = {}
        """By entry: read ahead, running, or decided and not yet settled. The lease thread reads it while the
        loop writes it: only through `list(...)`."""
        self.cursor = SWEEP_BEGIN
        self.next_sweep = 0.0
        self.rung = False
        """Something was given back: take before reading."""
        self.limits: tuple[Limit, ...] = ()
        """Those of the whole queue, as the code has them."""
        self.overrides: dict[str, str] = {}
        """Limits that were set at run time, by base."""
        self.limited = b""
        """How often those had been changed when they were read."""
        self.metered_until = 0.0
        """Monotonic seconds. Until then no more is asked of it than there are free processes: its jobs need them."""
        self.crowd = 0
        """How many waited in the lanes of the whole queue when the server was last asked."""
        self.plans: dict[str, Plan] = {}
        """The limits of each kind, once asked for."""
        self.unlimited: dict[bytes, Handler] = {}
        """By kind, the handlers for whose jobs no limit holds, once that is known."""

    def add(self, claim: Claim) -> "Execution | None":
        """Take a claim in; None when the entry is held already, from now on under this claim's fence."""
        held = self.held.get(claim.entry)
        if held is not None:
            # No start was behind the deliveries that this worker's own sweep added.
            held.claim.unstarted += claim.deliveries - held.claim.deliveries
            held.claim.deliveries = claim.deliveries
            held.claim.claimed_at = claim.claimed_at
            if held.settling:
                held.again = claim
            return None
        held = self.held[claim.entry] = Execution(claim, self, None, claim.claimed_at)
        return held

    def limit(self, number: bytes, overrides: dict[str, str]) -> None:
        """Take note of the limits that are set at run time, as of this change of them."""
        self.limited, self.overrides = number, overrides
        self.plans.clear()
        self.unlimited.clear()

    def plan(self, handler: Handler) -> Plan:
        """Return the limits that hold for the jobs of a kind."""
        found = self.plans.get(handler.kind)
        if found is None:
            names = handler.signature.names
            found = plan(handler.kind, handler.limits, self.limits, self.overrides, names)
            self.plans[handler.kind] = found
            if not found.bases:
                self.unlimited[handler.kind.encode()] = handler
        return found

    def holds(self, execution: "Execution") -> bool:
        """Say whether this execution is still ours to run or settle."""
        return self.held.get(execution.claim.entry) is execution

    def drop(self, *executions: "Execution") -> None:
        """Hold these no more: they are settled, or another worker's."""
        pop = self.held.pop
        for execution in executions:
            pop(execution.claim.entry, None)


class Execution(msgspec.Struct, eq=False):
    """One claim on its way through a worker, from the claim to the decision that settles it."""

    claim: Claim
    queue: WorkerQueue
    handler: Handler | None = None
    """None until the claim was looked at, and for one that names no kind."""
    read_at: float = 0.0
    """Monotonic seconds at which it was claimed; renewals do not change it."""
    meta: Meta = FRESH
    newer: int = 0
    """How many starts of this job had taken newer arguments when this one began."""
    arguments: Arguments | None = None
    """Positional and by name, once decoded."""
    lanes: Sequence[str] = ()
    """Those of the limits that hold for it, once looked at."""
    admitted: int = 0
    """The delivery as which the server let it start in all of them: it has a slot in those of a concurrency."""
    state: Any = None
    access: Access | None = None
    """None until it is started."""
    started: float = 0.0
    """Monotonic seconds; 0 until its handler is started."""
    ran_s: float = 0.0
    """How long its handler ran, once that has ended or was abandoned."""
    deadline: float | None = None
    """Monotonic seconds; None for no timeout."""
    extended: bool = False
    """Whether its run has moved that."""
    task: asyncio.Task[None] | None = None
    beside: "Sequence[Execution]" = ()
    """Those that the same call of its handler runs, itself included; none where it has one of its own."""
    ending: Ending = Ending.NONE
    settling: bool = False
    """A decision is being written: what the server says of its lease no longer matters."""
    again: Claim | None = None
    """A later claim of the same entry that came meanwhile: what is being written does not end it."""
    marked: bool = False
    """Whether `suspect` recorded this start."""
    abandoned: bool = False
    """Running long after its deadline: settled without it, or lost, and its slot given to others."""
    traceback: str = ""
    span: Any = None
    """That of its run, where runs are traced."""
    lost_event: asyncio.Event | None = None

    @property
    def kind(self) -> str:
        """The kind, as counters and logs name it."""
        return self.handler.kind if self.handler else "_undecodable"

    @property
    def local_id(self) -> str:
        """The job's id within its queue."""
        return self.meta.id or self.claim.entry.decode()

    @property
    def job_id(self) -> str:
        return self.queue.keys.job_id(self.local_id)

    @property
    def enqueued_ms(self) -> int:
        """Server time at which the job was enqueued."""
        return job.enqueued_ms(self.local_id)

    @property
    def first(self) -> bool:
        """Whether its entry came to nobody else before."""
        return self.claim.deliveries - self.claim.unstarted == 1

    @property
    def crashes(self) -> int:
        """Starts before this one that were never settled: those of former entries, the first start of this
        one, which is presumed when there were further deliveries, and those that were marked.
        """
        return self.meta.crashes + (0 if self.first else max(0, 1 + self.claim.marks))

    @property
    def attempt(self) -> int:
        return 1 + self.meta.failures + self.meta.process_crashes + self.crashes

    @property
    def expires_ms(self) -> int:
        """Server time by which its first attempt must have started; 0 for no limit."""
        return job.expires_ms(self.local_id, self.meta)

    def expired(self, now_ms: int) -> bool:
        """Say whether it is too late to start it at all. Later attempts are the retry policy's: they always start."""
        return 0 < self.expires_ms <= now_ms and self.attempt == 1

    def lapsed(self, now: float) -> bool:
        """Say whether its lease may have ended by `now`, in monotonic seconds."""
        return now - self.claim.claimed_at > self.queue.lease_ms / 1000

    def plain_handler(self) -> Handler | None:
        """Return its handler, if it is the first start of a job that nothing is said of, and that no limit holds."""
        claim = self.claim
        return None if claim.meta or claim.deliveries > 1 else self.queue.unlimited.get(claim.kind)

    def find_lanes(self) -> bool:
        """Note its arguments and the lanes of the limits that hold for it; False where none do.

        Raises:
            DecodeFailed: its arguments do not fit the handler, or the one that a limit goes by has no JSON form.
        """
        assert self.handler is not None
        plan = self.queue.plan(self.handler)
        if not plan.bases:
            return False
        signature = self.handler.signature
        self.arguments = arguments = signature.decode(self.claim.body)
        try:
            self.lanes = plan.lanes(lambda name: signature.value(arguments, name))
        except UsageError as error:
            raise DecodeFailed(f"the key of a limit: {error}") from error
        return True

    @property
    def runs(self) -> bool:
        """Whether its handler was started and nothing has been decided yet."""
        return self.task is not None and not self.settling

    def cancel(self) -> None:
        """Cancel its handler, if that can be; one that runs several jobs only once none of them needs it."""
        # Mostly they are told in order: the last of them is the quickest to say no.
        needed = any(one.ending is Ending.NONE for one in reversed(self.beside))
        if self.task and self.handler and self.handler.ends_when_cancelled and not needed:
            # Not at once: a task that is cancelled before its first step ends without a word.
            self.task.get_loop().call_soon(self.task.cancel)

    def extend(self, seconds: float) -> None:
        """Move the deadline of its run, if it has one, to so many seconds from now. Of any thread."""
        for one in self.beside or (self,):
            if one.deadline is not None:
                one.deadline, one.extended = monotonic() + seconds, True

    @property
    def slots(self) -> list[str]:
        """The lanes in which it holds a slot."""
        return [lane for lane in self.lanes if lane.startswith("c")] if self.admitted else []

    @property
    def log_fields(self) -> dict[str, Any]:
        """What a log line about it says beside its message."""
        queue = self.queue.keys.queue
        return {"job_id": self.job_id, "kind": self.kind, "queue": queue, "attempt": self.attempt}

    @property
    def lost(self) -> asyncio.Event:
        """Set when what this run does no longer counts."""
        if self.lost_event is None:
            self.lost_event = asyncio.Event()
        return self.lost_event
