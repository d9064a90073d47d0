"""What a worker does beside its services, in tasks and callbacks that nobody waits for.

An error there that nobody foresaw may have cost a slot or a claim. A worker must not go on with less than it seems to
have: it ends with that error, and what it holds goes to others.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from typing import Any

log = logging.getLogger("streamjobs.worker")


class Background:
    """The tasks of one part of a worker. Of the worker's own event loop."""

    def __init__(self, broken: "asyncio.Future[None]", name: str) -> None:
        """`broken`: ends with the first error that was not foreseen, and the worker with it."""
        self._broken = broken
        self._name = f"streamjobs-{name}"
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None], context: Context | None = None) -> "asyncio.Task[None]":
        """Begin a task, and keep it until it has ended."""
        task = asyncio.create_task(work, name=self._name, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.take(error)

    def call(self, function: Callable[..., None], *args: Any) -> None:
        """Call a function for a turn of the loop, which would only log what it raises."""
        try:
            function(*args)
        except Exception as error:
            self.take(error)

    def take(self, error: BaseException) -> None:
        """Take an error that nobody foresaw."""
        log.error("this worker ends, since nobody foresaw: %r", error, exc_info=error)
        if not self._broken.done():
            self._broken.set_exception(error)
            # It has been told, also where the worker is at its end already.
            self._broken.exception()

    async def ended(self) -> None:
        """Wait until no task is left; cancelled, it cancels them."""
        try:
            if self._tasks:
                await asyncio.wait(self._tasks)
        except asyncio.CancelledError:
            await self.end()
            raise

    async def end(self) -> None:
        """Cancel what is left, and wait until it has ended."""
        await end(list(self._tasks))


async def end(tasks: "Sequence[asyncio.Future[Any]]") -> None:
    """Cancel tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
