"""All peers in one run: each repeat goes through all of them, so that a slow minute hits its neighbours too."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ..measure import Spread
from ..progress import tell
from ..server import running
from .bout import WAYS, Bout, Failed, bout
from .catalogue import BARE, CONFIGS, OURS, Config, Peer
from .document import Row
from .environments import NotInstalled, python_of, version_of

DOUBTFUL = 0.7
"""Of what an adapter is known to have of the bare loop."""
MANY = 10
"""So many times the jobs for those whose bulk would else be over before it can be measured."""


class Terms(msgspec.Struct, frozen=True):
    """How much is measured: repeats, jobs added one by one, and about how long each drain is."""

    repeats: int
    jobs: int
    drain_s: float


FULL = Terms(5, 5000, 3.0)
QUICK = Terms(3, 1000, 1.0)


class Found:
    """What one peer in one configuration has shown so far."""

    def __init__(self, peer: Peer, config: str) -> None:
        self.peer, self.config = peer, config
        self.python: Path | None = None
        self.version = ""
        self.failed: str | None = None
        self.rates: dict[str, list[float]] = {}
        self.bytes: list[float] = []

    def note(self, what: str, rate: float | None) -> None:
        """Take down one rate, if there is one."""
        if rate is not None:
            self.rates.setdefault(what, []).append(rate)

    def row(self, bare: "Found | None") -> Row:
        """Return the row, judged by the bare loop beside it."""
        row = Row(peer=self.peer.name, config=self.config, version=self.version, failed=self.failed)
        if self.failed:
            return row
        spreads = {what: Spread.of(rates, 0) for what, rates in self.rates.items()}
        memory = Spread.of(self.bytes, 0).median if self.bytes else None
        doubtful = too_slow(self.peer.configs[self.config == "fast"], self.rates, bare.rates if bare else {})
        return msgspec.structs.replace(row, **spreads, bytes_per_waiting_job=memory, doubtful=doubtful)


def too_slow(config: Config, rates: dict[str, list[float]], bare: dict[str, list[float]]) -> list[str]:
    """Return what has far less of the bare loop, at the median, than it is known to have."""
    found = []
    for what, known in (("one", config.one_ratio), ("one_awaited", config.one_ratio), ("drain", config.drain_ratio)):
        base = bare.get("one" if what == "one_awaited" else what)
        if what in rates and base and Spread.of(rates[what], 6).median < DOUBTFUL * known * Spread.of(base, 6).median:
            found.append(what)
    return found


def play(peers: Sequence[Peer], terms: Terms, where: Path) -> list[Row]:
    """Measure the peers in both configurations; the bare loop and ours are always among them."""
    founds = [Found(peer, config) for peer in peers for config in CONFIGS]
    for found in founds:
        try:
            found.python = python_of(found.peer, where)
            found.version = version_of(found.peer, found.python)
        except NotInstalled as error:
            found.failed = f"not installed: {error}"
    steps = terms.repeats * len(founds)
    for repeat in range(terms.repeats):
        order = founds if repeat % 2 == 0 else founds[::-1]
        for step, found in enumerate(order, repeat * len(founds) + 1):
            tell("peers", step, steps, _once(found, terms))
    return _rows(founds)


def _rows(founds: Iterable[Found]) -> list[Row]:
    by_name = {(found.peer.name, found.config): found for found in founds}
    return [found.row(by_name.get((BARE, found.config))) for found in by_name.values()]


def _once(found: Found, terms: Terms) -> str:
    name = f"{found.peer.name} {found.config}"
    if found.failed or found.python is None:
        return f"{name}: {found.failed}"
    with running(tcp=True) as url, bout(url, found.peer, found.config, found.python) as one:
        try:
            drained = _measure(one, found, terms)
        except Failed as error:
            found.failed = str(error)
            return f"{name}: {error}"
    return f"{name}: drains {drained:,.0f} jobs/s"


def _measure(one: Bout, found: Found, terms: Terms) -> float:
    for way in WAYS:
        jobs = terms.jobs
        if way in ("together", "bulk"):
            jobs *= 2 if found.peer.name not in (BARE, OURS) else 2 * MANY
        found.note(way, one.add(way, jobs))
    drained, taken = one.drain(terms.drain_s)
    found.note("drain", drained)
    found.bytes.append(taken)
    return drained
