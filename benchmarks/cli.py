"""The command line of the benchmarks; data on stdout, progress on stderr."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import redis

from . import document, table
from .document import Document, Result
from .duel import FULL, QUICK, Size
from .lab import Lab
from .registry import SCENARIOS
from .server import ServerError, running


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0 if every result stands, 1 if one is void, 2 for a usage error, 3 without a server, 130 when
    interrupted.
    """
    options = _parser().parse_args(argv)
    if options.command == "list":
        for name, scenario in SCENARIOS.items():
            print(f"{name:<12}{scenario.summary}")
        return 0
    try:
        return _run(options)
    except (ServerError, redis.ConnectionError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 3
    except OSError as error:
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
    run.add_argument("--quick", action="store_true", help="3 repeats of 100,000 jobs instead of 5 of 200,000")
    run.add_argument("--repeats", type=_positive, metavar="N", help="repeats of each side")
    run.add_argument("--jobs", type=_positive, metavar="N", help="jobs in each repeat")
    run.add_argument("--json", metavar="FILE", help="write the document here; - for stdout instead of the table")
    run.add_argument("--url", type=_url, help="a server to use instead of a fresh one of our own")
    return parser


def _positive(text: str) -> int:
    value = int(text.replace(",", "").replace("_", ""))
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return value


def _url(text: str) -> str:
    try:
        redis.Redis.from_url(text).close()
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error
    return text


def _run(options: argparse.Namespace) -> int:
    chosen = QUICK if options.quick else FULL
    size = Size(options.repeats or chosen.repeats, options.jobs or chosen.jobs)
    started_at = document.now()
    if options.json not in (None, "-"):
        # An unwritable path is told now, not after minutes of measuring.
        Path(options.json).touch()
    with _lab(options.url) as lab:
        machine, versions = document.machine(), document.versions(lab.server_version())
        results = [result for name in options.scenario for result in SCENARIOS[name].run(lab, size)]
    finished = Document(
        machine=machine,
        command=document.command(),
        started_at=started_at,
        versions=versions,
        commit=document.commit(),
        results=results,
    )
    _write(finished, options.json)
    return _verdict(results)


@contextmanager
def _lab(url: str | None) -> Iterator[Lab]:
    with nullcontext(url) if url is not None else running() as address:
        with closing(Lab(address)) as lab:
            yield lab


def _write(finished: Document, target: str | None) -> None:
    if target == "-":
        sys.stdout.write(finished.encode().decode())
        return
    if target is not None:
        Path(target).write_bytes(finished.encode())
    sys.stdout.write(table.render(finished))


def _verdict(results: Sequence[Result]) -> int:
    void = [result for result in results if result.void is not None]
    for result in void:
        print(f"benchmarks: {result.scenario} {result.variant} is void: {result.void}", file=sys.stderr)
    return 1 if void else 0
