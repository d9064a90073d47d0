"""What operators say of dead letters: replay, purge, and how a dead job begins anew as another one."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from streamjobs.protocol.calls import Call, Word
from streamjobs.protocol.intake import DEDUPE_TTL_MS, MAX_BATCH_JOBS
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.leases import KeyTable


class Replay(msgspec.Struct, frozen=True):
    """One dead job to put back; `body` replaces its arguments where it is not None."""

    entry: str
    job: str
    meta: bytes
    dedupe_key: str = ""
    body: bytes | None = None
    window_ms: int = 0
    """How long it then holds its dedupe key, whatever becomes of it; 0: until it has ended."""
    newer: int | None = None
    """How many of its starts took newer arguments; None for a job that takes none."""


class Purge(msgspec.Struct, frozen=True):
    """One dead job to delete; a dedupe key that outlived it goes too."""

    entry: str
    job: str
    dedupe_key: str = ""


class Promised(msgspec.Struct, frozen=True):
    """That a dead job is to begin anew as another job."""

    queue: str
    """Where, with its partition."""
    at_ms: int

    def __str__(self) -> str:
        return f"{self.queue} {self.at_ms}"


class Adoption(msgspec.Struct, frozen=True):
    """One promised job, and what it begins anew with."""

    job_id: str
    entry: str
    """Of its row."""
    promised: Promised
    kind: bytes
    body: bytes
    meta: bytes
    dedupe_key: str = ""
    window_ms: int = 0
    former: str = ""
    """Its id in this queue, if it was of this one: it may hold the dedupe key still."""
    newer: int | None = None


class Handover(msgspec.Struct, frozen=True):
    """One promise to end: with the id of the job that it became, or "" where it could not begin."""

    entry: str
    job: str
    promised: Promised
    became: str
    dedupe_key: str = ""


class Restore(msgspec.Struct, frozen=True):
    """One dead job to put back among the dead, with the fields of its row but its id."""

    job: str
    fields: Mapping[bytes, bytes]

    @property
    def size(self) -> int:
        """About so many bytes."""
        return sum(map(len, self.fields.values()))


def _texts(raw: Sequence[Any]) -> list[str]:
    return [word.decode() for word in raw]


def promised(word: str) -> Promised | None:
    """Return the promise that a word of `replay`, `purge` or `promise` is; None for another word."""
    queue, space, at = word.partition(" ")
    return Promised(queue, int(at)) if space else None


def replay(keys: QueueKeys, items: Sequence[Replay], clock: str = "") -> Call[list[str]]:
    """Put dead jobs back; per job OK, GONE, its promise, or the id of the job that holds its dedupe key."""
    table = KeyTable(keys.stream, keys.dead, keys.dead_ids, keys.moved, keys.totals, keys.metrics, keys.latest)
    words: list[Word] = [clock]
    for item in items:
        key = table.position(keys.dedupe(item.dedupe_key) if item.dedupe_key else "")
        body = b"=" if item.body is None else b"!" + item.body
        words += (item.entry, item.job, item.meta, body, key, item.window_ms or DEDUPE_TTL_MS)
        words.append("" if item.newer is None else item.newer)
    return Call("replay", table.keys, words, _texts)


def purge(keys: QueueKeys, items: Sequence[Purge], clock: str = "") -> Call[list[str]]:
    """Delete dead jobs; per job OK, GONE, or its promise."""
    table = KeyTable(keys.dead, keys.dead_ids, keys.totals, keys.metrics)
    words: list[Word] = [clock]
    for item in items:
        words += (item.entry, item.job, table.position(keys.dedupe(item.dedupe_key) if item.dedupe_key else ""))
    return Call("purge", table.keys, words, _texts)


def promise(keys: QueueKeys, queue: str, items: Sequence[tuple[str, str]], clock: str = "") -> Call[list[str]]:
    """Promise dead jobs, each by its entry and its local id, to a queue; per job the promise that holds, or GONE."""
    return Call(
        "promise", [keys.dead, keys.dead_ids], [clock, queue, *(word for item in items for word in item)], _texts
    )


def adopt(keys: QueueKeys, items: Sequence[Adoption], clock: str = "") -> Call[list[str]]:
    """Begin promised jobs anew; per job its new local id, `!` and who holds its dedupe key, or UNSURE."""
    table = KeyTable(keys.stream, keys.latest, keys.totals, keys.metrics)
    words: list[Word] = [clock]
    for item in items:
        asked = table.position(keys.promise(item.job_id, item.entry, item.promised.at_ms))
        key = table.position(keys.dedupe(item.dedupe_key) if item.dedupe_key else "")
        words += (asked, str(item.promised), item.kind, item.body, item.meta, key, item.window_ms or DEDUPE_TTL_MS)
        words += (item.former, "" if item.newer is None else item.newer)
    return Call("adopt", table.keys, words, _texts)


def handover(keys: QueueKeys, items: Sequence[Handover], clock: str = "") -> Call[list[str]]:
    """End promises; per job OK or GONE."""
    table = KeyTable(keys.dead, keys.dead_ids, keys.totals, keys.metrics)
    words: list[Word] = [clock]
    for item in items:
        became = table.position(keys.became(item.job))
        key = table.position(keys.dedupe(item.dedupe_key) if item.dedupe_key else "")
        words += (item.entry, item.job, str(item.promised), became, item.became, key)
    return Call("handover", table.keys, words, _texts)


def restore(keys: QueueKeys, items: Sequence[Restore], clock: str = "") -> Call[list[str]]:
    """Put exported jobs back among the dead; per job OK, or DEAD or LIVE where it is there already."""
    named = [keys.stream, keys.moved, keys.bodies, keys.dead, keys.dead_ids, keys.totals, keys.metrics]
    words: list[Word] = [clock]
    for item in items:
        words += (item.job, item.fields.get(b"kind", b""), 2 + 2 * len(item.fields), "id", item.job)
        words += (word for pair in item.fields.items() for word in pair)
    return Call("restore", named, words, _texts)


class Trimmed(msgspec.Struct, frozen=True):
    """What one step of keeping no more dead jobs than are to be kept has done."""

    deleted: int
    more: bool
    """Whether there may be more to delete."""
    kept: str
    """A count, `<ms>ms`, or "" for all."""


def trim(keys: QueueKeys, most: int = MAX_BATCH_JOBS, clock: str = "") -> Call[Trimmed]:
    """Delete the oldest dead jobs of those that are not to be kept; at most so many."""
    named = [keys.dead, keys.dead_ids, keys.totals, keys.metrics, keys.config]
    return Call("trim", named, [clock, most], lambda raw: Trimmed(raw[0], raw[1] == 1, raw[2].decode()))
