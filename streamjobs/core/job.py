"""The values that move through named steps: Job, Claim, Outcome, Decision."""

from typing import Annotated, TypeAlias

import msgspec

from streamjobs.core import names
from streamjobs.core.durability import MEMORY
from streamjobs.core.numbers import FAR_MS
from streamjobs.core.states import DeadReason

WIRE_VERSION = 1
HISTORY_LENGTH = 5
ERROR_CHARS = 500
UNTIL_STARTED = "s"
LATEST = "l"
"""Dedupe modes as a meta names them; neither, and no window: until the job has ended."""

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""What a meta may count to: as far as every reader of JSON is exact."""
Span: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=names.MAX_DELAY_MS)]
"""Ms that a meta may ask for."""
Instant: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=FAR_MS)]


class Attempt(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One failed start, as the history keeps it."""

    at_ms: Instant = msgspec.field(name="at", default=0)
    """Server time, 0 when only the order is known."""
    number: Count = msgspec.field(name="n", default=0)
    error: str = msgspec.field(name="e", default="")
    error_class: str = msgspec.field(name="k", default="")
    worker: str = msgspec.field(name="w", default="")


class Meta(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=False, gc=False):
    """What travels with a job beside its arguments; all of it empty for a fresh, plain job.

    The short names are the wire format (docs/protocol.md). The ranges hold for what is decoded: somebody else may have
    written it, and what is beyond them makes no job, rather than an error in the midst of a worker.
    """

    version: int = msgspec.field(name="v", default=WIRE_VERSION)
    id: str = ""
    """The job's local id, where the entry's own id is not it."""
    generation: Count = msgspec.field(name="g", default=0)
    failures: Count = msgspec.field(name="f", default=0)
    crashes: Count = msgspec.field(name="c", default=0)
    """Starts of earlier entries of this job that were never settled."""
    process_crashes: Count = msgspec.field(name="pc", default=0)
    """Starts that ended with the death of a process in which nothing else ran."""
    snoozes: Count = msgspec.field(name="s", default=0)
    rate_waits: Count = msgspec.field(name="r", default=0)
    parks: Count = msgspec.field(name="p", default=0)
    dedupe_key: str = msgspec.field(name="dk", default="")
    dedupe_mode: str = msgspec.field(name="dm", default="")
    dedupe_window_ms: Span = msgspec.field(name="dw", default=0)
    result_ttl_ms: Span = msgspec.field(name="rt", default=0)
    expires_ms: Span = msgspec.field(name="e", default=0)
    """How long after its enqueue its first attempt must have started; 0 for no limit, or for an instant."""
    expires_at_ms: Instant = msgspec.field(name="ea", default=0)
    drop_expired: bool = msgspec.field(name="ed", default=False)
    """Whether it is then cancelled, and not dead."""
    traceparent: str = msgspec.field(name="tp", default="")
    headers: dict[str, str] | None = msgspec.field(name="h", default=None)
    history: tuple[Attempt, ...] = msgspec.field(name="x", default=())
    origin: str = msgspec.field(name="o", default="")
    """The id of the dead job that began anew as this one."""
    idempotency_key: str = msgspec.field(name="ik", default="")
    """Where it is not the job's own id."""

    @property
    def starts(self) -> int:
        """Starts of former entries that count."""
        return self.failures + self.crashes + self.process_crashes

    @property
    def held_key(self) -> str:
        """The dedupe key that the job's end gives back; "" for none, and for one that ends by itself."""
        return "" if self.dedupe_window_ms else self.dedupe_key

    @property
    def latest(self) -> bool:
        """Whether newer arguments replace its own."""
        return self.dedupe_mode == LATEST and self.dedupe_key != ""

    @property
    def announced(self) -> bool:
        """Whether the server must hear of a start before the handler begins."""
        return self.dedupe_mode != "" and self.dedupe_key != ""


FRESH = Meta()


def enqueued_ms(local: str) -> int:
    """Return when a job was enqueued, by the server's clock: its local id begins with it."""
    return int(local.removeprefix("d").partition("-")[0])


