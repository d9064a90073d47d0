"""`streamjobs bench`: the door to the benchmarks. In a checkout they are beside the package, once installed in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from streamjobs.cli import params, show
from streamjobs.cli.commands import Group
from streamjobs.cli.settings import settings
from streamjobs.core.errors import Unavailable, UsageError

PLACES = ("streamjobs.benchmarks", "benchmarks")


class Place(click.Path):
    """A path; one that no system can have is a usage error too."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check a path and return it."""
        try:
            return super().convert(value, param, ctx)
        except ValueError:
            self.fail(f"{value!r:.80} cannot be the name of a file", param, ctx)


FILE = Place(path_type=Path, dir_okay=False)
FOLDER = Place(path_type=Path, file_okay=False)


@click.group(cls=Group)
def bench() -> None:
    """Measure streamjobs on this machine, each scenario on a server of its own."""


@bench.command("list")
def list_() -> None:
    """List the scenarios."""
    scenarios = _module("registry").SCENARIOS
    if settings().as_json:
        found = [{"name": name, "summary": scenario.summary} for name, scenario in scenarios.items()]
        show.document("bench.list", scenarios=found)
    else:
        show.Table("NAME", "~WHAT").print((name, scenario.summary) for name, scenario in scenarios.items())


@bench.command()
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...")
@click.option("--quick", is_flag=True, help="3 repeats of 100,000 jobs instead of 5 of 200,000.")
@click.option("--repeats", type=params.numbers(1), metavar="N", help="Repeats of each side.")
@click.option("--jobs", type=params.numbers(1), metavar="N", help="Jobs in each repeat; fewer where they are slow.")
@click.option("--minutes", type=params.numbers(1), metavar="N", help="How long a soak makes faults; default 5.")
@click.option("--seed", type=params.number, metavar="N", help="What a soak's faults and jobs are drawn from.")
@click.option("--out", type=FILE, metavar="FILE", help="Write the document here too.")
@click.option("--charts", type=FOLDER, metavar="DIR", help="Write charts here.")
@click.option("--server", type=FILE, metavar="PROGRAM", help="What to start as a server; default Valkey.")
def run(
    scenarios: tuple[str, ...],
    quick: bool,
    repeats: int | None,
    jobs: int | None,
    minutes: int | None,
    seed: int | None,
    out: Path | None,
    charts: Path | None,
    server: Path | None,
) -> int:
    """Run scenarios; exit code 1 if a result does not stand."""
    json = _target(out)
    runs = _module("runs")
    asked = runs.Asked(
        scenario=scenarios,
        quick=quick or None,
        repeats=repeats,
        jobs=jobs,
        minutes=minutes,
        seed=seed,
        json=json,
        charts=charts,
        url=settings().flags.get("url"),
        server=server,
    )
    with _translated():
        return int(runs.run(asked))


@bench.command()
@click.argument("first", type=FILE)
@click.argument("second", type=FILE)
def compare(first: Path, second: Path) -> None:
    """Show what two runs measured side by side: FIRST and SECOND are files that `run --out` wrote."""
    compared = _module("compare")
    with _translated():
        documents = compared.load(first), compared.load(second)
    if settings().as_json:
        show.document("bench.compare", first=str(first), second=str(second), rows=list(compared.rows(*documents)))
    else:
        click.echo(compared.render(*documents), nl=False)


@bench.command()
@click.argument("names", nargs=-1, metavar="PEER...")
@click.option("--quick", is_flag=True, help="3 repeats of fewer jobs instead of 5.")
@click.option("--repeats", type=params.numbers(1), metavar="N", help="Repeats of each.")
@click.option("--out", type=FILE, metavar="FILE", help="Write the document here too.")
@click.option("--markdown", is_flag=True, help="Print the table for a page, with the spreads.")
@click.option("--environments", type=FOLDER, metavar="DIR", help="Where each has an environment of its own.")
def peers(
    names: tuple[str, ...],
    quick: bool,
    repeats: int | None,
    out: Path | None,
    markdown: bool,
    environments: Path | None,
) -> int:
    """Measure other job systems beside streamjobs: those named, or all. They are installed when first needed."""
    json = _target(out)
    if settings().flags.get("url"):
        raise click.UsageError("--url: peers run on servers of their own")
    ran = _module("peers.run")
    asked = ran.Asked(
        peer=names,
        quick=quick,
        repeats=repeats,
        json=json,
        markdown=markdown,
        environments=environments,
    )
    with _translated():
        return int(ran.run(asked))


def _target(out: Path | None) -> str | None:
    """Return where the document goes: to a file, or `-` for stdout."""
    if out and settings().as_json:
        raise click.UsageError("--out and --json: give one of the two")
    return "-" if settings().as_json else str(out) if out else None


def _module(name: str) -> ModuleType:
    for place in PLACES:
        try:
            return import_module(f"{place}.{name}")
        except ModuleNotFoundError as error:
            if error.name != place:
                raise
    raise UsageError("the benchmarks are not installed: use an installed streamjobs, or a checkout of it")


@contextmanager
def _translated() -> Iterator[None]:
    """Let what the benchmarks raise end the command as errors of ours do."""
    try:
        yield
    except _module("server").ServerError as error:
        raise Unavailable(str(error)) from error
    except (_module("registry").UsageError, _module("compare").Unreadable, OSError) as error:
        raise UsageError(str(error)) from error
