"""Let a worker start nothing for a while: what runs goes on, and what it had claimed beside goes to others at once."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from streamjobs.worker.fetch import Fetcher
from streamjobs.worker.promote import Promoter
from streamjobs.worker.start import Starter
from streamjobs.worker.station import Station
from streamjobs.worker.winddown import end


class Quiet:
    """Whether a worker is quiet. Of the worker's own event loop."""

    def __init__(self, station: Station, starter: Starter, fetcher: Fetcher, promoter: Promoter | None) -> None:
        self._station = station
        self._starter = starter
        self._fetcher = fetcher
        self._promoter = promoter
        self._over = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.on = False

    def begin(self) -> None:
        """Start nothing from now on, until `end`."""
        if not (self.on or self._over):
            self.on = True
            self._starter.stop()
            # A read that waits on the server would bring something.
            self._spawn(self._fetcher.nudge())
            if self._promoter:
                self._spawn(self._promoter.turn_deaf())

    def end(self) -> None:
        """Start again."""
        if self.on and not self._over:
            self.on = False
            for queue in self._station.queues:
                # What was given back is taken before what is fresh.
                queue.rung = True
            self._starter.hold(False)
            if self._promoter:
                self._promoter.listen()

    async def close(self) -> None:
        """Leave everything as it is: the worker ends."""
        self._over = True
        await end(list(self._tasks))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="streamjobs-quiet")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
