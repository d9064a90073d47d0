"""All peers in one run, each beside a bare loop of the same minute: the machine may be slower in the next."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ..measure import Spread
from ..progress import tell
from ..server import running
from .bout import WAYS, Bout, Failed, bout
from .catalogue import BARE, CONFIGS, OURS, PEERS, Config, Peer
from .document import Row
from .environments import NotInstalled, python_of, version_of

BESIDE = {"one": "one", "one_awaited": "one", "drain": "drain"}
"""What is compared with which of the bare loop's."""
DOUBTFUL = 0.7
"""Of what an adapter is known to have of the bare loop."""
MANY = 10
"""So many times the jobs for those whose bulk would else be over before it can be measured."""
BESIDE_S = 0.3
"""How long the bare loop drains beside each peer."""


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
        self.ratios: dict[str, list[float]] = {}
        """Of the bare loop that ran just before."""
        self.bytes: list[float] = []

    def note(self, what: str, rate: float | None) -> None:
        """Take down one rate, if there is one."""
        if rate is not None:
            self.rates.setdefault(what, []).append(rate)

    def compare(self, bare: Mapping[str, float]) -> None:
        """Take down what the last rates are of those of the bare loop just before."""
        for what, base in BESIDE.items():
            if what in self.rates and base in bare:
                self.ratios.setdefault(what, []).append(self.rates[what][-1] / bare[base])

    def row(self) -> Row:
        """Return the row, judged by the bare loops beside it."""
        row = Row(peer=self.peer.name, config=self.config, version=self.version, failed=self.failed)
        if self.failed:
            return row
        spreads = {what: Spread.of(rates, 0) for what, rates in self.rates.items()}
        memory = Spread.of(self.bytes, 0).median if self.bytes else None
        of_bare = {what: Spread.of(ratios, 4) for what, ratios in self.ratios.items()}
        doubtful = too_slow(self.peer.configs[self.config == "fast"], of_bare)
        return msgspec.structs.replace(row, **spreads, bytes_per_waiting_job=memory, of_bare=of_bare, doubtful=doubtful)


def too_slow(config: Config, of_bare: Mapping[str, Spread]) -> list[str]:
    """Return what has far less of the bare loop, at the median, than it is known to have."""
    known = {"one": config.one_ratio, "one_awaited": config.one_ratio, "drain": config.drain_ratio}
    return [what for what, ratio in of_bare.items() if ratio.median < DOUBTFUL * known[what]]


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
    return [found.row() for found in founds]


def _once(found: Found, terms: Terms) -> str:
    name = f"{found.peer.name} {found.config}"
    if found.failed or found.python is None:
        return f"{name}: {found.failed}"
    try:
        bare = _bare(terms) if found.peer.name != BARE else {}
        with running(tcp=True) as url, bout(url, found.peer, found.config, found.python) as one:
            drained = _measure(one, found, terms)
    except Failed as error:
        found.failed = str(error)
        return f"{name}: {error}"
    found.compare(bare)
    of_bare = f", {drained / bare['drain']:.3f} of the bare loop" if bare else ""
    return f"{name}: drains {drained:,.0f} jobs/s{of_bare}"


def _bare(terms: Terms) -> dict[str, float]:
    """Return the rates of the bare loop at this moment."""
    with running(tcp=True) as url, bout(url, PEERS[0], CONFIGS[0], Path(sys.executable)) as one:
        drained, _ = one.drain(BESIDE_S)
        return {"one": one.add("one", terms.jobs) or 0.0, "drain": drained}


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
