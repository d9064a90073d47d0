"""What the processes of a run wrote down, as values: one event per line, one file per process.

All times are seconds of the monotonic clock, which the processes of one machine share. A file begins
with `Began`; what follows is in the order in which its process did it.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

SUFFIX = ".jsonl"


class _Event(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="is"):
    at: float


class Began(_Event, frozen=True, tag="began"):
    """A process opened its file."""

    pid: int
    role: str


class Called(_Event, frozen=True, tag="call"):
    """An enqueue is about to be sent. Jobs of one scenario have bodies of their own: by these, a job whose
    id nobody was told is known again."""

    call: int
    kind: str
    queue: str
    body: str
    """Hash of the encoded arguments."""
    delay_ms: int = 0
    due_ms: int = 0
    """An instant of the server's clock; wins over the delay."""
    key: str = ""
    """Its dedupe key."""
    mode: str = ""
    """Until when the key is held: `started`, `latest`, else until the job is done."""
    window_ms: int = 0
    """Or for so long."""
    batch: int = 0


class Answered(_Event, frozen=True, tag="answer"):
    """An enqueue's outcome; a call that was repeated after an unknown one has several."""

    call: int
    outcome: Literal["ok", "failed", "unknown"]
    job: str = ""
    duplicate: bool = False
    error: str = ""


class Started(_Event, frozen=True, tag="start"):
    """A handler begins. `run` numbers the starts of one process."""

    run: int
    job: str
    kind: str
    body: str
    entry: str
    deliveries: int = 1
    attempt: int = 1
    claimed: float = 0.0
    """When its worker had the claim; 0 for not known."""
    server_ms: int = 0
    """The server's time, where it was asked for."""
    lanes: tuple[str, ...] = ()
    """What it takes a place of, or a token, as the handler says: the name of a limit, and behind a space its key."""
    cron: str = ""
    """Whose slot it is for, if a cron's."""
    slot_ms: int = 0


class Did(_Event, frozen=True, tag="effect"):
    """A handler's effect on the world: the ledger, which no server can lose."""

    run: int
    what: str = ""


class Guarded(_Event, frozen=True, tag="guarded"):
    """A step of a run with an effect that `ctx.once` guards: about to ask for it, having it, told that it is kept."""

    run: int
    effect: str
    step: Literal["asks", "has", "kept"]
    first: bool = False
    """Recorded before it is had, so that it is never had twice."""


Outcome = Literal["ok", "error", "permanent", "snooze", "rate_limited", "cancel", "cancelled"]


class Ended(_Event, frozen=True, tag="end"):
    """A handler has ended; `cancelled` is what its worker did to it."""

    run: int
    outcome: Outcome


class Settled(_Event, frozen=True, tag="settle"):
    """The reply to one job's move, sent at `sent`. The word is the server's, OK where it has none, or UNSURE
    for a reply that never came."""

    sent: float
    move: str
    job: str
    """Empty where the call did not name it: a release names the entry alone."""
    entry: str = ""
    """With the queue in front, like a job's id."""
    deliveries: int = 0
    """0 for not said: operators, and plain successes."""
    word: str = "OK"
    delay_ms: int = 0


class Working(_Event, frozen=True, tag="working"):
    """A worker begins in this process."""


class Stopping(_Event, frozen=True, tag="stopping"):
    """The worker of this process was told to stop, and knows it."""


class Signalled(_Event, frozen=True, tag="signal"):
    """The harness is about to send a signal."""

    pid: int
    name: str


class Died(_Event, frozen=True, tag="died"):
    """The harness saw that a process is gone."""

    pid: int
    code: int


class Fault(_Event, frozen=True, tag="fault"):
    """Something was broken from `since` on until `at`; for one process, or for all."""

    since: float
    name: str
    pid: int = 0


class Loss(_Event, frozen=True, tag="loss"):
    """What the server acknowledged between `since` and `at` may be gone, by its configuration."""

    since: float
    why: str


Event: TypeAlias = (
    Began
    | Called
    | Answered
    | Started
    | Did
    | Guarded
    | Ended
    | Settled
    | Working
    | Stopping
    | Signalled
    | Died
    | Fault
    | Loss
)


class Process(msgspec.Struct, eq=False):
    """The file of one process."""

    name: str
    pid: int
    role: str
    events: list[Event]
    torn: bool = False
    """Its last line was cut off: the process died while it wrote."""

    def show(self, event: Event) -> str:
        """Return an event as findings name it."""
        fields = {name: value for name, value in msgspec.to_builtins(event).items() if value != ""}
        what = fields.pop("is")
        at = fields.pop("at")
        return f"{self.name} {at:.4f} {what} " + " ".join(f"{name}={value}" for name, value in fields.items())


History: TypeAlias = list[Process]

_encoder = msgspec.json.Encoder()
_lines = msgspec.json.Decoder(Event)


def encode(events: Iterable[Event]) -> bytes:
    """Return events as lines."""
    return b"".join([_encoder.encode(event) + b"\n" for event in events])


def read(folder: Path, which: str = "*") -> History:
    """Read what processes wrote, in the order in which they began.

    Args:
        folder: where they wrote.
        which: a pattern of their names, `role-pid-began`; default all of them.

    Raises:
        ValueError: a file does not begin with `Began`, or a line other than its last is broken.
    """
    processes = [process for path in folder.glob(which + SUFFIX) if (process := _read(path))]
    return sorted(processes, key=lambda process: process.events[0].at)


def _read(path: Path) -> Process | None:
    text = path.read_bytes()
    whole = text.rfind(b"\n") + 1
    events: list[Event] = _lines.decode_lines(text[:whole])
    if not events:
        # It died before it had said anything, and so before it did anything.
        return None
    if not isinstance(events[0], Began):
        raise ValueError(f"{path}: does not begin with what process it is of")
    return Process(path.stem, events[0].pid, events[0].role, events, whole != len(text))


def digest(body: bytes) -> str:
    """Return the hash by which a body is known."""
    return hashlib.blake2b(body, digest_size=8).hexdigest()
