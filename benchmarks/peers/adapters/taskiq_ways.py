"""What both brokers of taskiq-redis have in common; fast reads ahead and does not check arguments.

By default, too, its workers take an event loop in C if there is one.
"""

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from .base import FAST, PLAIN, TEXT, AddingAwaited, mark


async def _awaited(number: int, text: str) -> None:
    mark(number)


def _plain(number: int, text: str) -> None:
    mark(number)


def ways(broker: Any, place: str) -> tuple[AddingAwaited, Callable[[], None]]:
    """Return how a job is added, and what becomes a worker of this broker."""
    noop = broker.task("noop")(_plain if PLAIN else _awaited)

    @asynccontextmanager
    async def add() -> AsyncIterator[Any]:
        await broker.startup()
        yield lambda number: noop.kiq(number, TEXT)

    def drain() -> None:
        words = ["worker", place, "--workers", "1", "--log-level", "ERROR"]
        if FAST:
            words += ["--no-parse", "--max-prefetch", "100"]
        os.execv(sys.executable, [sys.executable, "-m", "taskiq", *words])

    return add, drain
