"""What the adapters share. It runs in environments where nothing of streamjobs is installed.

`python -m adapters.NAME one|together|bulk|fill JOBS` adds jobs and prints how long it took; `drain 0` works
until killed. A handler writes one byte to a file that only grows, which is how the jobs of any number
of threads and processes are counted, at less than a microsecond each.
"""

import asyncio
import inspect
import json
import os
import sys
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

URL = os.environ.get("PEER_URL", "redis://localhost:6379/0")
FAST = os.environ.get("PEER_CONFIG") == "fast"
TEXT = "x" * 72
CALLERS = 100
PORTION = 1000

_marks = os.open(os.environ.get("PEER_MARKS", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def mark() -> None:
    """Say that one job ran."""
    os.write(_marks, b".")


class Clock:
    """Measures a block that adds so many jobs, and prints what it took."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def __enter__(self) -> None:
        self._cpu, self._at = process_time(), perf_counter()

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            seconds, cpu = perf_counter() - self._at, process_time() - self._cpu
            print(json.dumps({"jobs": self._jobs, "seconds": seconds, "client_s": cpu}), flush=True)


async def callers(add: Callable[[int], Any], jobs: int) -> None:
    """Let 100 tasks add the jobs, each one after the other."""

    async def caller(first: int) -> None:
        for number in range(first, jobs, CALLERS):
            await add(number)

    with Clock(jobs):
        await asyncio.gather(*map(caller, range(CALLERS)))


def main(**ways: Callable[..., Any]) -> None:
    """Do what the command line says; a peer without a bulk call is filled in the best way that it has."""
    what, jobs = sys.argv[1], int(sys.argv[2])
    fill = next((ways[name] for name in ("bulk", "together", "one") if name in ways), None)
    way: Any = fill if what == "fill" else ways[what]
    arguments = () if what == "drain" else (jobs,)
    if inspect.iscoroutinefunction(way):
        _runner()(way(*arguments))
    else:
        way(*arguments)


def _runner() -> Callable[..., Any]:
    if not FAST:
        return asyncio.run
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    run: Callable[..., Any] = uvloop.run
    return run
