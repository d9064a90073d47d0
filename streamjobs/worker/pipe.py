"""What a worker and its processes for handlers say to each other: MessagePack, each piece behind its length.

The worker says Begin once, which is answered by Ready, and then Run for each job: that is answered by
Taken, before anything of the job has run, and by Report at its end. What the job logs comes in between.
"""

from typing import TypeAlias

import msgspec

from streamjobs.core.job import Cancelled, Claim, Raised, Returned, Snoozed, Undecodable

Told: TypeAlias = Returned | Raised | Snoozed | Cancelled | Undecodable
"""The outcomes that a handler can cause itself. A value that is to be kept is returned as its JSON."""


class Begin(msgspec.Struct, frozen=True):
    """Where the process works, and what it will be asked to run."""

    target: tuple[str, str, dict[str, str | int | bool], str, str]
    """The fields of the worker's own target."""
    namespace: str
    kinds: list[tuple[str, str]]
    """Each with the module that registers it."""
    level: int
    """What is logged below it is dropped."""


class Run(msgspec.Struct, frozen=True):
    """One job."""

    claim: Claim
    queue: str
    partition: int
    lease_ms: int
    consumer: str
    newer: int


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The modules are imported, or cannot be."""


class Taken(msgspec.Struct, frozen=True, tag=True):
    """From here on, the death of the process is the job's."""


class Record(msgspec.Struct, frozen=True, tag=True):
    """A line for the log."""

    logger: str
    level: int
    text: str


class Report(msgspec.Struct, frozen=True, tag=True):
    """The end of a job."""

    outcome: Told
    traceback: str
    held_bytes: int
    """Memory of the process behind it; 0 where that is not known."""


Answer: TypeAlias = Ready | Taken | Record | Report

_LENGTH_BYTES = 4
_encoder = msgspec.msgpack.Encoder()
_answers: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def packed(piece: Begin | Run | Answer) -> bytes:
    """Return a piece as it is sent."""
    raw = _encoder.encode(piece)
    return len(raw).to_bytes(_LENGTH_BYTES, "big") + raw


def answer(raw: bytes) -> Answer:
    """Return what a process has said."""
    return _answers.decode(raw)


class Pieces:
    """Cuts what arrives into pieces."""

    def __init__(self) -> None:
        self._arrived = bytearray()

    def add(self, part: bytes) -> None:
        """Take in what has arrived."""
        self._arrived += part

    def next(self) -> bytes | None:
        """Return the next piece; None while it is not complete."""
        end = _LENGTH_BYTES + int.from_bytes(self._arrived[:_LENGTH_BYTES], "big")
        if len(self._arrived) < max(end, _LENGTH_BYTES + 1):
            return None
        piece = bytes(self._arrived[_LENGTH_BYTES:end])
        del self._arrived[:end]
        return piece
