"""How claims come to a worker and stay with it: read, take, reclaim, renew, suspect, release."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from streamjobs.core.job import Claim
from streamjobs.protocol.calls import Call, Command, Word
from streamjobs.protocol.keys import GROUP, QueueKeys

RECLAIM_MOST = 20
RECLAIM_WINDOW = 500
"""Pending entries that one step of a sweep passes; about 0.1 ms of the server's time."""
SWEEP_BEGIN = "-"
RETIRE_MOST = 500
"""Consumers that one call forgets; about 2 ms of the server's time."""

_NOTED = re.compile(r"(-?\d{1,15}) (\d{1,15})((?: \S+)*)")
"""As lua/include/suspects.lua writes it."""

Words = dict[int, str]
"""What was not done, by index; an empty one means that everything was."""


class Renewal(msgspec.Struct, frozen=True):
    """One claim whose lease is to begin anew."""

    entry: bytes
    deliveries: int
    job: str
    dedupe_key: str = ""


class Start(msgspec.Struct, frozen=True):
    """One claim whose handler is about to begin: its dedupe key to give back, or "" to take newer arguments."""

    entry: bytes
    deliveries: int
    job: str
    dedupe_key: str = ""


class Begun(msgspec.Struct, frozen=True):
    """What a claim begins with: how many starts took newer arguments, and these; None for its entry's own."""

    newer: int = 0
    body: bytes | None = None


class Giveback(msgspec.Struct, frozen=True):
    """One claim to release: marks to take back, whether it waited in vain for a process of its own, and
    whether it is left for such a process, which finds it by its sweep: no bell rings.
    """

    entry: bytes
    deliveries: int
    mark: int
    held_alone: bool = False
    quiet: bool = False


class Joined(msgspec.Struct, frozen=True):
    """What a worker is told when it joins a queue, or heals it."""

    lease_ms: int
    now_ms: int
    """The server's time."""


class Swept(msgspec.Struct, frozen=True):
    """One step of a sweep: where the next goes on, and what was claimed."""

    cursor: str
    claims: list[Claim]
    empty: bool
    """Whether nothing at all is pending: nothing can be silent before a lease has passed."""


class KeyTable:
    """The keys of one call: fixed ones, then those of single jobs, named in arguments by position."""

    def __init__(self, *fixed: str) -> None:
        self.keys = list(fixed)

    def position(self, key: str) -> int:
        """Declare one more key and return its position, counted from 1; 0 for no key."""
        if not key:
            return 0
        self.keys.append(key)
        return len(self.keys)


def pairs(raw: Sequence[Any]) -> Words:
    """Decode the answer of a settling script: pairs of index and word."""
    return {raw[i]: raw[i + 1].decode() for i in range(0, len(raw), 2)}


def join(keys: QueueKeys, lease_ms: int, *, again: bool = False) -> Call[Joined]:
    """Make the group where there is none, and settle on the queue's lease: this one, unless it has its own.

    `again` from who has seen the group before: that it was lost is then counted.
    """
    named = [keys.stream, keys.config, keys.totals]
    return Call("join", named, [lease_ms, int(again)], lambda raw: Joined(raw[0], raw[1]))


def read(streams: Sequence[str], consumer: str, count: int, block_ms: int | None) -> Command[Any]:
    """Read fresh entries, `count` per stream. The reply stays raw: `claims` decodes a stream's part."""
    words: list[Word] = ["XREADGROUP", "GROUP", GROUP, consumer, "COUNT", count]
    if block_ms is not None:
        words += ("BLOCK", block_ms)
    return Command([*words, "STREAMS", *streams, *[">"] * len(streams)], lambda raw: raw)


def claims(entries: Sequence[Any], now: float) -> list[Claim]:
    """Decode fresh entries; `now` is monotonic."""
    found = []
    for entry, fields in entries:
        if len(fields) == 6 and fields[0] == b"kind" and fields[2] == b"body" and fields[4] == b"meta":
            found.append(Claim(entry, fields[1], fields[3], fields[5], claimed_at=now))
        else:
            found.append(_foreign(entry, fields, now))
    return found


def _foreign(entry: bytes, fields: Sequence[bytes] | None, now: float) -> Claim:
    """Decode an entry that somebody else wrote: fields in any order, meta missing, others beside them."""
    by_name = dict(zip(fields[::2], fields[1::2], strict=False)) if fields else {}
    return Claim(entry, by_name.get(b"kind", b""), by_name.get(b"body", b""), by_name.get(b"meta", b""), claimed_at=now)


