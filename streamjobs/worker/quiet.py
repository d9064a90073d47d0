"""Let a worker start nothing for a while: what runs goes on, and what it had claimed beside goes to others at once."""

from streamjobs.worker.background import Background
from streamjobs.worker.fetch import Fetcher
from streamjobs.worker.promote import Promoter
from streamjobs.worker.start import Starter
from streamjobs.worker.station import Station


class Quiet:
    """Whether a worker is quiet. Of the worker's own event loop."""

    def __init__(
        self, station: Station, starter: Starter, fetcher: Fetcher, promoter: Promoter | None, background: Background
    ) -> None:
        self._station = station
        self._starter = starter
        self._fetcher = fetcher
        self._promoter = promoter
        self._over = False
        self._background = background
        self.on = False

    def begin(self) -> None:
        """Start nothing from now on, until `end`."""
        if not (self.on or self._over):
            self.on = True
            self._starter.stop()
            # A read that waits on the server would bring something.
            self._background.spawn(self._fetcher.nudge())
            if self._promoter:
                self._background.spawn(self._promoter.turn_deaf())

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
        await self._background.end()
