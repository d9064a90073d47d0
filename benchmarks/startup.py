"""Scenario `startup`: how long it takes to begin, from the start of a process to its end.

The import of all that an app needs, a first job from plain code, a worker that runs it, `--help`, and `stats`; in
turn with a Python that does nothing: what is above that one is ours.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from time import perf_counter

from .document import Result
from .duel import Size
from .lab import Lab
from .measure import Order, Spread

RUNS = 5
"""Starts of each in one repeat."""
_FIRST = """
import sys

from streamjobs import StreamJobs

app = StreamJobs(sys.argv[1], namespace=sys.argv[2])


@app.job(queue="first")
def first() -> None: ...


if sys.argv[3] == "add":
    first.enqueue_sync()
elif sys.argv[3] == "run":
    sys.exit(app.run_worker(["first"], burst=True))
"""


def run(lab: Lab, size: Size) -> Iterator[Result]:
    """Yield the one result."""
    with lab.ordered(0) as order:
        times: dict[str, list[float]] = {}
        try:
            for repeat in range(size.repeats):
                for _ in range(RUNS):
                    for name, words in _commands(order).items():
                        times.setdefault(name, []).append(1000 * _seconds(words))
                said = ", ".join(f"{found[-1]:.0f} {name}" for name, found in times.items())
                print(f"startup {repeat + 1}/{size.repeats}: {said}", file=sys.stderr)
        except subprocess.CalledProcessError as error:
            void = f"{error}: {error.stderr}"
            yield Result(scenario="startup", variant="cli", jobs=0, repeats=size.repeats, void=void)
            return
    yield Result(scenario="startup", variant="cli", jobs=0, repeats=size.repeats * RUNS, figures=_figures(times))


def _commands(order: Order) -> dict[str, list[str]]:
    first = ["-c", _FIRST, order.url, order.namespace]
    ours = ["-m", "streamjobs"]
    return {
        "ms for a Python that does nothing": ["-c", ""],
        "ms for the import of an app": [*first, "import"],
        "ms for a first job": [*first, "add"],
        "ms for a worker that runs it": [*first, "run"],
        "ms for --help": [*ours, "--help"],
        "ms for stats": [*ours, "stats", "--url", order.url, "--namespace", order.namespace],
    }


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
