"""Scenario `startup`: how long the command line takes, from the start of its process to its end.

`--help`, and `stats` at an empty server, in turn with a Python that does nothing: what is above that one is ours.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from time import perf_counter

from .document import Result
from .duel import Size
from .lab import Lab
from .measure import Spread

RUNS = 5
"""Starts of each in one repeat."""


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield the one result."""
    ours = ["-m", "streamjobs"]
    namespace = lab.order(0).namespace
    commands = {
        "ms for a Python that does nothing": ["-c", ""],
        "ms for --help": [*ours, "--help"],
        "ms for stats": [*ours, "stats", "--url", lab.url, "--namespace", namespace],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    try:
        for repeat in range(size.repeats):
            for _ in range(RUNS):
                for name, words in commands.items():
                    times[name].append(1000 * _seconds(words))
            said = ", ".join(f"{found[-1]:.0f} {name}" for name, found in times.items())
            print(f"startup {repeat + 1}/{size.repeats}: {said}", file=sys.stderr)
    except subprocess.CalledProcessError as error:
        yield Result(scenario="startup", variant="cli", jobs=0, repeats=size.repeats, void=f"{error}: {error.stderr}")
        return
    yield Result(scenario="startup", variant="cli", jobs=0, repeats=size.repeats * RUNS, figures=_figures(times))


def _seconds(words: list[str]) -> float:
    begun = perf_counter()
    subprocess.run(
        [sys.executable, *words],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    return perf_counter() - begun


def _figures(times: Mapping[str, list[float]]) -> dict[str, Spread]:
    return {name: Spread.of(found, 1) for name, found in times.items()}
