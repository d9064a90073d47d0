"""Handlers that run in processes: imported by test_processes.py, and by the processes themselves."""

import logging
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from streamjobs import Cancel, Context, Fixed, Permanent, RateLimited, Retry, Snooze, Temporary, current_job
from tests.worker.support import make_app


def rule(error: BaseException) -> str | None:
    return "ours" if isinstance(error, Strange) else None


class Strange(Exception):
    pass


app = make_app("redis://localhost:1/0", "nowhere", classify=[rule])
"""Its address is wrong on purpose: a process works where its worker does."""

SOON = Retry(max_attempts=2, backoff=Fixed(0.001))
LONG_S = 60.0


def note(path: str, text: object) -> None:
    """Add a line to a file."""
    with open(path, "a") as file:
        file.write(f"{text}\n")


@app.job(process=True)
def pid() -> int:
    return os.getpid()


@app.job(process=True, result_ttl=60)
def add(when: datetime, amount: Decimal, *, days: int = 1) -> tuple[datetime, Decimal]:
    assert isinstance(when, datetime)
    return when + timedelta(days=days), amount * 2


@app.job(process=True, result_ttl=0)
def unkept() -> object:
    return object()


@app.job(process=True, retry=Retry(max_attempts=1))
def extends(ctx: Context[Any]) -> None:
    ctx.extend(5)


@app.job(process=True)
def large(size: int) -> str:
    return "x" * size


class Undumped:
    def model_dump(self, *, mode: str) -> None:
        raise LookupError("cannot be dumped")


@app.job(process=True)
def undumped() -> object:
    return Undumped()


@app.job(process=True)
def look(ctx: Context[Any], n: int) -> list[Any]:
    assert current_job().id == ctx.id
    return [ctx.id, ctx.kind, ctx.queue, ctx.attempt, ctx.max_attempts, ctx.deliveries, ctx.headers, ctx.state,
            ctx.idempotency_key, n]  # fmt: skip


@app.job(process=True, retry=SOON)
def fails(how: str) -> None:
    raise {
        "strange": Strange("what is this"),
        "permanent": Permanent("never"),
        "cancel": Cancel("not needed"),
        "exit": SystemExit(3),
        "wrong": Temporary("a wrong delay", after=float("nan")),
        "limited": RateLimited("slow down", after=0.001),
        "lost": ValueError("\ud800"),
    }[how]


@app.job(process=True)
def snoozes(path: str) -> int:
    if not os.path.exists(path):
        note(path, "once")
        raise Snooze(0.001)
    return current_job().attempt


@app.job(process=True, timeout=0.5, retry=SOON)
def hangs(path: str) -> int:
    """Nothing that Python does could end the first run: it holds the interpreter's lock."""
    if os.path.exists(path):
        return os.getpid()
    started = subprocess.Popen(["sleep", str(LONG_S)])
    note(path, f"{os.getpid()} {started.pid}")
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    sys.setswitchinterval(LONG_S)
    begin = time.monotonic()
    while time.monotonic() < begin + LONG_S:
        pass
    return 0


@app.job(process=True)
def waits(path: str) -> int:
    """Waits, the first time."""
    if os.path.exists(path) and os.getpid() != int(Path(path).read_text().split()[0]):
        return os.getpid()
    note(path, os.getpid())
    threading.Event().wait(LONG_S)
    return 0


@app.job(process=True, retry=Retry(max_attempts=1, backoff=Fixed(0.001)))
def poison(path: str) -> None:
    note(path, current_job().attempt)
    os._exit(3)


@app.job(process=True)
def segfault() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


@app.job(process=True)
def cuts_its_line() -> None:
    os.closerange(3, 100)


@app.job(process=True)
def forks(path: str) -> None:
    """Leaves a process behind that has a copy of everything, in a group of its own."""
    if os.fork() == 0:
        os.setsid()
        note(path, os.getpid())
        threading.Event().wait(LONG_S)
        os._exit(0)
    while not os.path.exists(path):
        pass
    os._exit(4)


@app.job(process=True, result_ttl=60)
def comes_back() -> str:
    if (pid := os.fork()) == 0:
        raise OSError("the copy could not start its program")
    os.waitpid(pid, 0)
    return "parent"


@app.job(process=True, result_ttl=60)
def mirror(n: int) -> int:
    return n


@app.job(process=True, result_ttl=60, retry=SOON)
def speaks_over_it() -> int:
    if current_job().attempt == 1:
        for descriptor in range(3, 30):
            with suppress(OSError):
                if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                    os.write(descriptor, b"\0\0\0\1\xc1")
    return current_job().attempt


@app.job(process=True)
def grows(size: int) -> int:
    held.append(b"x" * size)
    return os.getpid()


held: list[bytes] = []


@app.job(process=True)
def talks() -> None:
    print("to stdout")
    print("to stderr", file=sys.stderr)
    logging.getLogger("a.library").warning("from a library")
    current_job().log.warning("from the %s", "job")
    logging.getLogger("a.library").debug("too low")


@app.job(process=True)
def guarded(path: str) -> bool:
    with current_job().once("only") as effect:
        if effect.needed:
            note(path, "had")
    return effect.needed


@app.job(process=True)
def sends() -> str:
    return pid.enqueue_sync().id


@app.job(process=True)
def stays() -> int:
    """Leaves a thread behind that would keep a process."""
    threading.Thread(target=threading.Event().wait, args=[LONG_S]).start()
    return os.getpid()


async def _await() -> int:
    return 1


def _hidden() -> Any:
    return _await()


@app.job(process=True, retry=Retry(max_attempts=1))
def awaitable() -> Any:
    return _hidden()


@app.job
async def in_the_loop() -> int:
    return os.getpid()


@app.job(name="group", process=True, result_ttl=60)
def group() -> tuple[int, int]:
    return os.getpid(), os.getpgrp()
