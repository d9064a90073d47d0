"""What a doctor asks beyond what operators read: the server's settings, its slow log, and single keys."""

from collections.abc import Sequence
from typing import Any

import msgspec

from streamjobs.protocol import scripts
from streamjobs.protocol.calls import Command
from streamjobs.protocol.keys import GROUP, QueueKeys

SCAN_COUNT = 1000
SLOW_MOST = 128
"""What a server keeps of slow calls, unless it is told otherwise."""


class Held(msgspec.Struct, frozen=True):
    """One claim, as the pending list has it."""

    entry: str
    consumer: str
    silent_ms: int
    deliveries: int


def setting(name: str) -> Command[str | None]:
    """Read one of the server's settings; None for one that it does not have."""
    return Command(["CONFIG", "GET", name], lambda raw: raw[1].decode("utf-8", "replace") if raw else None)


def slow_calls() -> Command[dict[str, list[float]]]:
    """Read from the slow log how long scripts of ours took, in ms, by script.

    Nothing else is read out of it: what it keeps of arguments may be a job's.
    """
    return Command(["SLOWLOG", "GET", SLOW_MOST], _slow)


def _slow(raw: Sequence[Sequence[Any]]) -> dict[str, list[float]]:
    names = {scripts.load(name).sha.encode(): name for name in scripts.names()}
    found: dict[str, list[float]] = {}
    for row in raw:
        words = row[3]
        if len(words) > 1 and words[0].upper() == b"EVALSHA" and (name := names.get(words[1])):
            found.setdefault(name, []).append(row[2] / 1000)
    return found


def type_of(key: str) -> Command[str]:
    """Read a key's type; "none" for one that is not there."""
    return Command(["TYPE", key], _text)


def _text(raw: bytes | str) -> str:
    return raw if isinstance(raw, str) else raw.decode()


def ttl_ms(key: str) -> Command[int]:
    """Read how long a key lives; -1 for ever, -2 for one that is not there."""
    return Command(["PTTL", key], int)


def scan(namespace: str, cursor: str) -> Command[tuple[str, list[str]]]:
    """Walk over the server's keys, about 1000 of them, others' too; return the next cursor, and our keys."""
    return Command(["SCAN", cursor, "MATCH", f"{namespace}:*", "COUNT", SCAN_COUNT], _scanned)


def _scanned(raw: Sequence[Any]) -> tuple[str, list[str]]:
    return raw[0].decode(), [key.decode("utf-8", "backslashreplace") for key in raw[1]]


def held(keys: QueueKeys, most: int) -> Command[list[Held]]:
    """Read the oldest claims. An error without a group."""
    return Command(["XPENDING", keys.stream, GROUP, "-", "+", most], _held)


def _held(raw: Sequence[Sequence[Any]]) -> list[Held]:
    return [Held(row[0].decode(), row[1].decode("utf-8", "replace"), row[2], row[3]) for row in raw]
