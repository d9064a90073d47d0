"""What the tests of handlers in processes share: a look at other processes, and at what they have noted."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from tests.worker.support import WITHIN_S, pause


async def until(true: Callable[[], object]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(WITHIN_S):
        while not true():
            await pause(0.01)


def lines(file: str) -> list[str]:
    return Path(file).read_text().split() if Path(file).exists() else []


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
