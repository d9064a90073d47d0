"""What operators read: how much each queue holds, and the dead jobs."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from streamjobs.core.names import is_name
from streamjobs.core.numbers import milliseconds
from streamjobs.protocol.calls import Command, Word
from streamjobs.protocol.keys import GROUP, PARKED, RELEASED, QueueKeys, queues

_ENTRY = re.compile(r"\d{1,19}-\d{1,19}\Z")

Row = tuple[str, dict[str, bytes]]
"""One stream entry: its id, and its fields."""


class Group(msgspec.Struct, frozen=True):
    """The consumer group of a queue; the defaults are those of a queue that has none yet."""

    pending: int = 0
    last_delivered: str = "0-0"


def queue_names(namespace: str) -> Command[list[str]]:
    """Read the names of all queues, sorted."""
    return Command(["SMEMBERS", queues(namespace)], _names)


def _names(raw: Sequence[bytes]) -> list[str]:
    # Whoever added what cannot be a name has made no queue by it.
    return sorted(name for name in (one.decode("utf-8", "replace") for one in raw) if is_name(name))


def length(key: str) -> Command[int]:
    """Count a stream's entries."""
    return Command(["XLEN", key], int)


def members(key: str) -> Command[int]:
    """Count a sorted set's members."""
    return Command(["ZCARD", key], int)


class Aside(msgspec.Struct, frozen=True):
    """Claims that no worker holds."""

    released: int = 0
    """They were given back, and not taken again."""
    parked: int = 0
    """They wait in lanes of limits."""


def aside(keys: QueueKeys) -> Command[Aside]:
    """Count the claims that no worker holds. An error without a group.

    By who has them, not by the set of those given back: that still names some after the loss of the group.
    """
    return Command(["XPENDING", keys.stream, GROUP], _aside)


def _aside(raw: Sequence[Any]) -> Aside:
    counts = {name.decode("utf-8", "replace"): int(count) for name, count in raw[3] or ()}
    return Aside(counts.get(RELEASED, 0), counts.get(PARKED, 0))


def groups(keys: QueueKeys) -> Command[Group]:
    """Read the state of our group. An error when the stream is not there."""
    return Command(["XINFO", "GROUPS", keys.stream], _group)


def _group(raw: Sequence[Sequence[Any]]) -> Group:
    for row in raw:
        fields = dict(zip(row[::2], row[1::2], strict=True))
        if fields[b"name"] == GROUP.encode():
            return Group(fields[b"pending"], fields[b"last-delivered-id"].decode())
    return Group()


def delivered(group: Group, config: Mapping[str, str]) -> str:
    """Return the id up to which entries were delivered. The group of a paused queue stands elsewhere."""
    paused = config.get("paused", "")
    # What somebody else wrote there may be no id.
    return paused if _ENTRY.match(paused) else group.last_delivered


def oldest_pending(keys: QueueKeys, consumer: str = "") -> Command[str]:
    """Read the id of the oldest claim, of all or of one consumer; "" for none. An error without a group."""
    words: list[Word] = ["XPENDING", keys.stream, GROUP, "-", "+", 1, *([consumer] if consumer else [])]
    return Command(words, lambda raw: raw[0][0].decode() if raw else "")


def first_after(keys: QueueKeys, entry: str) -> Command[str]:
    """Read the id of the first entry behind this one; "" for none."""
    start = f"({entry}" if entry != "0-0" else "-"
    words: list[Word] = ["XRANGE", keys.stream, start, "+", "COUNT", 1]
    return Command(words, lambda raw: raw[0][0].decode() if raw else "")


def memory(key: str) -> Command[int]:
    """Estimate the bytes that a key takes, from a few of its parts; 0 for one that is not there."""
    return Command(["MEMORY", "USAGE", key], lambda raw: int(raw or 0))


def first_due(key: str) -> Command[int]:
    """Read when the first job of a sorted set becomes due, in ms; 0 for none."""
    words: list[Word] = ["ZRANGE", key, 0, 0, "WITHSCORES"]
    return Command(words, lambda raw: milliseconds(raw[1]) if raw else 0)


def table(key: str) -> Command[dict[str, str]]:
    """Read a small hash: the totals, the configuration, or the limits of a queue."""
    return Command(["HGETALL", key], texts)


def texts(raw: Sequence[bytes]) -> dict[str, str]:
    """Return the fields of a hash as text, whoever wrote them."""
    words = [word.decode("utf-8", "replace") for word in raw]
    return dict(zip(words[::2], words[1::2], strict=True))


def dead_rows(keys: QueueKeys, newest: str, oldest: str, most: int) -> Command[list[Row]]:
    """Read dead jobs, newest first, between two entries; `(id` excludes the entry itself."""
    words: list[Word] = ["XREVRANGE", keys.dead, newest, oldest, "COUNT", most]
    return Command(words, lambda raw: [(entry.decode(), _fields(flat)) for entry, flat in raw])


def _fields(flat: Sequence[bytes]) -> dict[str, bytes]:
    # Names that somebody else gave may be any bytes.
    return {name.decode("utf-8", "surrogateescape"): value for name, value in zip(flat[::2], flat[1::2], strict=True)}


def holder(keys: QueueKeys, dedupe_key: str) -> Command[str]:
    """Read which job holds a dedupe key; "" for none."""
    return Command(["GET", keys.dedupe(dedupe_key)], lambda raw: raw.decode() if raw else "")
