"""What the hash `config` says of a queue: as the code has it, and as an operator set it, which goes first."""

from collections.abc import Mapping

from streamjobs.protocol.calls import Command
from streamjobs.protocol.keys import QueueKeys

MAX_WAITING = "max_waiting"
"""How many jobs may wait before producers are refused more."""
KEEP_DEAD = "keep_dead"
"""How many dead jobs are kept, `<ms>ms` for how long, or OFF for all."""
THRESHOLDS = "thresholds"
"""From when on the queue is degraded or critical, as the code has it."""
OFF = "off"
"""Set in place of a value: it does not hold, whatever the code says."""


def declare(keys: QueueKeys, name: str, value: str | int) -> Command[int]:
    """Say what the code has: it holds for all."""
    return Command(["HSET", keys.config, f"{name}:code", value], int)


def override(keys: QueueKeys, name: str, value: str | None) -> Command[int]:
    """Set a value at run time; None for what the code says."""
    return Command(["HDEL", keys.config, name] if value is None else ["HSET", keys.config, name, value], int)


def said(keys: QueueKeys, name: str) -> Command[tuple[str, str]]:
    """Read a value: as set at run time, and as the code has it; "" where it is not said."""
    return Command(
        ["HMGET", keys.config, name, f"{name}:code"], lambda raw: ((raw[0] or b"").decode(), (raw[1] or b"").decode())
    )


def declare_thresholds(keys: QueueKeys, text: str) -> Command[int]:
    """Say from when on a queue is degraded or critical, as the code has it: for operators, who do not know the code."""
    return Command(["HSET", keys.config, THRESHOLDS, text], int)


def max_waiting_in(config: Mapping[str, str]) -> int | None:
    """Return how many jobs may wait by a queue's configuration; None for any number."""
    value = config.get(MAX_WAITING) or config.get(f"{MAX_WAITING}:code", "")
    return int(value) if value.isdigit() else None
