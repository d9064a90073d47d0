"""What the adapters share. It runs in environments where nothing of streamjobs is installed.

`python -m adapters.NAME WAY JOBS` adds jobs in a way (`one`, `one_awaited`, `together`, `bulk`) and prints how long it
took; `fill` does so in the best one, `paced` at a fixed rate; `drain 0` works until killed. A handler writes one byte
to a file that only grows, which is how jobs are counted, at less than a microsecond each, or
how long ago its job was sent.
"""

import asyncio
import inspect
import json
import os
import struct
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from time import perf_counter, perf_counter_ns, process_time
from typing import Any

URL = os.environ.get("PEER_URL", "redis://localhost:6379/0")
FAST = os.environ.get("PEER_CONFIG") == "fast"
PLAIN = bool(os.environ.get("PEER_PLAIN"))
"""Whether the handler is to be a plain function, where both can be."""
TIMED = bool(os.environ.get("PEER_TIMED"))
TEXT = "x" * 72
CALLERS = 100
PORTION = 1000
PACE_NS = 10_000_000
"""From one job to the next, when they are paced: 100 a second."""
TIMER_NS = 2_000_000
"""How late a timer may be. A job that was sent later than that counts from when it was due."""

Adding = Callable[[], AbstractContextManager[Callable[[int], object]]]
AddingAwaited = Callable[[], AbstractAsyncContextManager[Callable[[int], Awaitable[object]]]]

_marks = os.open(os.environ.get("PEER_MARKS", os.devnull), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def _mark(number: int) -> None:
    os.write(_marks, b".")


def _mark_time(sent_at: int) -> None:
    os.write(_marks, struct.pack("<q", perf_counter_ns() - sent_at))


mark = _mark_time if TIMED else _mark
"""Say that the job of this number runs. That of a paced one is when it was sent, by the clock of all processes."""


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


def main(
    *,
    add: Adding | None = None,
    add_awaited: AddingAwaited | None = None,
    bulk: Callable[[int], Any] | None = None,
    drain: Callable[[], Any],
) -> None:
    """Do what the command line says.

    `add` and `add_awaited` connect and give the call that adds one job, from plain code and for asyncio; one of them
    is enough. `bulk` adds so many, and `drain` works.
    """
    what, jobs = sys.argv[1], int(sys.argv[2])
    ways = {"drain": lambda: _call(drain)}
    if add is not None:
        adding = add
        ways |= {"one": lambda: _one(adding, jobs), "paced": lambda: _paced(adding, jobs)}
    if add_awaited is not None:
        awaited = add_awaited
        ways |= {
            "one_awaited": lambda: _runner()(_one_awaited(awaited, jobs)),
            "together": lambda: _runner()(_together(awaited, jobs)),
            "paced": lambda: _runner()(_paced_awaited(awaited, jobs)),
        }
    if bulk is not None:
        ways["bulk"] = lambda: _call(bulk, jobs)
    if what == "fill":
        what = next(way for way in ("bulk", "together", "one") if way in ways)
    if what not in ways:
        plainly = {"one": "its calls are asynchronous", "bulk": "it has no call that adds many"}
        sys.exit(f"lacking: {plainly.get(what, 'its calls are for plain code')}")
    ways[what]()


def _call(way: Callable[..., Any], *arguments: int) -> None:
    if inspect.iscoroutinefunction(way):
        _runner()(way(*arguments))
    else:
        way(*arguments)


def _one(adding: Adding, jobs: int) -> None:
    with adding() as add, Clock(jobs):
        for number in range(jobs):
            add(number)


async def _one_awaited(adding: AddingAwaited, jobs: int) -> None:
    async with adding() as add:
        with Clock(jobs):
            for number in range(jobs):
                await add(number)


async def _together(adding: AddingAwaited, jobs: int) -> None:
    """Let 100 tasks add the jobs, each one after the other."""
    async with adding() as add:

        async def caller(first: int) -> None:
            for number in range(first, jobs, CALLERS):
                await add(number)

        with Clock(jobs):
            await asyncio.gather(*map(caller, range(CALLERS)))


def _paced(adding: Adding, jobs: int) -> None:
    with adding() as add:
        begun = perf_counter_ns()
        for due in range(begun, begun + jobs * PACE_NS, PACE_NS):
            while (now := perf_counter_ns()) < due:
                time.sleep((due - now) / 1e9)
            add(now if now - due < TIMER_NS else due)


async def _paced_awaited(adding: AddingAwaited, jobs: int) -> None:
    """Send each when it is due, whether those before have been answered or not."""

    async def send(sent_at: int) -> None:
        await add(sent_at)

    async with adding() as add:
        sending = []
        begun = perf_counter_ns()
        for due in range(begun, begun + jobs * PACE_NS, PACE_NS):
            while (now := perf_counter_ns()) < due:
                await asyncio.sleep((due - now) / 1e9)
            sending.append(asyncio.create_task(send(now if now - due < TIMER_NS else due)))
        await asyncio.gather(*sending)


def _runner() -> Callable[..., Any]:
    if not FAST:
        return asyncio.run
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    run: Callable[..., Any] = uvloop.run
    return run
