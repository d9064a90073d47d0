"""The processes that scenarios are played with: `python -m tests.faults.actors work|produce ...`.

All of them record what they do for the checker. Beside that there is one journal for all, short
enough to be looked at again and again while a scenario runs: one line and one write each, before any
effect. `S 7 4711 2/1`: job 7 was started in process 4711, its second delivery and first attempt. E
ended well, F raised an error, C was cancelled, B had so many beside it, J was enqueued, U may have been.
"""

import asyncio
import ctypes
import logging
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from streamjobs import (
    Cancel,
    Concurrency,
    Context,
    JobOptions,
    OutcomeUnknown,
    Permanent,
    Rate,
    RateLimited,
    Retry,
    Snooze,
    StreamJobs,
    Temporary,
)
from streamjobs.client import Connections
from streamjobs.protocol.calls import Command
from streamjobs.protocol.keys import QueueKeys
from tests.faults.recorder import Recorder, watch_calls

RETRY_S = 0.1
"""After this long a failed run is repeated."""

MANY_CRASHES = 100
"""Of jobs whose workers are killed from outside: that is not to end them."""

JOURNAL = "journal"

Note = Callable[..., None]


class Stage:
    """Where handlers note what they do: in the journal, and for the checker."""

    def __init__(self, folder: Path, recorder: Recorder) -> None:
        self._journal = folder / JOURNAL
        self._file = os.open(self._journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.recorder = recorder

    def note(self, word: str, n: int, detail: object = "-") -> None:
        os.write(self._file, f"{word} {n} {os.getpid()} {detail}\n".encode())

    def started(self, n: int) -> int:
        """Return how often a job has been started, by any process."""
        with self._journal.open() as file:
            return sum(line.startswith(f"S {n} ") for line in file)

    def is_new(self, n: int) -> bool:
        """Say whether a job has never been started before."""
        return not self.started(n)

    @contextmanager
    def playing(self, ctx: Context[Any], n: int, *lanes: str) -> Iterator[None]:
        """Note the start of a handler, which limits are to hold for it, its effect, and its end."""
        self.note("S", n, f"{ctx.deliveries}/{ctx.attempt}")
        word = "F"
        try:
            with self.recorder.run(*lanes) as effect:
                yield
                effect("done")
            word = "E"
        except asyncio.CancelledError:
            word = "C"
            raise
        finally:
            self.note(word, n, "lost" if ctx.lost.is_set() else "-")


def make_app(url: str, namespace: str, stage: Stage, **options: Any) -> StreamJobs:
    """Return an app with the kinds of all scenarios, whose jobs go to the queue `q`."""
    app = StreamJobs(url, namespace=namespace, defaults=JobOptions(queue="q"), **options)
    _add_sound_kinds(app, stage)
    _add_long_kinds(app, stage)
    _add_failing_kinds(app, stage)
    _add_poison(app, stage)
    _add_limited(app, stage)
    return app


def _add_sound_kinds(app: StreamJobs, stage: Stage) -> None:
    @app.job(name="nap")
    async def nap(ctx: Context[Any], n: int, s: float = 0.01) -> None:
        with stage.playing(ctx, n):
            await asyncio.sleep(s)

    @app.job(name="plain")
    def plain(ctx: Context[Any], n: int, s: float = 0.01) -> None:
        with stage.playing(ctx, n):
            time.sleep(s)

    @app.job(name="blocks")
    async def blocks(ctx: Context[Any], n: int, s: float) -> None:
        with stage.playing(ctx, n):
            time.sleep(s)

    @app.job(name="holds_gil")
    async def holds_gil(ctx: Context[Any], n: int, s: float) -> None:
        with stage.playing(ctx, n):
            # As an extension in C that does not let go: no thread of this process runs meanwhile.
            ctypes.PyDLL(None).usleep(int(s * 1e6))

    @app.job(name="nothing")
    async def nothing(n: int) -> None:
        """Leave no trace, not even in the journal."""

    @app.job(name="tells", result_ttl=60)
    async def tells(ctx: Context[Any], n: int) -> int:
        """Return which delivery this is."""
        with stage.playing(ctx, n):
            return ctx.deliveries


def _add_long_kinds(app: StreamJobs, stage: Stage) -> None:
    async def stays(ctx: Context[Any], n: int) -> None:
        """Stay, the first time, until the process is killed."""
        new = stage.is_new(n)
        with stage.playing(ctx, n):
            await asyncio.sleep(60 if new else 0.01)

    app.job(name="fast", timeout=4)(stays)
    app.job(name="slow", timeout=3600)(stays)


def _add_failing_kinds(app: StreamJobs, stage: Stage) -> None:
    @app.job(name="overdue", timeout=0.2)
    async def overdue(ctx: Context[Any], n: int) -> None:
        with stage.playing(ctx, n):
            if ctx.attempt == 1:
                await asyncio.sleep(60)

    @app.job(name="flaky")
    async def flaky(ctx: Context[Any], n: int, fails: int = 1) -> None:
        with stage.playing(ctx, n):
            if ctx.attempt <= fails:
                raise Temporary(after=RETRY_S)

    @app.job(name="often", retry=Retry(max_crashes=MANY_CRASHES))
    async def often(ctx: Context[Any], n: int, fails: int) -> None:
        """As `flaky`, wherever kills come from outside, and slower."""
        with stage.playing(ctx, n):
            await asyncio.sleep(0.05)
            if ctx.attempt <= fails:
                raise Temporary(after=RETRY_S)

    @app.job(name="ends")
    async def ends(ctx: Context[Any], n: int, how: str, then_s: float = 0.01, first_s: float = 0.0) -> None:
        """End as said after `first_s` in the first run, and well after `then_s` in any other."""
        new = stage.is_new(n)
        with stage.playing(ctx, n):
            await asyncio.sleep(first_s if new else 0)
            match how if new else "":
                case "retry":
                    raise Temporary(after=RETRY_S)
                case "snooze":
                    raise Snooze(RETRY_S)
                case "bury":
                    raise Permanent(how)
                case "cancel":
                    raise Cancel(how)
                case "":
                    await asyncio.sleep(then_s)


def _add_poison(app: StreamJobs, stage: Stage) -> None:
    @app.job(name="poison")
    async def poison(ctx: Context[Any], n: int, how: str) -> None:
        with stage.playing(ctx, n):
            await asyncio.sleep(0.05)
            if how == "exit":
                os._exit(3)
            _run_out_of_memory() if how == "starved" else ctypes.string_at(0)

    @app.job(name="ambush")
    async def ambush(ctx: Context[Any], n: int, beside: int) -> None:
        """Take the process along as soon as it holds so many claims; the third time it is alone, and waits for none."""
        with stage.playing(ctx, n):
            held = 0
            while ctx.attempt < 3 and (held := await _held(app)) < beside:
                await asyncio.sleep(0)
            stage.note("B", n, held)
            os._exit(3)

    @app.job(name="crash_or_snooze", retry=Retry(max_crashes=3))
    async def crash_or_snooze(ctx: Context[Any], n: int) -> None:
        with stage.playing(ctx, n):
            if ctx.deliveries % 2:
                os._exit(3)
            raise Snooze(RETRY_S)


def _add_limited(app: StreamJobs, stage: Stage) -> None:
    often = Retry(max_crashes=MANY_CRASHES)

    @app.job(name="keyed", retry=often, concurrency=[Concurrency(1, key="key"), Concurrency(4)])
    async def keyed(ctx: Context[Any], n: int, key: int, s: float = 0.01, then_s: float | None = None) -> None:
        """Run for `s`, and in any run but the first for `then_s`, if that is given."""
        runs_s = s if then_s is None or stage.is_new(n) else then_s
        with stage.playing(ctx, n, f"key {key}", "keyed"):
            await asyncio.sleep(runs_s)

    @app.job(name="rated", retry=often, rate=Rate(100, burst=10))
    async def rated(ctx: Context[Any], n: int) -> None:
        with stage.playing(ctx, n, "rated"):
            await asyncio.sleep(0.005)

    @app.job(name="rate_limited", retry=Retry(max_attempts=3))
    async def rate_limited(ctx: Context[Any], n: int, times: int, after: float) -> None:
        stage.note("T", n, time.monotonic_ns() // 1000)
        with stage.playing(ctx, n):
            if stage.started(n) <= times:
                raise RateLimited(after=after)


def add_beat(app: StreamJobs, stage: Stage) -> None:
    """Let there be a cron, with a slot each second."""

    @app.every(1, name="beat", catch_up="all")
    @app.job(name="beat")
    async def beat(ctx: Context[Any]) -> None:
        with stage.playing(ctx, 0):
            pass


async def _held(app: StreamJobs) -> int:
    """Return how many claims this process holds."""
    words = ["XPENDING", QueueKeys(app.namespace, "q").stream, "workers"]
    holders = (await app.connections.aio().run(Command(words, lambda reply: reply)))[3] or []
    return sum(int(count) for name, count in holders if f"-{os.getpid()}-".encode() in name)


def _run_out_of_memory() -> None:
    """Write to what could not be had, as an extension in C does that never looks."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
    allocate = ctypes.CDLL(None).malloc
    allocate.argtypes, allocate.restype = [ctypes.c_size_t], ctypes.c_void_p
    ctypes.memset(allocate(1 << 30), 1, 1)


def work(url: str, namespace: str, folder: str, options: str) -> int:
    """Be a worker."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    given = msgspec.json.decode(options, type=dict[str, Any])
    recorder = Recorder(Path(folder), "worker")
    stage = Stage(Path(folder), recorder)
    app = make_app(url, namespace, stage)
    if given.pop("beat", False):
        add_beat(app, stage)
    app.connections = Connections(url, reply_s=given.pop("reply_s"))
    with watch_calls(recorder):
        return app.run_worker(**given)


def produce(url: str, namespace: str, folder: str, first: str, count: str, timeout_s: str) -> int:
    """Be a producer: enqueue some jobs, one call each; note what was said of each."""
    recorder = Recorder(Path(folder), "producer")
    stage = Stage(Path(folder), recorder)
    app = make_app(url, namespace, stage, enqueue_timeout=float(timeout_s))
    for n in range(int(first), int(first) + int(count)):
        try:
            with recorder.one(app.kind("nap").call(n)) as answered:
                answered(app.kind("nap").enqueue_sync(n))
        except OutcomeUnknown:
            stage.note("U", n)
        else:
            stage.note("J", n)
    return 0


if __name__ == "__main__":
    sys.exit(work(*sys.argv[2:]) if sys.argv[1] == "work" else produce(*sys.argv[2:]))
