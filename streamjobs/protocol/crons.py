"""Crons on the server: which worker knows which, where each stands, and the jobs of their slots."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from streamjobs.core.cron import Cron, Turn
from streamjobs.core.job import FRESH, Meta
from streamjobs.protocol.calls import Call, Command, Word
from streamjobs.protocol.intake import MAX_BATCH_BYTES
from streamjobs.protocol.keys import QueueKeys

MOST_SLOTS = 100
_STANDING = re.compile(r"(\d+) (\d+) (\d+) (\d+) (\d+) (\S+) (.*)\Z")


class Standing(msgspec.Struct, frozen=True):
    """Where a worker's cron stands, as its plan was answered."""

    last_ms: int
    """The last slot that was dealt with; 0 for none."""
    after_ms: int
    """The slots after this instant count."""


class Ticked(msgspec.Struct, frozen=True):
    """What became of the slots of one call."""

    word: str
    """OK, DUPLICATE, PAUSED, EARLY or UNKNOWN."""
    last_ms: int
    wait_ms: int
    jobs: list[str]


class Definition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A cron as workers show it to operators."""

    name: str
    kind: str
    body: msgspec.Raw
    schedule: str
    catch_up: str
    jitter_ms: int = 0
    meta: Meta = FRESH


class Row(msgspec.Struct, frozen=True):
    """Where a cron stands, as operators read it."""

    last_ms: int
    since_ms: int
    runs: int
    late: int
    skipped: int
    job: str
    """The local id of the last run's job; empty for none."""
    schedule: str


def plan(keys: QueueKeys, consumer: str, note: str, crons: Sequence[Cron], clock: str = "") -> Call[list[Standing]]:
    """Say which crons a worker schedules, and read where they stand, in order; `note` is kept as by `promote`."""
    words: list[Word] = [clock, consumer, note, msgspec.json.encode([_definition(cron) for cron in crons])]
    for cron in crons:
        words += (cron.name, cron.schedule.text)
    named = [keys.stream, keys.cron, keys.cron_holds, keys.cron_code, keys.workers]
    return Call("plan", named, words, _standings)


def _definition(cron: Cron) -> Definition:
    job = cron.job
    return Definition(
        cron.name, job.kind, msgspec.Raw(job.body), cron.schedule.text, cron.catch_up, cron.jitter_ms, job.meta
    )


def _standings(raw: Sequence[int]) -> list[Standing]:
    return [Standing(raw[i], raw[i + 1]) for i in range(0, len(raw), 2)]


def tick(keys: QueueKeys, cron: Cron, last_ms: int, turn: Turn, clock: str = "") -> Call[Ticked]:
    """Enqueue the slots of a turn, the first 100 of them; `last_ms` is the last slot that it was decided upon."""
    job = cron.job
    words: list[Word] = [clock, cron.name, last_ms, cron.schedule.text, turn.passed, turn.passed_to_ms]
    words += (job.kind, job.body)
    for due in turn.runs[: max(1, min(MOST_SLOTS, MAX_BATCH_BYTES // (len(job.body) + 1)))]:
        words += (due.slot_ms, due.at_ms, int(due.late_ms > 0), cron.meta(due))
    return Call("tick", [keys.stream, keys.cron, keys.cron_holds, keys.totals, keys.metrics], words, _ticked)


def _ticked(raw: Sequence[Any]) -> Ticked:
    return Ticked(raw[0].decode(), raw[1], raw[2], [job.decode() for job in raw[3:]])


def rows(keys: QueueKeys) -> Command[dict[str, Row]]:
    """Read where the crons of a queue stand, by name."""
    return Command(["HGETALL", keys.cron], _rows)


def _rows(raw: Sequence[bytes]) -> dict[str, Row]:
    found = ((name, _row(value)) for name, value in _texts(raw))
    return {name: row for name, row in found if row is not None}


def _row(value: str) -> Row | None:
    match = _STANDING.match(value)
    if match is None:
        return None
    last, since, runs, late, skipped = map(int, match.groups()[:5])
    return Row(last, since, runs, late, skipped, match[6].strip("-"), match[7])


def paused(keys: QueueKeys) -> Command[set[str]]:
    """Read the names of the crons that are paused."""
    return Command(["HGETALL", keys.cron_holds], _paused)


def _paused(raw: Sequence[bytes]) -> set[str]:
    return {name for name, value in _texts(raw) if value.startswith("paused")}


def pause(keys: QueueKeys, name: str, now_ms: int) -> Command[int]:
    """Let the slots of a cron be passed over."""
    return Command(["HSET", keys.cron_holds, name, f"paused {now_ms}"], int)


def resume(keys: QueueKeys, name: str, now_ms: int) -> Command[int]:
    """Let a cron run again: the slots after this instant."""
    return Command(["HSET", keys.cron_holds, name, f"resumed {now_ms}"], int)


def code(keys: QueueKeys) -> Command[dict[str, list[Definition]]]:
    """Read which crons each worker schedules, or did."""
    return Command(["HGETALL", keys.cron_code], _code)


def _code(raw: Sequence[bytes]) -> dict[str, list[Definition]]:
    found = {}
    for worker, value in zip(raw[::2], raw[1::2], strict=True):
        try:
            found[worker.decode()] = msgspec.json.decode(value, type=list[Definition])
        except ValueError:
            # Another version's, or not ours: its crons go on, they are only not shown.
            continue
    return found


def _texts(raw: Sequence[bytes]) -> list[tuple[str, str]]:
    words = [word.decode("utf-8", "replace") for word in raw]
    return list(zip(words[::2], words[1::2], strict=True))
