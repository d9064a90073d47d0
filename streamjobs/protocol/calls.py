"""What is said to the server, as values.

A store operation builds a `Call` (a script by name) or a `Command` (a plain command) and never
sends it; the executors in `client/` do. So producers, workers and the command line share every
line of protocol code, and tests can look at a request without a server.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")

Word: TypeAlias = bytes | str | int
"""One argument on the wire."""


class Call(msgspec.Struct, Generic[T], frozen=True):
    """Run the script `script` (a file name in lua/, without `.lua`)."""

    script: str
    keys: Sequence[str]
    args: Sequence[Word]
    decode: Callable[[Any], T]


class Command(msgspec.Struct, Generic[T], frozen=True):
    """Run one plain command, `words[0]` being its name."""

    words: Sequence[Word]
    decode: Callable[[Any], T]
    follows: bool = False
    """It speaks of what the request before it wrote, so it is repeated when that one had to be."""


Request: TypeAlias = Call[T] | Command[T]
"""Whatever an executor can run; its reply goes through `decode` once."""
