"""What a server says of itself, and what that means for the jobs on it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from ipaddress import ip_address

import msgspec

FLOORS = {"redis": (6, 2, 5), "valkey": (8, 1)}
"""The oldest versions that the scripts work on."""
_MODES = {
    "sentinel": ("is a sentinel, which keeps no jobs", "name the primary that it watches over in the URL"),
    "cluster": (
        "is part of a cluster, whose nodes would each have some of the queues, while workers ask one for all",
        "name a primary in the URL that is in no cluster",
    ),
}
"""Those in which a server cannot be worked on: what is wrong, and what to do."""
KEEPS = "noeviction"
"""The only policy under which a full server refuses instead of deleting."""
SCHEMA = "1"
"""How this version lays out a queue's keys, as the queue's config says it; one that says nothing is laid out so."""


class ServerFacts(msgspec.Struct, frozen=True):
    """What the server says of itself; empty, 0 or None where it does not."""

    engine: str = ""
    version: str = ""
    role: str = ""
    """`master` or `slave`, in its own words."""
    eviction: str = ""
    """Its maxmemory-policy."""
    used_bytes: int = 0
    limit_bytes: int | None = None
    """0 for no limit."""
    mode: str = ""
    """`standalone`, `cluster` or `sentinel`."""
    machine_bytes: int = 0
    """The memory of the machine, or container, that it runs on."""
    appends: bool | None = None
    """Whether it keeps an append-only file."""
    failing: tuple[str, ...] = ()
    """What it could not write to its disk the last time."""
    replicas: int | None = None
    """How many follow it."""
    good_replicas: int | None = None
    """How many of them are near enough; None where it takes writes without any."""


class Level(Enum):
    """How a finding is to be taken."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    """No worker should start on such a server."""
    UNKNOWN = "unknown"
    """The server does not say."""


class About(Enum):
    """What can be looked at."""

    ROLE = "role"
    VERSION = "version"
    EVICTION = "eviction policy"
    TRANSPORT = "transport"
    RIGHTS = "rights"
    SCHEMA = "schema"
    LATENCY = "latency"
    DRIVER = "driver"
    HOLES = "known holes"
    MEMORY = "memory"
    PERSISTENCE = "persistence"
    REPLICAS = "replicas"
    CLOCK = "clock"
    SLOW_LOG = "slow log"
    TYPES = "types of keys"
    CONSUMERS = "consumers"
    CLAIMS = "claims"
    BACKLOG = "backlog"
    LEAKS = "leaked keys"


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    about: About
    level: Level
    what: str = ""
    advice: str = ""
    """What to do about it."""

    def __str__(self) -> str:
        return f"{self.what}; {self.advice}" if self.advice else self.what


def role(facts: ServerFacts) -> Finding:
    """Judge whether this is the server to write to."""
    if facts.role == "slave":
        advice = "name the primary in the URL, or wait while this one is being promoted"
        return Finding(About.ROLE, Level.FAIL, "this is a replica, and what it took would be lost", advice)
    return Finding(About.ROLE, Level.OK if facts.role else Level.UNKNOWN, facts.role)


def version(facts: ServerFacts) -> Finding:
    """Judge whether the scripts work there."""
    floor = FLOORS.get(facts.engine)
    found = re.match(r"\d+(\.\d+)*", facts.version)
    name = f"{facts.engine} {facts.version}".strip()
    if facts.mode in _MODES:
        what, advice = _MODES[facts.mode]
        return Finding(About.VERSION, Level.FAIL, f"{name} {what}", advice)
    if floor is None or found is None:
        stranger = facts.engine and floor is None
        return Finding(About.VERSION, Level.UNKNOWN, f"{name}: tried are {' and '.join(FLOORS)}" if stranger else name)
    if tuple(map(int, found[0].split("."))) < floor:
        needed = " or ".join(f"{engine} {'.'.join(map(str, least))}" for engine, least in FLOORS.items())
        return Finding(About.VERSION, Level.FAIL, f"{name} is too old", f"use {needed}, or a later one")
    return Finding(About.VERSION, Level.OK, name)


def eviction(facts: ServerFacts) -> Finding:
    """Judge whether the server keeps jobs when its memory is full."""
    policy = facts.eviction
    if policy in ("", KEEPS):
        return Finding(About.EVICTION, Level.OK if policy else Level.UNKNOWN, policy)
    prey = "whole queues" if policy.startswith("allkeys") else "dedupe keys, results and the memory of producers"
    advice = f"set maxmemory-policy {KEEPS} there"
    if facts.limit_bytes == 0:
        what = f"with a maxmemory the server would delete {prey} (maxmemory-policy {policy})"
        return Finding(About.EVICTION, Level.WARN, what, advice)
    what = f"the server deletes {prey} when its memory is full (maxmemory-policy {policy})"
    return Finding(About.EVICTION, Level.FAIL, what, advice)


def rights(refused: Iterable[str], role: str = "worker", durably: Sequence[str] = ()) -> Finding:
    """Judge whether somebody can do its work; `refused`: the commands, keys and channels that it may not use;
    `durably`: of the commands that only `durability=` takes, those that it may not use.
    """
    denied = ", ".join(sorted(set(refused)))
    who = f"{'an' if role[0] in 'aeiou' else 'a'} {role}"
    if not denied:
        less = f", but {', '.join(durably)} for durability=" if durably else ""
        return Finding(About.RIGHTS, Level.OK, f"all that {who} needs{less}")
    return Finding(About.RIGHTS, Level.FAIL, f"{who} may not use {denied}", "give the URL's user these rights")


def transport(scheme: str, host: str, *, password: bool, certificate: bool = False) -> Finding:
    """Judge who can read along, or pretend to be one of ours, on the way to the server."""
    if scheme not in ("redis", "rediss") or _is_here(host):
        return Finding(About.TRANSPORT, Level.OK, "stays on this machine")
    if scheme == "rediss":
        if password or certificate:
            return Finding(About.TRANSPORT, Level.OK, "TLS, and the server knows who we are")
        what = "anybody who reaches the server can read and change every job: it asks for no password"
        return Finding(About.TRANSPORT, Level.WARN, what, "give it a password or users, and name one in the URL")
    if password:
        what = "the password and every job cross the network for anybody to read"
        return Finding(About.TRANSPORT, Level.WARN, what, "let the server speak TLS, and write rediss:// in the URL")
    what = "anybody who reaches the server can read and change every job: no TLS, and no password"
    return Finding(About.TRANSPORT, Level.WARN, what, "give it a password or users, let it speak TLS, use rediss://")


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".").lower() == "localhost"


def schema(found: Mapping[str, str]) -> Finding:
    """Judge whether this version understands queues; `found`: what the config of each says, "" for nothing."""
    for queue, text in found.items():
        if text not in ("", SCHEMA):
            what = f"queue {queue} is laid out by schema {text[:20]}, of which this version knows nothing"
            return Finding(
                About.SCHEMA, Level.FAIL, what, "run a later version of streamjobs, or use another namespace"
            )
    return Finding(About.SCHEMA, Level.OK, SCHEMA)
