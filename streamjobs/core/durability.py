"""How sure an enqueue is of its job before it returns: the levels, as users name them."""

import re

import msgspec

from streamjobs.core.errors import InvalidOption

MEMORY = "memory"
FSYNC = "fsync"
MAX_REPLICAS = 100

_REPLICAS = re.compile(r"replicas:([0-9]{1,3})\Z")


class Durability(msgspec.Struct, frozen=True):
    """One level that asks for more than the server's memory: so many replicas, or else its disk."""

    replicas: int = 0
    """0 stands for the disk."""

    @property
    def wanted(self) -> int:
        """How many must confirm."""
        return self.replicas or 1


def parse(level: str) -> Durability | None:
    """Return what a level asks for beyond the server's memory; None for `memory`.

    Raises:
        InvalidOption: there is no such level.
    """
    if level == MEMORY:
        return None
    if level == FSYNC:
        return Durability()
    match = _REPLICAS.match(level) if isinstance(level, str) else None
    if match is None or not 1 <= int(match[1]) <= MAX_REPLICAS:
        wanted = f"use 'memory', 'fsync', or 'replicas:N' with N from 1 to {MAX_REPLICAS}"
        raise InvalidOption(f"durability={level!r:.80}: {wanted}")
    return Durability(int(match[1]))
