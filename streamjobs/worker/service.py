"""The loop that every service of a worker shares: interval, back-off, supervision, stopping."""

import asyncio
import logging
from random import Random
from time import monotonic
from typing import Protocol

from streamjobs.core.errors import OutcomeUnknown, Unavailable

log = logging.getLogger("streamjobs.worker")

HEALABLE = (Unavailable, OutcomeUnknown)
"""What passes by itself: the service goes on after a pause."""


class Service(Protocol):
    """Something that a worker does again and again."""

    name: str

    async def tick(self) -> float:
        """Do one round; return the seconds until the next is due."""
        ...


class Complaints:
    """Logs a cause at most every few seconds, however often it comes."""

    def __init__(self, every_s: float = 5.0) -> None:
        self._every_s = every_s
        self._last: dict[str, float] = {}

    def say(self, cause: str, message: str, *args: object) -> None:
        """Log a warning unless this cause had one a moment ago."""
        now = monotonic()
        if now - self._last.get(cause, -self._every_s) >= self._every_s:
            self._last[cause] = now
            log.warning(message, *args)


class Backoff:
    """Pauses between failures in a row: 50 ms doubling to 2 s, the upper half drawn."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._failures = 0

    def reset(self) -> None:
        self._failures = 0

    def pause_s(self) -> float:
        self._failures += 1
        return min(2.0, 0.05 * 2 ** min(self._failures - 1, 10)) * (0.5 + 0.5 * self._random.random())


async def run_service(service: Service, stop: asyncio.Event, complaints: Complaints, random: Random) -> None:
    """Tick until `stop` is set. Errors that heal are said and waited out; any other ends the worker."""
    backoff = Backoff(random)
    while not stop.is_set():
        try:
            pause = await service.tick()
            backoff.reset()
        except HEALABLE as error:
            complaints.say(f"{service.name}:{type(error).__name__}", "%s: %s; trying on", service.name, error)
            pause = backoff.pause_s()
        if pause > 0:
            await until(stop, pause)


async def until(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event, at most this long; say whether it came."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
