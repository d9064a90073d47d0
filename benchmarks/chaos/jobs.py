"""The jobs of a soak: quick ones, plain ones, some that fail, wait, snooze, die or outlast a lease, and some that
hold a dedupe key, take turns, keep a pace, or have an effect once; beside them a cron.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random, random
from typing import Any

from streamjobs import (
    Concurrency,
    Context,
    Job,
    JobOptions,
    Latest,
    Permanent,
    Rate,
    Retry,
    Snooze,
    StreamJobs,
    Temporary,
    UntilDone,
    UntilStarted,
    Window,
)
from tests.faults.recorder import Recorder, Witness
from tests.faults.rules import Pace

QUEUE = "soak"
KINDS = ("nap", "plain", "turn", "paced", "beat")
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
    "": 61,
    "delayed": 10,
    "fails": 7,
    "snoozes": 3,
    "keyed": 8,
    "turn": 4,
    "paced": 3,
    "once": 2,
    "long": 1.5,
    "dies": 0.5,
}
"""How jobs behave, by weight."""
THEN = {"": 12, "fails": 3, "snoozes": 1}
"""How those go on that hold a key or are limited."""
LONG_MS = 1200

MODES = {"done": UntilDone(), "started": UntilStarted(), "latest": Latest(), "window": Window(3)}
KEYS = 3
"""Of each mode."""
ACCOUNTS = 8
PLACES = {"turn": 6, "turn-of": 1}
PACES = {"pace": Pace(15.0, 5), "pace-of": Pace(4.0, 2)}
"""What limits allow, of all accounts and of each. It is more than comes in: what an outage held up is made up for."""
SHARING = 200
"""Of so many jobs of a producer one after the other, those that have an effect have the same."""
CRON = "beat"
EVERY_S = 1.0


def open_recorder(role: str) -> Recorder:
    """Return the recorder of this process."""
    return Recorder(Path(os.environ[FOLDER]), role)


def make_app(recorder: Recorder) -> StreamJobs:
    """Return the app of all processes; server and namespace are those of the environment."""
    defaults = JobOptions(queue=QUEUE, retry=Retry(max_crashes=MAX_CRASHES))
    app = StreamJobs(defaults=defaults, enqueue_timeout=ENQUEUE_S)

    @app.job(name="nap")
    async def nap(ctx: Context[Any], n: int, ms: int, how: str) -> None:
        with _playing(recorder, ctx, how) as witness:
            if how == "once":
                # Every second effect is not had again where nobody knows of it.
                effect = n // SHARING
                await witness.once(ctx, f"effect-{effect}", first=effect % 2 == 0, lasting_s=ms / 1000)
            else:
                await asyncio.sleep(ms / 1000)

    @app.job(name="plain")
    def plain(ctx: Context[Any], n: int, ms: int, how: str) -> None:
        with _playing(recorder, ctx, how):
            time.sleep(ms / 1000)

    _add_limited(app, recorder)

    @app.every(EVERY_S, name=CRON, catch_up="all")
    @app.job(name="beat")
    async def beat(ctx: Context[Any]) -> None:
        with _playing(recorder, ctx, ""):
            await asyncio.sleep(0.01)

    return app


def _add_limited(app: StreamJobs, recorder: Recorder) -> None:
    @app.job(name="turn", concurrency=[Concurrency(PLACES["turn-of"], key="account"), Concurrency(PLACES["turn"])])
    async def turn(ctx: Context[Any], n: int, ms: int, how: str, account: int) -> None:
        with _playing(recorder, ctx, how, f"turn-of {account}", "turn"):
            await asyncio.sleep(ms / 1000)

    @app.job(name="paced", rate=[_rate("pace-of", "account"), _rate("pace")])
    def paced(ctx: Context[Any], n: int, ms: int, how: str, account: int) -> None:
        with _playing(recorder, ctx, how, f"pace-of {account}", "pace"):
            time.sleep(ms / 1000)


def _rate(name: str, key: str | None = None) -> Rate:
    return Rate(round(PACES[name].per_s), key=key, burst=PACES[name].burst)


@contextmanager
def _playing(recorder: Recorder, ctx: Context[Any], how: str, *lanes: str) -> Iterator[Witness]:
    """Record a run; let it end as its job is to behave."""
    with recorder.run(*lanes) as witness:
        yield witness
        if how == "fails" and ctx.attempt == 1:
            raise Temporary("once", after=0.3)
        if how == "snoozes" and random() < 0.6:
            raise Snooze(0.2)
        if how == "dies":
            raise Permanent("as it was asked to")
        witness("done")


def make_job(app: StreamJobs, seed: int, n: int) -> Job:
    """Return job number `n`, the same for the same seed."""
    chance = Random(f"{seed}/{n}")
    kind = app.kind("plain" if chance.random() < 0.15 else "nap")
    [how] = chance.choices(list(MIX), list(MIX.values()))
    [then] = chance.choices(list(THEN), list(THEN.values()))
    ms = chance.randint(10, 200)
    match how:
        case "turn" | "paced":
            return app.kind(how).call(n, ms, then, chance.randrange(ACCOUNTS))
        case "keyed":
            mode = chance.choice(list(MODES))
            delay = chance.choice([None, None, None, chance.uniform(0.1, 1.0)])
            kind = kind.options(dedupe=MODES[mode], dedupe_key=f"{mode}-{chance.randrange(KEYS)}", delay=delay)
            how = then
        case "delayed":
            kind = kind.options(delay=chance.uniform(0.1, 2.0))
        case "once":
            kind = app.kind("nap")
        case "long":
            ms = LONG_MS
    return kind.call(n, ms, how)
