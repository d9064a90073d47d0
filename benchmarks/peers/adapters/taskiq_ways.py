"""What both brokers of taskiq-redis have in common; fast reads ahead and does not check arguments."""

import os
import sys
from collections.abc import Callable
from typing import Any

from .base import FAST, TEXT, Clock, callers, mark


def ways(broker: Any, place: str) -> tuple[Any, dict[str, Callable[..., Any]], Callable[[], None]]:
    """Return the task, how jobs are added, and what becomes a worker of this broker."""

    async def run(number: int, text: str) -> None:
        mark()

    noop = broker.task("noop")(run)

    async def one_awaited(jobs: int) -> None:
        await broker.startup()
        with Clock(jobs):
            for number in range(jobs):
                await noop.kiq(number, TEXT)

    async def together(jobs: int) -> None:
        await broker.startup()
        await callers(lambda number: noop.kiq(number, TEXT), jobs)

    def drain() -> None:
        words = ["worker", place, "--workers", "1", "--log-level", "ERROR"]
        if FAST:
            words += ["--no-parse", "--max-prefetch", "100"]
        os.execv(sys.executable, [sys.executable, "-m", "taskiq", *words])

    return noop, {"one_awaited": one_awaited, "together": together}, drain
