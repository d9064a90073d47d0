"""Which arguments operators are not to see, as the code of apps says it, and a queue's configuration keeps it.

What was said once stays: jobs from before a change are still there, and workers of two versions may say
different things at once.
"""

from collections.abc import Mapping, Sequence

from streamjobs.protocol.calls import Command, Word
from streamjobs.protocol.keys import QueueKeys

_FIELD = "redact:"
"""`redact:<kind> <argument>`: a kind has no space in it."""

Secrets = Mapping[str, Sequence[str]]
"""Names of arguments, by kind."""


def declare(keys: QueueKeys, secrets: Secrets) -> Command[int]:
    """Say which arguments are secret, for one kind or more."""
    words: list[Word] = [
        word for kind, names in secrets.items() for name in names for word in (f"{_FIELD}{kind} {name}", 1)
    ]
    return Command(["HSET", keys.config, *words], int)


def declared(keys: QueueKeys) -> Command[dict[str, set[str]]]:
    """Read which arguments are secret, by kind."""
    return Command(["HGETALL", keys.config], _secrets)


def _secrets(raw: Sequence[bytes]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for field in raw[::2]:
        text = field.decode("utf-8", "replace")
        if text.startswith(_FIELD):
            kind, _, name = text.removeprefix(_FIELD).partition(" ")
            found.setdefault(kind, set()).add(name)
    return found