def expires_ms(local: str, meta: Meta) -> int:
    """Return by when a job's first attempt must have started, by the server's clock; 0 for no limit."""
    return meta.expires_at_ms or (enqueued_ms(local) + meta.expires_ms if meta.expires_ms else 0)


class Job(msgspec.Struct, frozen=True, gc=False):
    """One job to enqueue: everything checked, arguments encoded, nothing sent yet.

    `delay_ms` counts from the server's receipt; `at_ms` is an instant of the server's clock and
    wins over `delay_ms`. Both 0: at once.
    """

    kind: str
    body: bytes
    queue: str
    delay_ms: int = 0
    at_ms: int = 0
    meta: Meta = FRESH
    durability: str = MEMORY
    """Where it must be before its enqueue returns; it does not travel with the job."""


class Claim(msgspec.Struct, gc=False):
    """One entry delivered to this worker; (entry, consumer, deliveries) is the fence."""

    entry: bytes
    kind: bytes
    body: bytes
    meta: bytes
    deliveries: int = 1
    marks: int = 0
    """Unsettled starts of this entry that `suspect` recorded."""
    releases: int = 0
    """How often it was given back because no process was free to run it alone."""
    starts: str = ""
    """`consumer@ms/delivery` of each start that never ended, oldest first, parted by spaces."""
    unstarted: int = 0
    """Earlier deliveries of this entry that are known to have started nothing, or nothing anew."""
    claimed_at: float = 0.0
    """Monotonic seconds at which the lease began or was last renewed."""


class Returned(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The handler returned."""

    value: object = None


class Raised(msgspec.Struct, frozen=True, tag=True):
    """The handler raised; `permanent`, `uncharged` and `after_ms` are what its exception asks for."""

    error: str
    error_class: str
    permanent: bool = False
    uncharged: bool = False
    after_ms: int | None = None


class TimedOut(msgspec.Struct, frozen=True):
    """The handler was still running at its deadline."""

    timeout_ms: int


class Snoozed(msgspec.Struct, frozen=True, tag=True):
    """The handler asked to run again later."""

    delay_ms: int


class Cancelled(msgspec.Struct, frozen=True, tag=True):
    """The handler ended its job as cancelled."""

    reason: str


class Interrupted(msgspec.Struct, frozen=True):
    """The worker stopped before the handler ended; not the job's fault."""


class Crashed(msgspec.Struct, frozen=True):
    """The process that ran this job, and no other, has died."""

    error: str


class Expired(msgspec.Struct, frozen=True):
    """Its first attempt had not started by `at_ms`, an instant of the server's clock."""

    at_ms: int


class Unknown(msgspec.Struct, frozen=True):
    """This worker has no handler of that kind."""


class Undecodable(msgspec.Struct, frozen=True, tag=True):
    """Fields, meta or arguments that no handler can be called with."""

    error: str


Outcome: TypeAlias = (
    Returned | Raised | TimedOut | Snoozed | Cancelled | Interrupted | Crashed | Expired | Unknown | Undecodable
)


class Complete(msgspec.Struct, frozen=True, gc=False):
    """Done; `value` is kept where a result was asked for."""

    value: object = None


class Retry(msgspec.Struct, frozen=True):
    """Again after `delay_ms`; one failure is charged, or what `why` names."""

    delay_ms: int
    error: str
    error_class: str
    why: str = "failures"


class Bury(msgspec.Struct, frozen=True):
    """Dead. `charged` when this start itself failed, so that it goes into the history."""

    reason: DeadReason
    error: str = ""
    error_class: str = ""
    charged: bool = True


class Snooze(msgspec.Struct, frozen=True):
    """Again after `delay_ms`; nothing is charged. `why` names the counter that grows."""

    delay_ms: int
    why: str = "snoozes"


class Cancel(msgspec.Struct, frozen=True):
    """Ends as cancelled."""

    reason: str


class Release(msgspec.Struct, frozen=True):
    """Back to waiting at once; nothing is charged."""


Decision: TypeAlias = Complete | Retry | Bury | Snooze | Cancel | Release
