"""The job that is measured: a handler that does nothing, with a body of 100 bytes.

Ours and the bare loops add the same bodies under the same kind and run the same handler.
"""

import asyncio
from collections.abc import Awaitable, Callable
from time import thread_time

import msgspec

KIND = "bench.noop"
QUEUE = "default"
FIRST = 1_000_000
"""Numbers start here, so that every body has the same length."""
TEXT = "x" * 72

BUSY_S = 0.001

Noop = Callable[[int, str], Awaitable[None]]


class Arguments(msgspec.Struct):
    """What a body holds."""

    number: int
    text: str


def body(number: int) -> bytes:
    """Return the body of job `number` (below nine million), 100 bytes of JSON."""
    return msgspec.json.encode(Arguments(FIRST + number, TEXT))


async def busy(number: int, text: str) -> None:
    """Compute for a millisecond: a handler that is bound by the processor."""
    until = thread_time() + BUSY_S
    while thread_time() < until:
        pass


def countdown(jobs: int) -> tuple[Noop, asyncio.Event]:
    """Return the handler, and the event that is set when it has run `jobs` times."""
    left, ended = jobs, asyncio.Event()

    async def noop(number: int, text: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            ended.set()

    return noop, ended
