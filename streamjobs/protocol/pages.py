"""What operators read of live jobs, a page at a time: where they lie, in the order in which they start."""

from collections.abc import Sequence
from typing import Any

import msgspec

from streamjobs.core.numbers import milliseconds
from streamjobs.protocol.calls import Command, Word
from streamjobs.protocol.keys import GROUP, QueueKeys

FIRST = "0-0"
"""Before every entry."""


class Entry(msgspec.Struct, frozen=True):
    """One entry of the stream; fields that it does not have are empty."""

    id: str
    kind: str
    meta: bytes


class Due(msgspec.Struct, frozen=True):
    """One member of a set of scheduled jobs."""

    job: str
    at_ms: int


def entries(keys: QueueKeys, after: str, most: int) -> Command[list[Entry]]:
    """Read the entries behind one, oldest first."""
    return Command(["XRANGE", keys.stream, f"({after}", "+", "COUNT", most], _entries)


def entry(keys: QueueKeys, at: str) -> Command[list[Entry]]:
    """Read one entry; none where it is gone."""
    return Command(["XRANGE", keys.stream, at, at], _entries)


def _entries(raw: Sequence[Any]) -> list[Entry]:
    found = []
    for id_, flat in raw:
        fields = dict(zip(flat[::2], flat[1::2], strict=False))
        found.append(Entry(id_.decode(), fields.get(b"kind", b"").decode("utf-8", "replace"), fields.get(b"meta", b"")))
    return found


def holders(keys: QueueKeys) -> Command[list[str]]:
    """Read who has claims, those under which they were given back or parked included. An error without a group."""
    return Command(["XPENDING", keys.stream, GROUP], lambda raw: [name.decode() for name, _ in raw[3] or ()])


def held(keys: QueueKeys, consumer: str, after: str, most: int) -> Command[list[str]]:
    """Read the claims of a consumer behind an entry, oldest first. An error without a group."""
    words: list[Word] = ["XPENDING", keys.stream, GROUP, f"({after}", "+", most, consumer]
    return Command(words, lambda raw: [row[0].decode() for row in raw])


def rank(key: str, job: str) -> Command[int | None]:
    """Read how many are due before a job; None where it is not there."""
    return Command(["ZRANK", key, job], lambda raw: raw)


def due_before(key: str, at_ms: int) -> Command[int]:
    """Count what is due before an instant."""
    return Command(["ZCOUNT", key, "-inf", f"({at_ms}"], int)


def due(key: str, begin: int, most: int) -> Command[list[Due]]:
    """Read scheduled jobs from the so-manieth on, soonest first."""
    words: list[Word] = ["ZRANGE", key, begin, begin + most - 1, "WITHSCORES"]
    return Command(
        words,
        lambda raw: [Due(raw[i].decode("utf-8", "replace"), milliseconds(raw[i + 1])) for i in range(0, len(raw), 2)],
    )


def envelopes(keys: QueueKeys, jobs: Sequence[str]) -> Command[list[bytes | None]]:
    """Read how scheduled jobs lie in the hash of bodies, in order; None for one that is not there."""
    return Command(["HMGET", keys.bodies, *jobs], lambda raw: list(raw))
