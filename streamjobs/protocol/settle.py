"""How decisions are written: complete, retry, snooze, bury, cancel; each for a batch of one queue."""

from collections.abc import Sequence

import msgspec

from streamjobs.protocol.calls import Call, Word
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.leases import KeyTable, Words, pairs

Sums = dict[str, int]
"""What is added to the minute's counters of a kind, per field."""


class Ending(msgspec.Struct, frozen=True, gc=False):
    """One claim to settle: the fence, and what else belongs to its job."""

    entry: bytes
    deliveries: int
    job: str
    dedupe_key: str = ""
    result_ttl_ms: int = 0
    result: bytes = b""
    """How the job ended, kept for `result_ttl_ms`."""
    newer: int | None = None
    """How many starts had taken newer arguments when this one began; None for a job that takes none."""


class Postponement(msgspec.Struct, frozen=True):
    """One claim to run again later, with the meta that it then carries."""

    ending: Ending
    delay_ms: int
    meta: bytes


class Death(msgspec.Struct, frozen=True):
    """One claim to bury."""

    ending: Ending
    reason: str
    error: str
    attempts: int
    history: bytes


class Finished(msgspec.Struct, frozen=True):
    """Successes of one kind: `plain` entries that own nothing else, or `full` ones that do."""

    kind: str
    plain: Sequence[bytes] = ()
    full: Sequence[Ending] = ()
    sums: Sums = {}


def _sums(sums: Sums) -> list[Word]:
    return [word for pair in sums.items() for word in pair]


def _owned(keys: QueueKeys, table: KeyTable, ending: Ending) -> tuple[int, int]:
    """Declare the dedupe and the result key of a job; return their positions."""
    dedupe = keys.dedupe(ending.dedupe_key) if ending.dedupe_key else ""
    result = keys.result(ending.job) if ending.result_ttl_ms else ""
    return table.position(dedupe), table.position(result)


def complete(keys: QueueKeys, groups: Sequence[Finished], clock: str = "") -> Call[Words]:
    """End entries as done; the indexes of the answer run over all groups, plain entries first in each."""
    table = KeyTable(keys.stream, keys.released, keys.suspects, keys.moved, keys.totals, keys.metrics)
    table.keys += (keys.latest, keys.ids, keys.scheduled, keys.bodies, keys.bell)
    words: list[Word] = [clock, keys.done]
    for group in groups:
        sums = group.sums
        if group.plain:
            words += (group.kind, "plain", len(group.plain), len(sums), *_sums(sums))
            words += group.plain
            sums = {}
        if group.full:
            words += (group.kind, "full", len(group.full), len(sums), *_sums(sums))
            for item in group.full:
                words += (item.entry, item.job, *_owned(keys, table, item), item.result_ttl_ms, item.result)
                words.append("" if item.newer is None else item.newer)
    return Call("complete", table.keys, words, pairs)


def retry(
    keys: QueueKeys,
    consumer: str,
    groups: Sequence[tuple[str, Sums, Sequence[Postponement]]],
    clock: str = "",
) -> Call[Words]:
    """Send failed claims, grouped by kind, to the set of retries."""
    table = KeyTable(keys.stream, keys.retries, keys.bodies, keys.moved, keys.suspects, keys.scheduled)
    return _postpone("retry", keys, table, consumer, groups, clock)


def snooze(
    keys: QueueKeys,
    consumer: str,
    groups: Sequence[tuple[str, Sums, Sequence[Postponement]]],
    clock: str = "",
) -> Call[Words]:
    """Send claims, grouped by kind, to the set of scheduled ones, uncharged."""
    table = KeyTable(keys.stream, keys.scheduled, keys.bodies, keys.moved, keys.suspects, keys.retries)
    return _postpone("snooze", keys, table, consumer, groups, clock)


def _postpone(
    script: str,
    keys: QueueKeys,
    table: KeyTable,
    consumer: str,
    groups: Sequence[tuple[str, Sums, Sequence[Postponement]]],
    clock: str,
) -> Call[Words]:
    table.keys += (keys.bell, keys.totals, keys.metrics)
    words: list[Word] = [clock, consumer]
    for kind, sums, items in groups:
        words += (kind, len(items), len(sums), *_sums(sums))
        for item in items:
            ending = item.ending
            key = table.position(keys.dedupe(ending.dedupe_key) if ending.dedupe_key else "")
            words += (ending.entry, ending.deliveries, ending.job, item.delay_ms, item.meta, key)
    return Call(script, table.keys, words, pairs)


def bury(
    keys: QueueKeys, consumer: str, groups: Sequence[tuple[str, Sums, Sequence[Death]]], clock: str = ""
) -> Call[Words]:
    """Send claims, grouped by kind, to the dead stream."""
    table = KeyTable(keys.stream, keys.dead, keys.dead_ids, keys.moved, keys.suspects, keys.totals, keys.metrics)
    table.keys += (keys.latest, keys.ids, keys.scheduled, keys.bodies, keys.bell)
    words: list[Word] = [clock, consumer, keys.done]
    for kind, sums, items in groups:
        words += (kind, len(items), len(sums), *_sums(sums))
        for item in items:
            ending = item.ending
            words += (ending.entry, ending.deliveries, ending.job, item.reason, item.error, item.attempts)
            words += (item.history, *_owned(keys, table, ending), ending.result_ttl_ms, ending.result)
    return Call("bury", table.keys, words, pairs)


SPARING = "-"
"""In the place of a consumer: an operator who cancels only what does not run."""


def cancel(keys: QueueKeys, consumer: str, items: Sequence[Ending], clock: str = "") -> Call[list[str]]:
    """End jobs as cancelled; a word per job says what it was, or why it stays.

    `consumer` and each item's entry and deliveries are the fence of a worker; "" is an operator,
    who needs none, and so is SPARING.
    """
    table = KeyTable(keys.stream, keys.moved, keys.scheduled, keys.retries, keys.bodies, keys.dead_ids)
    table.keys += (keys.released, keys.suspects, keys.totals, keys.metrics, keys.latest, keys.ids, keys.bell)
    words: list[Word] = [clock, consumer, keys.done]
    for item in items:
        words += (item.job, item.entry, item.deliveries, *_owned(keys, table, item))
        words += (item.result_ttl_ms, item.result)
    return Call("cancel", table.keys, words, lambda raw: [word.decode() for word in raw])
