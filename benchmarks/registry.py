"""Every scenario by name, and every side that a measured process can be.

A new scenario is a module with `SIDES` and `run`, and one line here.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path

import msgspec

from . import (
    cron,
    dead,
    dedupe,
    delayed,
    drain,
    durability,
    enqueue,
    growth,
    latency,
    limits,
    memory,
    mixed,
    recovery,
    scripts,
    startup,
    stats,
)
from .document import Result, Soak
from .duel import Size
from .lab import Lab
from .measure import Order, Sample
from .server import running


class UsageError(Exception):
    """What is asked for cannot be done; the message says why."""


class Given(msgspec.Struct, frozen=True):
    """What the command line says; each scenario takes of it what is its own."""

    url: str | None
    size: Size
    minutes: float | None = None
    seed: int | None = None
    server: Path | None = None
    """The binary of servers that are started."""


class Session(msgspec.Struct, frozen=True):
    """A scenario with its server at hand; it runs as its results are taken."""

    server: str
    """Name and version."""
    results: Iterator[Result | Soak]


class Scenario(msgspec.Struct, frozen=True):
    """One thing that can be measured or tried; `open` gives a session of it. `takes`: the options that are its own."""

    summary: str
    takes: frozenset[str]
    open: Callable[[Given], AbstractContextManager[Session]]
    schemes: tuple[str, ...] = ("redis", "rediss", "unix")
    """Of the servers that may be named."""


def _duels(run: Callable[[Lab, Size], Iterator[Result]]) -> Callable[[Given], AbstractContextManager[Session]]:
    @contextmanager
    def opened(given: Given) -> Iterator[Session]:
        with nullcontext(given.url) if given.url is not None else running(binary=given.server) as url:
            with closing(Lab(url)) as lab:
                yield Session(lab.server_version(), run(lab, given.size))

    return opened


@contextmanager
def _durability(given: Given) -> Iterator[Session]:
    with durability.opened(given.url, given.server) as labs:
        server = next(iter(labs.values())).server_version()
        yield Session(server, durability.run(labs, given.size))


def _chaos(given: Given) -> AbstractContextManager[Session]:
    try:
        # Late: what it is judged by is part of the tests, which an installed package has not.
        from .chaos import session
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "tests":
            raise
        raise UsageError("chaos needs a checkout of the repository: its judge is part of the tests") from error
    return session.opened(given)


TIMING = frozenset({"quick", "repeats", "server"})
MEASURING = TIMING | {"jobs"}

SCENARIOS: Mapping[str, Scenario] = {
    "enqueue": Scenario(
        "adding jobs in bulk, one by one, and by many callers at once",
        MEASURING,
        _duels(enqueue.run),
    ),
    "dedupe": Scenario("adding jobs with a dedupe key beside jobs without", MEASURING, _duels(dedupe.run)),
    "drain": Scenario(
        "workers draining no-op jobs: each kind of handler, results, keys",
        MEASURING,
        _duels(drain.run),
    ),
    "mixed": Scenario("producer and worker at once; handlers that wait, or compute", MEASURING, _duels(mixed.run)),
    "latency": Scenario("from enqueue to start, at fixed rates of arrivals", MEASURING, _duels(latency.run)),
    "delayed": Scenario("how late jobs start that were sent for later", MEASURING, _duels(delayed.run)),
    "durability": Scenario("adding jobs that are to be on disk, beside others", MEASURING, _durability),
    "growth": Scenario(
        "what a job costs beside many waiting, queues, claims; idle workers",
        MEASURING,
        _duels(growth.run),
    ),
    "memory": Scenario("bytes per job in each state; how processes grow", MEASURING, _duels(memory.run)),
    "recovery": Scenario("from the kill of a worker until its jobs run again", MEASURING, _duels(recovery.run)),
    "scripts": Scenario("server time per script and size of batch", MEASURING, _duels(scripts.run)),
    "limits": Scenario("rates and concurrency: how exact, at what cost, and how fair", MEASURING, _duels(limits.run)),
    "cron": Scenario("schedules: what they cost, and how punctual they are", TIMING, _duels(cron.run)),
    "dead": Scenario(
        "dead list, groups and replay of many dead jobs",
        MEASURING,
        _duels(dead.run),
    ),
    "startup": Scenario(
        "an import, a first job, --help, stats: from their start to their end", TIMING, _duels(startup.run)
    ),
    "stats": Scenario("a look at a queue with 2 million jobs beside one at an empty", TIMING, _duels(stats.run)),
    "chaos": Scenario(
        "producers and workers under kills, pauses, cuts: is anything lost?",
        frozenset({"minutes", "seed"}),
        _chaos,
        # Connections of others cannot be cut.
        ("redis", "unix"),
    ),
}

SIDES: Mapping[str, Callable[[Order], Sample]] = {
    **enqueue.SIDES,
    **enqueue.SINGLE_SIDES,
    **dedupe.SIDES,
    **drain.SIDES,
    **drain.MORE_SIDES,
    **limits.SIDES,
    **cron.SIDES,
    **mixed.SIDES,
    **latency.SIDES,
    **delayed.SIDES,
    **growth.SIDES,
    **memory.SIDES,
    **recovery.SIDES,
    **stats.SIDES,
}
