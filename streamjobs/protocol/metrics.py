"""What is counted and measured per minute: how workers add to it, and how it is read."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from streamjobs.core.numbers import whole
from streamjobs.protocol.calls import Call, Command, Word
from streamjobs.protocol.keys import QueueKeys

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
MOST_ROWS = 500
"""Fields in one call of `measure`, so that none holds the server for long."""
WHOLE_QUEUE = ""
"""In the place of a kind, for what is not counted by kinds."""

Measured: TypeAlias = tuple[str, str, int]
"""Kind, field, and what to add."""
Fields: TypeAlias = dict[str, int]
"""What was counted, by name."""
ByKind: TypeAlias = dict[str, Fields]


def measure(keys: QueueKeys, rows: Sequence[Measured], clock: str = "") -> Call[bool]:
    """Add how long jobs waited and ran."""
    words: list[Word] = [clock]
    for row in rows:
        words += row
    return Call("measure", [keys.stream, keys.metrics], words, bool)


def read(key: str) -> Command[ByKind]:
    """Read one hash of counters, or of times, by kind; empty where nothing was counted then."""
    return Command(["HGETALL", key], _by_kind)


def _by_kind(raw: Sequence[Any]) -> ByKind:
    found: ByKind = {}
    for name, count in zip(raw[::2], raw[1::2], strict=True):
        field, _, kind = name.decode("utf-8", "replace").partition(":")
        found.setdefault(kind, {})[field] = whole(count)
    return found
