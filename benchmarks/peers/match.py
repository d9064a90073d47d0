"""All peers in one run, each beside a bare loop of the same minute: the machine may be slower in the next."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import msgspec

from ..measure import Spread
from ..progress import tell
from ..server import running
from .bout import WAYS, Bout, Failed, Lacking, bout
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
BESIDE_JOBS = 4
"""So many times the jobs it adds there: it is that much faster, and a moment of the machine is not to decide."""

RATES = (*WAYS, "drain", "two", "plain")
LEAST = ("latency_p50_ms", "latency_p99_ms", "bytes_per_waiting_job")
"""Figures of which less is better."""
AWAITED_ONLY = "its workers run asynchronous functions alone"


class Terms(msgspec.Struct, frozen=True):
    """How much is measured: repeats, jobs added one by one, and about how long jobs are drained, and paced."""

    repeats: int
    jobs: int
    drain_s: float
    paced_s: float


FULL = Terms(5, 5000, 3.0, 10.0)
QUICK = Terms(3, 1000, 1.0, 2.0)


class Found:
    """What one peer in one configuration has shown so far."""

    def __init__(self, peer: Peer, config: str) -> None:
        self.peer, self.config = peer, config
        self.python: Path | None = None
        self.version = ""
        self.failed: str | None = None
        self.figures: dict[str, list[float]] = {}
        self.ratios: dict[str, list[float]] = {}
        """Of the bare loop that ran just before."""
        self.lacking: dict[str, str] = {}
        self.broken: dict[str, str] = {}

    def note(self, what: str, figure: float) -> None:
        """Take down one figure."""
        self.figures.setdefault(what, []).append(figure)

    def measure(self, once: Callable[[], Iterable[float]], *whats: str) -> None:
        """Take down what is measured under these names, or why it cannot be; then it is not tried again."""
        if whats[0] in self.lacking or whats[0] in self.broken:
            return
        try:
            for what, figure in zip(whats, once(), strict=True):
                self.note(what, figure)
        except Lacking as error:
            self.lacking |= dict.fromkeys(whats, str(error))
        except Failed as error:
            self.broken |= dict.fromkeys(whats, str(error))

    def compare(self, bare: Mapping[str, float]) -> None:
        """Take down what the last rates are of those of the bare loop just before."""
        for what, base in BESIDE.items():
            if what in self.figures and what not in self.broken and base in bare:
                self.ratios.setdefault(what, []).append(self.figures[what][-1] / bare[base])

    def row(self) -> Row:
        """Return the row, judged by the bare loops beside it."""
        row = Row(peer=self.peer.name, config=self.config, version=self.version, failed=self.failed)
        if self.failed:
            return row
        # Of what broke in a later repeat the earlier ones count no more.
        found = {what: figures for what, figures in self.figures.items() if what not in self.broken}
        memory = found.pop("bytes_per_waiting_job", None)
        spreads = {what: Spread.of(figures, 2 if what in LEAST else 0) for what, figures in found.items()}
        of_bare = {what: Spread.of(ratios, 4) for what, ratios in self.ratios.items() if what not in self.broken}
        return msgspec.structs.replace(
            row,
            **spreads,
            bytes_per_waiting_job=round(median(memory)) if memory else None,
            of_bare=of_bare,
            doubtful=too_slow(self.peer.configs[self.config == "fast"], of_bare),
            lacking=self.lacking,
            broken=self.broken,
        )


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
            tell("peers", step, steps, f"{found.peer.name} {found.config}: {_once(found, terms)}")
    return compared([found.row() for found in founds])


def compared(rows: Sequence[Row]) -> list[Row]:
    """Return the rows, each with what is better there than in our row of the same configuration."""
    ours = {row.config: row for row in rows if row.peer == OURS}
    return [
        row if row.peer in (BARE, OURS) else msgspec.structs.replace(row, better=_better(row, ours[row.config]))
        for row in rows
    ]


def _better(row: Row, ours: Row) -> list[str]:
    pairs = {what: (row.median(what), ours.median(what)) for what in (*RATES, *LEAST) if what not in row.doubtful}
    return [
        what
        for what, (theirs, our) in pairs.items()
        if theirs is not None and our is not None and (theirs < our if what in LEAST else theirs > our)
    ]


def _once(found: Found, terms: Terms) -> str:
    if found.failed or found.python is None:
        return f"{found.failed}"
    bare = {}
    if found.peer.name != BARE:
        try:
            bare = _bare(terms)
        except Failed as error:
            found.failed = f"the bare loop: {error}"
            return found.failed
    with running(tcp=True) as url, bout(url, found.peer, found.config, found.python) as one:
        _measure(one, found, terms)
    found.compare(bare)
    if "drain" in found.broken:
        return found.broken["drain"]
    drained = found.figures["drain"][-1]
    of_bare = f", {drained / bare['drain']:.3f} of the bare loop" if bare else ""
    return f"drains {drained:,.0f} jobs/s{of_bare}"


def _bare(terms: Terms) -> dict[str, float]:
    """Return the rates of the bare loop at this moment."""
    with running(tcp=True) as url, bout(url, PEERS[0], CONFIGS[0], Path(sys.executable)) as one:
        drained, _ = one.drain(BESIDE_S)
        return {"one": one.add("one", BESIDE_JOBS * terms.jobs), "drain": drained}


def _measure(one: Bout, found: Found, terms: Terms) -> None:
    for way in WAYS:
        jobs = terms.jobs
        if way in ("together", "bulk"):
            jobs *= 2 if found.peer.name not in (BARE, OURS) else 2 * MANY
        found.measure(partial(_added, one, way, jobs), way)
    found.measure(lambda: one.drain(terms.drain_s), "drain", "bytes_per_waiting_job")
    found.measure(lambda: one.drain(terms.drain_s, workers=2)[:1], "two")
    found.measure(lambda: _plain(one, found, terms), "plain")
    found.measure(lambda: _latency(one, terms), "latency_p50_ms", "latency_p99_ms")


def _added(one: Bout, way: str, jobs: int) -> tuple[float]:
    return (one.add(way, jobs),)


def _plain(one: Bout, found: Found, terms: Terms) -> Iterable[float]:
    match found.peer.handlers:
        case "awaited":
            raise Lacking(AWAITED_ONLY)
        case "both":
            return one.drain(terms.drain_s, plain=True)[:1]
        case "plain":
            if "drain" in found.broken:
                raise Failed(found.broken["drain"])
            return found.figures["drain"][-1:]


def _latency(one: Bout, terms: Terms) -> tuple[float, float]:
    found = sorted(one.latencies(terms.paced_s))
    return found[len(found) // 2], found[int(len(found) * 0.99)]
