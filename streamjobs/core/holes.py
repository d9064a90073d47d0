"""Holes of old servers that our work can be a way into: scripts, and claims of stream entries.

Known when this version was made. Whoever may run scripts on a server that has one may do there what the
server's own process may.
"""

import re

import msgspec

from streamjobs.core.server import About, Finding, Level, ServerFacts

Version = tuple[int, ...]


class Hole(msgspec.Struct, frozen=True):
    """One hole, and the releases that closed it."""

    name: str
    engine: str
    closed: tuple[Version, ...]
    """Of each branch that was mended, the first release without it; later branches never had it."""
    since: Version = (0,)

    def mended(self, version: Version) -> Version | None:
        """Return the next release without it; None for a version that does not have it."""
        if version < self.since:
            return None
        own = [release for release in self.closed if release[:2] == version[:2]]
        if own:
            return own[0] if version < own[0] else None
        return min((release for release in self.closed if release > version), default=None)


_SCRIPTS_2025 = ("CVE-2025-46817", "CVE-2025-46818", "CVE-2025-46819", "CVE-2025-49844")
_REDIS_2025 = ((6, 2, 20), (7, 2, 11), (7, 4, 6), (8, 0, 4), (8, 2, 2))
_VALKEY_2025 = ((7, 2, 11), (8, 0, 6), (8, 1, 4), (9, 0, 0))

HOLES = (
    Hole("CVE-2022-24735", "redis", ((6, 2, 7), (7, 0, 0))),
    Hole("CVE-2022-24834", "redis", ((6, 0, 20), (6, 2, 13), (7, 0, 12))),
    Hole("CVE-2022-31144", "redis", ((7, 0, 4),), since=(7, 0, 0)),
    Hole("CVE-2022-35951", "redis", ((7, 0, 5),), since=(7, 0, 0)),
    *(Hole(name, "redis", _REDIS_2025) for name in _SCRIPTS_2025),
    *(Hole(name, "valkey", _VALKEY_2025) for name in _SCRIPTS_2025),
)
"""CVE-2022-0543 is not among them: it was the packaging of Debian and Ubuntu, of versions older than any we work on."""


def holes(facts: ServerFacts) -> Finding:
    """Judge whether a server has holes that are known."""
    found = re.match(r"\d+(\.\d+)*", facts.version)
    if found is None or facts.engine not in {hole.engine for hole in HOLES}:
        return Finding(About.HOLES, Level.UNKNOWN, f"none are listed here for {facts.engine or 'this server'}")
    version = tuple(map(int, found[0].split(".")))
    open_ = {hole.name: release for hole in HOLES if hole.engine == facts.engine and (release := hole.mended(version))}
    if not open_:
        return Finding(About.HOLES, Level.OK, "none in our list")
    mended = ".".join(map(str, max(open_.values())))
    what = f"{facts.engine} {facts.version} is known for {', '.join(open_)}"
    advice = f"use {mended} or later, or see that its distribution has mended them; let nobody else run scripts there"
    return Finding(About.HOLES, Level.WARN, what, advice)
