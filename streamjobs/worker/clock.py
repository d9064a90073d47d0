"""The server's clock as this process sees it."""

from time import monotonic


class ServerClock:
    """The server's time, kept between the replies that carry it. Decides nothing; dates logs and counters."""

    def __init__(self) -> None:
        self.offset_ms = 0.0
        """Added to monotonic milliseconds, it gives the server's time."""

    def sync(self, now_ms: int) -> None:
        """Take note of the server's time as of now."""
        self.offset_ms = now_ms - monotonic() * 1000

    def now_ms(self) -> int:
        """Return the server's time as it should be now."""
        return int(monotonic() * 1000 + self.offset_ms)
