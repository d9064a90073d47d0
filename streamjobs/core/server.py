"""What a server says of itself, and what that means for the jobs on it."""

import re
from collections.abc import Iterable
from enum import Enum

import msgspec

FLOORS = {"redis": (6, 2, 5), "valkey": (8, 1)}
"""The oldest versions that the scripts work on."""
KEEPS = "noeviction"
"""The only policy under which a full server refuses instead of deleting."""


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
    RIGHTS = "rights"


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
    if floor is None or found is None:
        return Finding(About.VERSION, Level.UNKNOWN, name)
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


def rights(refused: Iterable[str]) -> Finding:
    """Judge whether a worker can do its work; `refused`: the commands that it may not use."""
    commands = ", ".join(sorted(set(refused)))
    if not commands:
        return Finding(About.RIGHTS, Level.OK)
    return Finding(About.RIGHTS, Level.FAIL, f"a worker may not use {commands}", "give the URL's user these rights")
