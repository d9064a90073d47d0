"""What workers and operators say beside claiming and settling: promote, reschedule, lookup, pause; what they read."""

from collections.abc import Sequence
from typing import Any

import msgspec

from streamjobs.core.numbers import whole
from streamjobs.protocol.calls import Call, Command, Word
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


def promote(
    keys: QueueKeys, consumer: str, *, rung: bool, note: str, room: int, most: int = PROMOTE_MOST, clock: str = ""
) -> Call[Promoted]:
    """Move due jobs to the stream, while no more than `room` wait there, or more came there by other ways; and let go
    who waits in a lane with room.

    `note` is kept beside the time this worker was last seen.
    """
    named = [keys.stream, keys.scheduled, keys.retries, keys.bodies, keys.moved, keys.promoter]
    return Call(
        "promote",
        [*named, keys.workers, keys.totals, keys.dedupe(""), *keys.lanes, keys.metrics],
        [clock, consumer, most, int(rung), note, room],
        lambda raw: Promoted(raw[0], raw[1], raw[2] == 1, raw[3], raw[4]),
    )


class Reschedule(msgspec.Struct, frozen=True):
    """One scheduled job, and its new time: `delay_ms` from the server's receipt, or the instant `at_ms`, which wins."""

    job: str
    delay_ms: int = 0
    at_ms: int = 0
    dedupe_key: str = ""


def reschedule(keys: QueueKeys, items: Sequence[Reschedule], clock: str = "") -> Call[list[str]]:
    """Give scheduled jobs another time; per job OK, or GONE where it is not scheduled."""
    table = KeyTable(keys.stream, keys.scheduled, keys.retries, keys.bodies, keys.bell, keys.totals, keys.metrics)
    words: list[Word] = [clock]
    for item in items:
        key = table.position(keys.dedupe(item.dedupe_key) if item.dedupe_key else "")
        words += (item.job, item.delay_ms, item.at_ms, key)
    return Call("reschedule", table.keys, words, lambda raw: [word.decode() for word in raw])


def wait_for_bell(bells: Sequence[str], seconds: float) -> Command[str | None]:
    """Sleep until one of these bells rings; None when the time has passed."""
    return Command(["BLPOP", *bells, f"{seconds:.3f}"], lambda raw: raw[0].decode() if raw else None)


def lookup(keys: QueueKeys, job: str) -> Call[dict[str, bytes]]:
    """Find a job wherever it is; the fields are those of lua/lookup.lua."""
    named = [keys.stream, keys.ids, keys.moved, keys.scheduled, keys.retries, keys.bodies, keys.dead]
    named += [keys.dead_ids, keys.result(job), keys.suspects, keys.latest, keys.became(job)]
    return Call("lookup", named, [job], _fields)


def _fields(raw: Sequence[Any]) -> dict[str, bytes]:
    return {
        raw[i].decode("utf-8", "surrogateescape"): str(raw[i + 1]).encode()
        if isinstance(raw[i + 1], int)
        else raw[i + 1]
        for i in range(0, len(raw), 2)
    }


def pause(keys: QueueKeys) -> Call[bool]:
    """Let no job of the queue start until it is resumed; False if it was paused already."""
    return _pause(keys, "pause")


def resume(keys: QueueKeys) -> Call[bool]:
    """Let the jobs of the queue start again; False if it was not paused."""
    return _pause(keys, "resume")


def _pause(keys: QueueKeys, word: str) -> Call[bool]:
    return Call("pause", [keys.stream, keys.config, keys.workers, keys.bell], [word], bool)


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
        at, _, note = value.decode("utf-8", "replace").partition(" ")
        if at_ms := whole(at):
            found[name.decode("utf-8", "replace")] = at_ms, note
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


def undone(keys: QueueKeys, now_ms: int) -> list[Command[int]]:
    """Count what a burst waits for: entries in the stream, retries, and what else is due; and say 1 last if the
    queue is paused.

    The stream comes first and last, since jobs move from it to the sets and back meanwhile.
    """
    length = Command(["XLEN", keys.stream], int)
    due = Command(["ZCOUNT", keys.scheduled, "-inf", now_ms], int)
    paused = Command(["HEXISTS", keys.config, "paused"], int)
    return [length, Command(["ZCARD", keys.retries], int), due, length, paused]
