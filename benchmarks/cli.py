"""The command line of the benchmarks; data on stdout, progress on stderr."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .compare import Unreadable, load, render
from .peers import run as peers
from .registry import SCENARIOS, UsageError
from .runs import Asked, run
from .server import ServerError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0 if every result stands, 1 if one is void or a promise was broken, 2 for a usage error, 3 without a
    server, 130 when interrupted (a soak is not: it ends early, and is judged).
    """
    options = _parser().parse_args(argv)
    try:
        match options.command:
            case "list":
                return _list()
            case "compare":
                return _compare(options)
        given = {name: value for name, value in vars(options).items() if name != "command"}
        if options.command == "peers":
            return peers.run(peers.Asked(**given))
        return run(Asked(**given))
    except ServerError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 3
    except (OSError, UsageError, Unreadable) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}", description="Measure streamjobs.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="name the scenarios")
    running = commands.add_parser("run", help="run scenarios and print what came out")
    running.add_argument("scenario", nargs="+", choices=SCENARIOS, help=", ".join(SCENARIOS), metavar="SCENARIO")
    running.add_argument(
        "--quick", action="store_true", default=None, help="3 repeats of 100,000 jobs instead of 5 of 200,000"
    )
    running.add_argument("--repeats", type=_positive, metavar="N", help="repeats of each side")
    running.add_argument("--jobs", type=_positive, metavar="N", help="jobs in each repeat; fewer where they are slow")
    running.add_argument("--minutes", type=_minutes, metavar="N", help="how long a soak makes faults; default 5")
    running.add_argument("--seed", type=_seed, metavar="N", help="what a soak's faults and jobs are drawn from")
    running.add_argument("--json", metavar="FILE", help="write the document here; - for stdout instead of the table")
    running.add_argument("--charts", type=Path, metavar="DIR", help="write a chart of each scenario here, as SVG")
    running.add_argument("--url", help="a server to use instead of a fresh one of our own for each scenario")
    running.add_argument(
        "--server", type=Path, metavar="PROGRAM", help="what to start as such a server; default Valkey"
    )
    compare = commands.add_parser("compare", help="show what two runs measured side by side")
    for name in ("first", "second"):
        compare.add_argument(name, type=Path, metavar="FILE", help="what `run --json FILE` wrote")
    peers = commands.add_parser("peers", help="measure other job systems beside streamjobs")
    peers.add_argument("peer", nargs="*", metavar="PEER", help="default all of them")
    peers.add_argument("--quick", action="store_true", help="3 repeats of fewer jobs instead of 5")
    peers.add_argument("--repeats", type=_positive, metavar="N", help="repeats of each")
    peers.add_argument("--json", metavar="FILE", help="write the document here; - for stdout instead of the table")
    peers.add_argument("--markdown", action="store_true", help="print the table for a page, with the spreads")
    peers.add_argument("--environments", type=Path, metavar="DIR", help="where each has its own; default in ~/.cache")
    return parser


def _list() -> int:
    for name, scenario in SCENARIOS.items():
        print(f"{name:<12}{scenario.summary}")
    return 0


def _compare(options: argparse.Namespace) -> int:
    sys.stdout.write(render(load(options.first), load(options.second)))
    return 0


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
