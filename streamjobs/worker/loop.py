"""The event loop of a process that does nothing but run a worker: uvloop's, where that is installed."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from streamjobs.core.errors import MissingExtra
from streamjobs.core.options import Loop


def run_in_loop(work: Coroutine[Any, Any, int], choice: Loop) -> int:
    """Run to the end in a new event loop; return what comes of it.

    Raises:
        MissingExtra: it is to be uvloop's, and uvloop is not installed.
    """
    try:
        factory = _factory(choice)
    except MissingExtra:
        work.close()
        raise
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


def name_of(loop: asyncio.AbstractEventLoop) -> str:
    """Return whose loop this is: `asyncio`, `uvloop`, or the package of another."""
    return type(loop).__module__.partition(".")[0]


def _factory(choice: Loop) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if choice == "asyncio":
        return None
    try:
        import uvloop
    except ImportError as error:
        if choice == "auto":
            return None
        raise MissingExtra("loop='uvloop' needs uvloop: pip install 'streamjobs[uvloop]'") from error
    new: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return new
