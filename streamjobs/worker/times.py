"""Gather how long jobs waited and ran, and write it once a second: as histograms, so that its size is bounded.

With each batch that is settled it would cost the server a fifth more. What a worker has gathered since it wrote
last is lost with its process.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from streamjobs.core.errors import StreamJobsError, Unavailable
from streamjobs.core.histogram import folded
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.metrics import MOST_ROWS, measure
from streamjobs.worker.execution import Execution
from streamjobs.worker.station import Station

EVERY_S = 1.0
DIGITS = 13
"""Of the milliseconds since 1970, until the year 2286."""

Fields: TypeAlias = Counter[tuple[str, str]]
"""By kind and field, what is to be added."""


class Ended(msgspec.Struct, frozen=True):
    """Executions of one kind that are settled together, with the same outcome."""

    keys: QueueKeys
    kind: str
    outcome: str
    """done, retried, snoozed, dead, cancelled or released."""
    count: int
    """Of those released, the ones that were started: the others have not ended."""
    run_us: list[int]
    """How long each ran that was started."""
    wait_ms: list[int]
    """How long each of those was ready before; less than 0 where an entry's id, chosen by hand, lies in the future."""


def ended(keys: QueueKeys, kind: str, outcome: str, executions: Sequence[Execution], offset_ms: float) -> Ended:
    """Measure a batch; `offset_ms`: that of the server's clock."""
    ran = [one for one in executions if one.started]
    run_us = [int(one.ran_s * 1_000_000) for one in ran]
    wait_ms = _waits_ms(ran, offset_ms)
    return Ended(keys, kind, outcome, len(ran) if outcome == "released" else len(executions), run_us, wait_ms)


def _waits_ms(ran: Sequence[Execution], offset_ms: float) -> list[int]:
    digits, ready_ms, waits = b"", 0, []
    for one in ran:
        # An entry's id begins with the ms at which it became ready, many at once where there are many. One
        # chosen by hand may have fewer digits, or lie in the future.
        if (first := one.claim.entry[:DIGITS]) != digits:
            digits, ready_ms = first, int(first.partition(b"-")[0])
        waits.append(int(one.started * 1000 + offset_ms) - ready_ms)
    return waits


class Times:
    """Adds up executions that have ended; a service whose tick writes what there is."""

    name = "times"

    def __init__(self, station: Station) -> None:
        self._executor = station.executor
        self._complaints = station.complaints
        self._gathered: dict[QueueKeys, Fields] = {}

    def add(self, batch: Ended) -> None:
        """Take in a batch. What was interrupted says nothing of how long such a job takes."""
        if not batch.run_us or batch.outcome == "released":
            return
        kind, fields = batch.kind, self._gathered.setdefault(batch.keys, Counter())
        fields[kind, "ran"] += len(batch.run_us)
        for name, total, values in (("run", "run_us", batch.run_us), ("wait", "wait_ms", batch.wait_ms)):
            fields[kind, total] += max(0, sum(values))
            for index, count in folded(values).items():
                fields[kind, f"{name}.{index}"] += count

    async def tick(self) -> float:
        """Write what was gathered. Never an error: a worker must not end because it cannot measure."""
        gathered, self._gathered = self._gathered, {}
        parts = [(keys, part) for keys, fields in gathered.items() for part in _parts(fields)]
        if parts:
            replies = await self._executor.run_all([measure(keys, part) for keys, part in parts])
            for (keys, part), reply in zip(parts, replies, strict=True):
                if isinstance(reply, StreamJobsError):
                    self._complaints.trying_on(self.name, reply)
                if isinstance(reply, Unavailable):
                    # Not written, that is sure; what may have been must not count twice.
                    again = {(kind, field): count for kind, field, count in part}
                    self._gathered.setdefault(keys, Counter()).update(again)
        return EVERY_S


def _parts(fields: Fields) -> list[list[tuple[str, str, int]]]:
    """Return what is to be added, in calls of bounded size."""
    rows = [(kind, field, count) for (kind, field), count in fields.items() if count]
    return [rows[at : at + MOST_ROWS] for at in range(0, len(rows), MOST_ROWS)]
