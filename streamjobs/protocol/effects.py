"""What is said to the server of guarded effects: that one is begun, and that it has happened."""

from typing import Any

import msgspec

from streamjobs.protocol.calls import Call, Word
from streamjobs.protocol.keys import QueueKeys


class Run(msgspec.Struct, frozen=True):
    """The run that asks: its claim, its job, and a token of this one begin."""

    consumer: str
    entry: bytes
    job: str
    token: str


class Begun(msgspec.Struct, frozen=True):
    """What is known of an effect: `word` is BEGUN, DONE, UNDERWAY, UNSURE or LOST, as in lua/once.lua."""

    word: str
    value: bytes = b""
    """JSON; of one that is DONE."""
    job: str = ""
    """Local id of the job that began it; of one that is UNDERWAY or UNSURE."""
    at_ms: int = 0
    """When it was begun, by the server's clock; of one that is UNSURE."""


def once(
    keys: QueueKeys, key: str, run: Run, *, lease_ms: int, keep_ms: int, take_over: bool, clock: str = ""
) -> Call[Begun]:
    """Begin an effect unless it is recorded; `take_over` also where a run that is no more began it."""
    words: list[Word] = [clock, run.consumer, run.entry, run.job, run.token, lease_ms, int(take_over), keep_ms]
    return Call("once", [keys.stream, keys.once(key)], words, _begun)


def _begun(raw: list[Any]) -> Begun:
    word = raw[0].decode()
    match word:
        case "DONE":
            return Begun(word, value=raw[1])
        case "UNDERWAY":
            return Begun(word, job=raw[1].decode())
        case "UNSURE":
            return Begun(word, job=raw[1].decode(), at_ms=int(raw[2]))
    return Begun(word)


def record(keys: QueueKeys, key: str, job: str, value: bytes, keep_ms: int, clock: str = "") -> Call[str]:
    """Record an effect that has happened, with its value as JSON; DONE where it was recorded before."""
    words: list[Word] = [clock, job, keep_ms, value]
    return Call("record", [keys.stream, keys.once(key)], words, lambda raw: raw.decode())
