"""The command line of the benchmarks; data on stdout, progress on stderr."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import redis

from . import document, table
from .document import Document, Result, Soak
from .duel import FULL, QUICK, Size
from .registry import SCENARIOS, Given, UsageError
from .server import ServerError, named

OWN = frozenset().union(*(scenario.takes for scenario in SCENARIOS.values()))
"""The options that not every scenario has."""

MOST_WRONGS = 20
"""More is not said of what is wrong; the document has it all."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0 if every result stands, 1 if one is void or a promise was broken, 2 for a usage error, 3 without a
    server, 130 when interrupted (a soak is not: it ends early, and is judged).
    """
    parser = _parser()
    options = parser.parse_args(argv)
    if options.command == "list":
        for name, scenario in SCENARIOS.items():
            print(f"{name:<12}{scenario.summary}")
        return 0
    for name in options.scenario:
        for option in sorted(OWN - SCENARIOS[name].takes):
            if getattr(options, option) is not None:
                parser.error(f"--{option}: {name} has no such option")
        if options.url is not None:
            try:
                options.url = named(options.url, SCENARIOS[name].schemes)
            except ValueError as error:
                parser.error(f"--url: {error}")
    try:
        return _run(options)
    except (ServerError, redis.ConnectionError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 3
    except (OSError, UsageError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}", description="Measure streamjobs.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="name the scenarios")
    run = commands.add_parser("run", help="run scenarios and print what came out")
    run.add_argument("scenario", nargs="+", choices=SCENARIOS, help=", ".join(SCENARIOS), metavar="SCENARIO")
    run.add_argument(
        "--quick", action="store_true", default=None, help="3 repeats of 100,000 jobs instead of 5 of 200,000"
    )
    run.add_argument("--repeats", type=_positive, metavar="N", help="repeats of each side")
    run.add_argument("--jobs", type=_positive, metavar="N", help="jobs in each repeat")
    run.add_argument("--minutes", type=_minutes, metavar="N", help="how long a soak makes faults; default 5")
    run.add_argument("--seed", type=_seed, metavar="N", help="what a soak's faults and jobs are drawn from")
    run.add_argument("--json", metavar="FILE", help="write the document here; - for stdout instead of the table")
    run.add_argument("--url", help="a server to use instead of a fresh one of our own")
    return parser


def _positive(text: str) -> int:
    try:
        value = int(text.replace(",", "").replace("_", ""))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r:.40} is not a whole number") from error
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return value


def _seed(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r:.40} is not a whole number") from error


def _minutes(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not a time")
    return value


def _run(options: argparse.Namespace) -> int:
    chosen = QUICK if options.quick else FULL
    size = Size(options.repeats or chosen.repeats, options.jobs or chosen.jobs)
    given = Given(options.url, size, options.minutes, options.seed)
    started_at = document.now()
    if options.json not in (None, "-"):
        # An unwritable path is told now, not after minutes of measuring.
        Path(options.json).touch()
    machine, server = document.machine(), ""
    results: list[Result | Soak] = []
    for name in options.scenario:
        with SCENARIOS[name].open(given) as session:
            server = session.server
            results += session.results
    finished = Document(
        machine=machine,
        command=document.command(),
        started_at=started_at,
        versions=document.versions(server),
        commit=document.commit(),
        results=results,
    )
    _write(finished, options.json)
    return _verdict(results)


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
