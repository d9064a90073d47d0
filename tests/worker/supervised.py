"""An app for the command line, whose jobs say where they start and wait for a lock: run by test_supervise.py."""

import fcntl
import os
from typing import Any

from streamjobs import Context
from tests.worker.support import make_app

app = make_app(os.environ["STREAMJOBS_URL"], os.environ["STREAMJOBS_TEST_NAMESPACE"])


def _say(ctx: Context[Any]) -> None:
    os.write(1, f"{ctx.kind} started in {os.getpid()}, attempt {ctx.attempt}\n".encode())


def _wait() -> None:
    with open(os.environ["STREAMJOBS_TEST_BARRIER"]) as barrier:
        fcntl.flock(barrier, fcntl.LOCK_SH)


@app.job(name="quick")
async def quick(ctx: Context[Any]) -> None:
    _say(ctx)


@app.job(name="waits")
def waits(ctx: Context[Any]) -> None:
    _say(ctx)
    _wait()


@app.job(name="blocks")
async def blocks(ctx: Context[Any]) -> None:
    """Its process's loop stands still meanwhile."""
    _say(ctx)
    _wait()


@app.job(name="poison")
async def poison(ctx: Context[Any]) -> None:
    _say(ctx)
    os._exit(137)


@app.job(name="unlucky")
def unlucky(ctx: Context[Any]) -> None:
    """Its process dies twice, and not by its fault."""
    _say(ctx)
    if ctx.attempt < 3:
        os._exit(137)
    _wait()
