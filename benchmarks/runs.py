"""A run of scenarios: what is asked for, what is written, and the exit code."""

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import redis

from . import charts, document, table
from .document import Document, Result, Soak
from .duel import FULL, QUICK, Size
from .registry import SCENARIOS, Given, UsageError
from .server import ServerError, named

OWN = frozenset().union(*(scenario.takes for scenario in SCENARIOS.values()))
"""The options that not every scenario has."""

MOST_WRONGS = 20
"""More is not said of what is wrong; the document has it all."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run; None for what was not said."""

    scenario: Sequence[str]
    quick: bool | None = None
    repeats: int | None = None
    jobs: int | None = None
    minutes: float | None = None
    seed: int | None = None
    json: str | None = None
    """Where the document goes; - for stdout in place of the table."""
    charts: Path | None = None
    url: str | None = None
    server: Path | None = None
    """The binary of servers that are started."""

    def words(self) -> list[str]:
        """Return the words that ask for the same."""
        said = ["run", *self.scenario, *(["--quick"] if self.quick else [])]
        for name in ("repeats", "jobs", "minutes", "seed", "json", "charts", "url", "server"):
            if (value := getattr(self, name)) is not None:
                said += [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
        return said


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let SIGTERM end what runs as Ctrl-C does: what it has begun on a server of others is wiped."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def run(asked: Asked) -> int:
    """Run what is asked for; return 0 if every result stands, 1 if one is void or a promise was broken.

    Raises:
        UsageError: a scenario is unknown, or cannot take an option.
        ServerError: there is no server, or it has gone.
        OSError: a file cannot be written.
    """
    given = _checked(asked)
    started_at = document.now()
    if asked.json not in (None, "-"):
        # An unwritable path is told now, not after minutes of measuring.
        Path(asked.json).touch()
    if asked.charts is not None:
        asked.charts.mkdir(parents=True, exist_ok=True)
    machine, server = document.machine(), ""
    results: list[Result | Soak] = []
    try:
        for name in asked.scenario:
            with _ending_in_order(), SCENARIOS[name].open(given) as session:
                server = session.server
                results += session.results
    except redis.ConnectionError as error:
        raise ServerError(str(error)) from error
    finished = Document(
        machine=machine,
        command=document.command(asked.words()),
        started_at=started_at,
        versions=document.versions(server),
        commit=document.commit(),
        results=results,
    )
    if asked.charts is not None:
        for path in charts.write(finished, asked.charts):
            print(f"wrote {path}", file=sys.stderr)
    _write(finished, asked.json)
    return _verdict(results)


def _checked(asked: Asked) -> Given:
    url = asked.url
    if url is not None and asked.server is not None:
        raise UsageError("--server: --url names a server that runs already")
    for name in asked.scenario:
        if name not in SCENARIOS:
            raise UsageError(f"scenario {name!r:.40}: there is none; there are {', '.join(SCENARIOS)}")
        for option in sorted(OWN - SCENARIOS[name].takes):
            if getattr(asked, option) is not None:
                raise UsageError(f"--{option}: {name} has no such option")
        if url is not None:
            try:
                url = named(url, SCENARIOS[name].schemes)
            except ValueError as error:
                raise UsageError(f"--url: {error}") from error
    chosen = QUICK if asked.quick else FULL
    size = Size(asked.repeats or chosen.repeats, asked.jobs or chosen.jobs)
    return Given(url, size, asked.minutes, asked.seed, asked.server)


def _write(finished: Document, target: str | None) -> None:
    if target == "-":
        sys.stdout.write(finished.encode().decode())
        return
    if target is not None:
        Path(target).write_bytes(finished.encode())
    sys.stdout.write(table.render(finished))


def _verdict(results: Sequence[Result | Soak]) -> int:
    """Say what is wrong with results; return the exit code."""
    wrong = [(f"{result.scenario} {result.variant}", text) for result in results for text in result.wrong]
    for name, text in wrong[:MOST_WRONGS]:
        print(f"benchmarks: {name} {text}", file=sys.stderr)
    if len(wrong) > MOST_WRONGS:
        print(f"benchmarks: and {len(wrong) - MOST_WRONGS} more", file=sys.stderr)
    return 1 if wrong else 0
