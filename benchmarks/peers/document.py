"""What a run of the peers writes: schema `streamjobs.bench.peers`, version 1."""

import msgspec

from ..document import Machine
from ..measure import Spread

SCHEMA = "streamjobs.bench.peers"
VERSION = 1


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One peer in one configuration; jobs per second, None where it has no such way.

    A row that is `doubtful` has far less of the bare loop than its adapter is known to have, and does not count.
    """

    peer: str
    config: str
    version: str = ""
    one: Spread | None = None
    """One by one from plain code."""
    one_awaited: Spread | None = None
    """One by one, each awaited."""
    together: Spread | None = None
    """By 100 tasks at once."""
    bulk: Spread | None = None
    drain: Spread | None = None
    """By one worker."""
    bytes_per_waiting_job: float | None = None
    of_bare: dict[str, Spread] = {}
    """What `one`, `one_awaited` and `drain` are of the bare loop that ran just before, repeat by repeat."""
    doubtful: list[str] = []
    """What is too slow to be true."""
    failed: str | None = None
    """Why there are no figures."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One run, with everything needed to repeat it."""

    schema: str = SCHEMA
    version: int = VERSION
    machine: Machine
    command: list[str]
    started_at: str
    versions: dict[str, str]
    commit: str | None
    repeats: int
    rows: list[Row]

    def encode(self) -> bytes:
        """Return the document as indented JSON that ends with a newline."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"
