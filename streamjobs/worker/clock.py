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
"""Beats come every 0.1 s; a gap as long as this is taken for a freeze, or a blocked event loop."""

WHILE_S = 5.0


class Pulse:
    """Notices when this process stood still: what arrived meanwhile is older than it looks."""

    def __init__(self) -> None:
        self._beat_at = self._since = monotonic()
        self._still = (0.0, 0.0)
        self._longest, self._before = 0.0, 0.0
        """The longest gap of this while, and of the one before."""

    def beat(self) -> None:
        """Show that the event loop moves."""
        now = monotonic()
        gap = now - self._beat_at
        if gap > STILL_S:
            self._still = (self._beat_at, now)
        self._longest = max(self._longest, gap)
        if now - self._since > WHILE_S:
            self._since, self._before, self._longest = now, self._longest, 0.0
        self._beat_at = now

    @property
    def lag_s(self) -> float:
        """By how much the event loop was late at most, in the last 5 to 10 s."""
        return max(0.0, max(self._longest, self._before) - BEAT_S)

    def arrived_at(self, sent_at: float) -> float:
        """Return when the reply to a request of `sent_at`, seen just now, may have come at the earliest."""
        self.beat()
        begin, end = self._still
        return max(sent_at, begin) if end > sent_at else self._beat_at
