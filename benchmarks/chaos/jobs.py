"""The jobs of a soak: quick ones, plain ones, and some that fail, wait, snooze, die or outlast a lease."""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random, random
from typing import Any

from streamjobs import Context, Job, JobOptions, Permanent, Retry, Snooze, StreamJobs, Temporary
from tests.faults.recorder import Recorder

QUEUE = "soak"
KINDS = ("nap", "plain")
LEASE_S = 1.0
SWEEP_S = 0.25
GRACE_S = 5.0
MAX_CRASHES = 100
"""Kills come from outside here; they must not end a job."""
ENQUEUE_S = 1.0
REPLY_S = 1.0
"""How long workers wait for a reply: as much shorter than usual as their lease is."""

FOLDER = "STREAMJOBS_CHAOS_FOLDER"
"""The variable that says where to record."""

MIX = {
    "": 76,
    "delayed": 10,
    "fails": 7,
    "snoozes": 3,
    "keyed": 2,
    "long": 1.5,
    "dies": 0.5,
}
"""How jobs behave, by weight."""
LONG_MS = 1200
KEYS = 20


def open_recorder(role: str) -> Recorder:
    """Return the recorder of this process."""
    return Recorder(Path(os.environ[FOLDER]), role)


def make_app(recorder: Recorder) -> StreamJobs:
    """Return the app of all processes; server and namespace are those of the environment."""
    defaults = JobOptions(queue=QUEUE, retry=Retry(max_crashes=MAX_CRASHES))
    app = StreamJobs(defaults=defaults, enqueue_timeout=ENQUEUE_S)

    @app.job(name="nap")
    async def nap(ctx: Context[Any], n: int, ms: int, how: str) -> None:
        with _playing(recorder, ctx, how):
            await asyncio.sleep(ms / 1000)

    @app.job(name="plain")
    def plain(ctx: Context[Any], n: int, ms: int, how: str) -> None:
        with _playing(recorder, ctx, how):
            time.sleep(ms / 1000)

    return app


@contextmanager
def _playing(recorder: Recorder, ctx: Context[Any], how: str) -> Iterator[None]:
    """Record a run; let it end as its job is to behave."""
    with recorder.run() as effect:
        yield
        if how == "fails" and ctx.attempt == 1:
            raise Temporary("once", after=0.3)
        if how == "snoozes" and random() < 0.6:
            raise Snooze(0.2)
        if how == "dies":
            raise Permanent("as it was asked to")
        effect("done")


def make_job(app: StreamJobs, seed: int, n: int) -> Job:
    """Return job number `n`, the same for the same seed."""
    chance = Random(f"{seed}/{n}")
    kind = app.kind("plain" if chance.random() < 0.15 else "nap")
    [how] = chance.choices(list(MIX), list(MIX.values()))
    if how == "delayed":
        kind = kind.options(delay=chance.uniform(0.1, 2.0))
    if how == "keyed":
        kind = kind.options(dedupe_key=f"key-{chance.randrange(KEYS)}")
    return kind.call(n, LONG_MS if how == "long" else chance.randint(10, 200), how)
