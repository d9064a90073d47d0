"""Gather how long jobs waited and ran, and write it once a second: as histograms, so that its size is bounded.

With each batch that is settled it would cost the server a fifth more. What a worker has gathered since it wrote
last is lost with its process.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

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


class Times:
    """Measures executions that have ended; a service whose tick writes what there is."""

    name = "times"

    def __init__(self, station: Station) -> None:
        self._executor = station.executor
        self._clock = station.clock
        self._complaints = station.complaints
        self._gathered: dict[QueueKeys, Fields] = {}

    def add(self, keys: QueueKeys, kind: str, executions: Sequence[Execution]) -> None:
        """Take in a batch of one kind; those that were never started do not count."""
        ran = [one for one in executions if one.started]
        if not ran:
            return
        run_us = [int(one.ran_s * 1_000_000) for one in ran]
        wait_ms = self._waits_ms(ran)
        fields = self._gathered.setdefault(keys, Counter())
        fields[kind, "ran"] += len(ran)
        for name, total, values in (("run", "run_us", run_us), ("wait", "wait_ms", wait_ms)):
            fields[kind, total] += max(0, sum(values))
            for index, count in folded(values).items():
                fields[kind, f"{name}.{index}"] += count

    def _waits_ms(self, ran: Sequence[Execution]) -> list[int]:
        offset_ms = self._clock.offset_ms
        digits, ready_ms, waits = b"", 0, []
        for one in ran:
            # An entry's id begins with the ms at which it became ready, many at once where there are many. One
            # chosen by hand may have fewer digits, or lie in the future.
            if (first := one.claim.entry[:DIGITS]) != digits:
                digits, ready_ms = first, int(first.partition(b"-")[0])
            waits.append(int(one.started * 1000 + offset_ms) - ready_ms)
        return waits

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
