"""What a run of the peers writes: schema `streamjobs.bench.peers`, version 1."""

import msgspec

from ..document import Written
from ..measure import Spread

SCHEMA = "streamjobs.bench.peers"
VERSION = 1


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One peer in one configuration; jobs per second where nothing else is said, None for what it has not.

    What is `doubtful` has far less of the bare loop than the adapter is known to have, and does not count.
    """

    peer: str
    config: str
    version: str = ""
    one: Spread | None = None
    """Added one by one from plain code."""
    one_awaited: Spread | None = None
    """One by one, each awaited."""
    together: Spread | None = None
    """By 100 tasks at once."""
    bulk: Spread | None = None
    drain: Spread | None = None
    """Run by one worker."""
    two: Spread | None = None
    """By two workers, from when both are at work."""
    plain: Spread | None = None
    """By one worker whose handler is a plain function."""
    latency_p50_ms: Spread | None = None
    """From the call that adds a job to its start, at 100 a second."""
    latency_p99_ms: Spread | None = None
    bytes_per_waiting_job: float | None = None
    of_bare: dict[str, Spread] = {}
    """What `one`, `one_awaited` and `drain` are of the bare loop that ran just before, repeat by repeat."""
    doubtful: list[str] = []
    """What is too slow to be true."""
    better: list[str] = []
    """What is better, at the median, than streamjobs in the same configuration."""
    lacking: dict[str, str] = {}
    """Why there is no such figure: what the peer does not have."""
    broken: dict[str, str] = {}
    """What the peer has and did not do as it should, and how that ended."""
    failed: str | None = None
    """Why there are no figures at all."""

    def median(self, what: str) -> float | None:
        """Return one of the figures."""
        figure: Spread | float | None = getattr(self, what)
        return figure.median if isinstance(figure, Spread) else figure


class Document(Written, frozen=True, kw_only=True):
    """One run, with everything needed to repeat it."""

    schema: str = SCHEMA
    version: int = VERSION
    repeats: int
    rows: list[Row]
