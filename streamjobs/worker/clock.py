"""The server's clock as this process sees it, and whether this process stood still."""

from time import monotonic


class ServerClock:
    """The server's time, kept between the replies that carry it.

    Dates logs and counters; decides nothing but whether a job has expired.
    """

    def __init__(self) -> None:
        self.offset_ms = 0.0
        """Added to monotonic milliseconds, it gives the server's time."""

    def sync(self, now_ms: int) -> None:
        """Take note of the server's time as of now."""
        self.offset_ms = now_ms - monotonic() * 1000

    def now_ms(self) -> int:
        """Return the server's time as it should be now."""
        return int(monotonic() * 1000 + self.offset_ms)


BEAT_S = 0.1
STILL_S = 0.3
"""A gap between two beats that is as long as this is taken for a freeze, or a blocked event loop."""
LAG_S = 30.0
"""The worst gap is remembered for this long at least, and for twice as long at most."""


class Pulse:
    """Notices when this process stood still: what arrived meanwhile is older than it looks."""

    def __init__(self) -> None:
        self._beat_at = monotonic()
        self._still = (0.0, 0.0)
        self._worst = self._worst_before = 0.0
        self._turn_at = 0.0

    def beat(self) -> None:
        """Show that the event loop moves."""
        now = monotonic()
        gap = now - self._beat_at
        if gap > STILL_S:
            self._still = (self._beat_at, now)
        if now >= self._turn_at:
            # The first beat tells when they begin, and of no gap.
            self._worst_before, self._worst = self._worst, gap if self._turn_at else 0.0
            self._turn_at = now + LAG_S
        elif gap > self._worst:
            self._worst = gap
        self._beat_at = now

    @property
    def lag_s(self) -> float:
        """By how much the event loop came late at worst, of late. Of any thread."""
        return max(0.0, max(self._worst, self._worst_before) - BEAT_S)

    def arrived_at(self, sent_at: float) -> float:
        """Return when the reply to a request of `sent_at`, seen just now, may have come at the earliest."""
        self.beat()
        begin, end = self._still
        return max(sent_at, begin) if end > sent_at else self._beat_at