def _claimed(rows: Sequence[Any], now: float, consumer: str = "") -> list[Claim]:
    own = f"{consumer}@".encode()
    found = []
    for entry, fields, deliveries, suspect, last in rows:
        claim = claims([(entry, fields)], now)[0]
        claim.deliveries = deliveries
        claim.marks, claim.releases, starts = _noted(suspect)
        if last.startswith(own):
            # This process lives, and it did not know that it held this: a reply was lost, nothing was started.
            claim.unstarted = 1
        elif last and not starts:
            starts = [last.decode()]
        claim.starts = " ".join(starts)
        found.append(claim)
    return found


def _noted(suspect: bytes) -> tuple[int, int, list[str]]:
    """Decode what was noted of an entry, if it is ours: marks, releases, and the starts that never ended."""
    noted = _NOTED.fullmatch(suspect.decode("utf-8", "replace"))
    return (int(noted[1]), int(noted[2]), noted[3].split()) if noted else (0, 0, [])


def take(keys: QueueKeys, consumer: str, most: int, now: float) -> Call[list[Claim]]:
    """Claim at most `most` entries that were given back."""
    return Call(
        "take",
        [keys.stream, keys.released, keys.suspects, keys.config],
        [consumer, most],
        lambda raw: _claimed(raw, now),
    )


def reclaim(
    keys: QueueKeys, consumer: str, lease_ms: int, cursor: str, most: int, now: float, clock: str = ""
) -> Call[Swept]:
    """Claim at most `most` entries silent for a lease, in one step of a sweep from `cursor` on."""
    return Call(
        "reclaim",
        [keys.stream, keys.released, keys.suspects, keys.totals, keys.line, keys.config],
        [clock, consumer, lease_ms, cursor, most, RECLAIM_WINDOW],
        lambda raw: Swept(raw[0].decode() or SWEEP_BEGIN, _claimed(raw[1:], now, consumer), not raw[0]),
    )


def renew(keys: QueueKeys, consumer: str, renewals: Sequence[Renewal]) -> Call[Words]:
    """Make leases begin anew; what could not be is LOST or CANCELLED, by index."""
    table = KeyTable(keys.stream)
    words: list[Word] = [consumer]
    for item in renewals:
        key = keys.dedupe(item.dedupe_key) if item.dedupe_key else ""
        words += (item.entry, item.deliveries, item.job, table.position(key))
    return Call("renew", table.keys, words, pairs)


def suspect(keys: QueueKeys, consumer: str, marked: Sequence[Claim], clock: str = "") -> Call[Words]:
    """Mark claims that were delivered before, just before they start; LOST ones must not start."""
    words: list[Word] = [clock, consumer]
    for claim in marked:
        words += (claim.entry, claim.deliveries, claim.starts)
    return Call("suspect", [keys.stream, keys.suspects], words, pairs)


def start(keys: QueueKeys, consumer: str, starts: Sequence[Start]) -> Call[list[Begun | None]]:
    """Tell the server which handlers are about to begin; at most 100. None for a claim that is LOST."""
    table = KeyTable(keys.stream, keys.latest)
    words: list[Word] = [consumer]
    for item in starts:
        key = keys.dedupe(item.dedupe_key) if item.dedupe_key else ""
        words += (item.entry, item.deliveries, item.job, table.position(key))
    return Call("start", table.keys, words, lambda raw: [_begun(row) for row in raw])


def _begun(row: Sequence[Any]) -> Begun | None:
    return None if row[0] == b"LOST" else Begun(row[0], row[1] or None)


def release(keys: QueueKeys, consumer: str, lease_ms: int, givebacks: Sequence[Giveback]) -> Call[Words]:
    """Give claims back for another worker to take at once."""
    words: list[Word] = [consumer, lease_ms]
    for item in givebacks:
        words += (item.entry, item.deliveries, item.mark, 2 if item.quiet else int(item.held_alone))
    return Call("release", [keys.stream, keys.released, keys.suspects, keys.bell, keys.totals], words, pairs)


def retire(keys: QueueKeys, consumers: Sequence[str]) -> Call[int]:
    """Forget those of these consumers that hold nothing; at most `RETIRE_MOST`."""
    return Call("retire", [keys.stream, keys.workers, keys.promoter, keys.bell], list(consumers), int)


def retire_all(keys: QueueKeys, consumers: Sequence[str]) -> list[Call[int]]:
    """As `retire`, of any number: a loop of crashes leaves thousands."""
    return [retire(keys, consumers[at : at + RETIRE_MOST]) for at in range(0, len(consumers), RETIRE_MOST)]
