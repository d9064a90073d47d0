"""Schedulers without a worker around them, on a clock of the test's."""

from datetime import UTC, datetime
from random import Random
from typing import Any

from streamjobs import StreamJobs
from streamjobs.core.codec import decode_meta
from streamjobs.core.cron import Cron
from streamjobs.protocol import crons
from streamjobs.protocol.leases import claims
from streamjobs.worker.cron import Scheduler
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.station import Station
from tests.worker.support import FAST, Queue

MINUTE_MS = 60_000
NOON_MS = 1_800_014_400_000
"""2027-01-15 12:00 UTC."""


class Killed(BaseException):
    """What ends a scheduler in the middle of its work; nobody may catch it there."""


class Fleet:
    """Schedulers that share a queue and a clock, which stands still but for the test's moves."""

    def __init__(self, app: StreamJobs, queue: Queue) -> None:
        self._app = app
        self._queue = queue
        self._starts = 0
        self.now_ms = NOON_MS

    def start(self, *wanted: Cron) -> Scheduler:
        """Start a scheduler of these crons, by default of the app's."""
        self._starts += 1
        queues = [WorkerQueue(self._queue.keys, 15_000)]
        station = Station(
            self._app.connections.aio(), self._app.namespace, queues, FAST, f"start-{self._starts}", Random(1)
        )
        return Scheduler(station, wanted or list(self._app.registry.crons().values()), lambda: self.now_ms)

    async def run(self, *schedulers: Scheduler, at: float | None = None) -> None:
        """Let each do what is to be done, `at` so many seconds after noon."""
        if at is not None:
            self.now_ms = NOON_MS + round(at * 1000)
        for one in schedulers:
            await one.tick()

    def headers(self) -> list[dict[str, str]]:
        """Return the headers of each job, in order."""
        entries = self._queue.command("XRANGE", self._queue.keys.stream, "-", "+")
        return [decode_meta(claim.meta).headers or {} for claim in claims(entries, 0.0)]

    def slots(self) -> list[float]:
        """Return the slot of each job, in seconds after noon, in order."""
        return [slot_ms(headers) / 1000 - NOON_MS / 1000 for headers in self.headers()]

    def row(self, name: str = "c") -> Any:
        """Return where a cron stands."""
        return self._queue.run(crons.rows(self._queue.keys))[name]


def slot_ms(headers: dict[str, str]) -> int:
    return round(datetime.fromisoformat(headers["cron-slot"]).astimezone(UTC).timestamp() * 1000)
