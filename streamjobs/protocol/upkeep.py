"""What workers and operators say beside claiming and settling: promote, lookup, replay, purge, config."""

from collections.abc import Sequence
from typing import Any

import msgspec

from streamjobs.protocol.calls import Call, Command, Word
from streamjobs.protocol.intake import DEDUPE_TTL_MS
from streamjobs.protocol.keys import GROUP, QueueKeys
from streamjobs.protocol.leases import KeyTable

PROMOTE_MOST = 200


class Promoted(msgspec.Struct, frozen=True):
    """One round of promotion."""

    moved: int
    next_ms: int
    """Until the next job is due; 0 when some are due still, -1 when none is scheduled."""
    leads: bool
    """Whether this worker is the one that sleeps until the next due time."""
    now_ms: int
    """The server's time."""
    woken: int = 0
    """How many waited in a lane and may go on: they are to be taken like what was given back."""


class Replay(msgspec.Struct, frozen=True):
    """One dead job to put back; `body` replaces its arguments where it is not None."""

    entry: str
    job: str
    meta: bytes
    dedupe_key: str = ""
    body: bytes | None = None


def promote(
    keys: QueueKeys, consumer: str, *, rung: bool, note: str, most: int = PROMOTE_MOST, clock: str = ""
) -> Call[Promoted]:
    """Move due jobs to the stream, and let go who waits in a lane with room.

    `note` is kept beside the time this worker was last seen.
    """
    named = [keys.stream, keys.scheduled, keys.retries, keys.bodies, keys.moved, keys.promoter]
    return Call(
        "promote",
        [*named, keys.workers, keys.totals, *keys.lanes],
        [clock, consumer, most, int(rung), note],
        lambda raw: Promoted(raw[0], raw[1], raw[2] == 1, raw[3], raw[4]),
    )


def wait_for_bell(bells: Sequence[str], seconds: float) -> Command[str | None]:
    """Sleep until one of these bells rings; None when the time has passed."""
    return Command(["BLPOP", *bells, f"{seconds:.3f}"], lambda raw: raw[0].decode() if raw else None)


def lookup(keys: QueueKeys, job: str) -> Call[dict[str, bytes]]:
    """Find a job wherever it is; the fields are those of lua/lookup.lua."""
    named = [keys.stream, keys.ids, keys.moved, keys.scheduled, keys.retries, keys.bodies, keys.dead]
    named += [keys.dead_ids, keys.result(job), keys.suspects]
    return Call("lookup", named, [job], _fields)


def _fields(raw: Sequence[Any]) -> dict[str, bytes]:
    return {
        raw[i].decode(): str(raw[i + 1]).encode() if isinstance(raw[i + 1], int) else raw[i + 1]
        for i in range(0, len(raw), 2)
    }


def replay(keys: QueueKeys, items: Sequence[Replay], clock: str = "") -> Call[list[str]]:
    """Put dead jobs back; per job OK, GONE, or the id of the job that holds its dedupe key."""
    table = KeyTable(keys.stream, keys.dead, keys.dead_ids, keys.moved, keys.totals, keys.metrics)
    words: list[Word] = [clock]
    for item in items:
        key = table.position(keys.dedupe(item.dedupe_key) if item.dedupe_key else "")
        body = b"=" if item.body is None else b"!" + item.body
        words += (item.entry, item.job, item.meta, body, key, DEDUPE_TTL_MS)
    return Call("replay", table.keys, words, lambda raw: [word.decode() for word in raw])


def purge(keys: QueueKeys, items: Sequence[tuple[str, str]], clock: str = "") -> Call[list[str]]:
    """Delete dead jobs, given as (dead entry, job); per job OK or GONE."""
    words: list[Word] = [clock]
    for entry, job in items:
        words += (entry, job)
    named = [keys.dead, keys.dead_ids, keys.totals, keys.metrics]
    return Call("purge", named, words, lambda raw: [word.decode() for word in raw])


def get_lease(keys: QueueKeys) -> Command[int]:
    """Read the queue's lease in ms; 0 for none."""
    return Command(["HGET", keys.config, "lease_ms"], lambda raw: int(raw or 0))


def server_time() -> Command[int]:
    """Read the server's time in ms."""
    return Command(["TIME"], lambda raw: int(raw[0]) * 1000 + int(raw[1]) // 1000)


def result(keys: QueueKeys, job: str) -> Command[bytes | None]:
    """Read how a job ended, where that is kept."""
    return Command(["GET", keys.result(job)], lambda raw: raw)


def workers(keys: QueueKeys) -> Command[dict[str, tuple[int, str]]]:
    """Read the queue's workers: server time in ms at which each was last seen, and its note."""
    return Command(["HGETALL", keys.workers], _workers)


def _workers(raw: Sequence[bytes]) -> dict[str, tuple[int, str]]:
    found = {}
    for name, value in zip(raw[::2], raw[1::2], strict=True):
        at, _, note = value.decode().partition(" ")
        found[name.decode()] = int(at), note
    return found


def consumers(keys: QueueKeys) -> Command[dict[str, tuple[int, int]]]:
    """Read the group's consumers: ms since each did anything, and how many entries it holds."""
    return Command(["XINFO", "CONSUMERS", keys.stream, GROUP], _consumers)


def _consumers(raw: Sequence[Sequence[Any]]) -> dict[str, tuple[int, int]]:
    found = {}
    for row in raw:
        fields = dict(zip(row[::2], row[1::2], strict=True))
        found[fields[b"name"].decode()] = fields[b"idle"], fields[b"pending"]
    return found


def undone(keys: QueueKeys) -> list[Command[int]]:
    """Count what a burst waits for: entries in the stream, and retries."""
    return [Command(["XLEN", keys.stream], int), Command(["ZCARD", keys.retries], int)]
