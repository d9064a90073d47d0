"""The loop that every service of a worker shares: interval, back-off, supervision, stopping."""

import asyncio
import logging
from collections import Counter
from random import Random
from time import monotonic
from typing import Protocol

from streamjobs.core.errors import OutcomeUnknown, StreamJobsError, Unavailable
from streamjobs.core.retry import RECONNECT

log = logging.getLogger("streamjobs.worker")

HEALABLE = (Unavailable, OutcomeUnknown)
"""What passes by itself: the service goes on after a pause."""
CAUSES_MOST = 1_000
"""So many are remembered."""


class Service(Protocol):
    """Something that a worker does again and again."""

    name: str

    async def tick(self) -> float:
        """Do one round; return the seconds until the next is due."""
        ...


class Complaints:
    """Logs a cause at most every few seconds, however often it comes, and from however many parts of a worker."""

    def __init__(self, every_s: float = 5.0) -> None:
        self._every_s = every_s
        self._last: dict[str, float] = {}
        self.errors: Counter[str] = Counter()
        """Errors that passed, or will, by their cause."""

    def trying_on(self, who: str, error: StreamJobsError) -> None:
        """Log an error that passes by itself; what says the same from elsewhere is the same cause."""
        cause = error.word if isinstance(error, Unavailable) else type(error).__name__
        self.errors[cause] += 1
        self.say(cause, "%s: %s; trying on", who, error)

    def say(self, cause: str, message: str, *args: object, every_s: float | None = None) -> None:
        """Log a warning unless this cause had one a moment ago: within `every_s`, by default that of all."""
        now, every_s = monotonic(), self._every_s if every_s is None else every_s
        if now - self._last.get(cause, -every_s) >= every_s:
            if len(self._last) >= CAUSES_MOST:
                # Others choose the words of some.
                self._last.clear()
            self._last[cause] = now
            log.warning(message, *args)


class Backoff:
    """The pauses between failures in a row."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._failures = 0

    def reset(self) -> None:
        """Begin anew after a success."""
        self._failures = 0

    def pause_s(self) -> float:
        """Take note of a failure; return how long to wait before the next try."""
        self._failures += 1
        return RECONNECT.delay_ms(self._failures, self._random.random()) / 1000


async def run_service(service: Service, stop: asyncio.Event, complaints: Complaints, random: Random) -> None:
    """Tick until `stop` is set. Errors that heal are said and waited out; any other ends the worker."""
    backoff = Backoff(random)
    while not stop.is_set():
        try:
            pause = await service.tick()
            backoff.reset()
        except HEALABLE as error:
            complaints.trying_on(service.name, error)
            pause = backoff.pause_s()
        if pause > 0:
            await until(stop, pause)
        else:
            # memory:// answers without ever giving way, and the other tasks must have their turn.
            await asyncio.sleep(0)


async def until(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event, at most this long; say whether it came."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
