"""Threads for plain functions: as many as run at once, reused, and never waited for at the end.

A thread stuck in a handler cannot be ended; as a daemon it does not keep the process alive either.
"""

import asyncio
import threading
from collections.abc import Callable
from contextvars import Context
from queue import SimpleQueue
from time import monotonic
from typing import Any

Work = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Context, Callable[[], Any]]


class Threads:
    """Runs plain functions; a new thread starts when none is idle."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._threads: set[threading.Thread] = set()

    def submit(self, context: Context, function: Callable[[], Any]) -> "asyncio.Future[Any]":
        """Run `function` in `context` on a thread; the future gets what comes of it.

        A future that is cancelled is left; the function runs on.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with self._lock:
            start = self._idle == 0
            if not start:
                self._idle -= 1
        if start:
            thread = threading.Thread(target=self._serve, name="streamjobs-handler", daemon=True)
            self._threads.add(thread)
            thread.start()
        self._work.put((loop, future, context, function))
        return future

    def close(self, seconds: float) -> None:
        """End the idle threads, waiting at most so long for all; those that run end after their function."""
        for _ in range(len(self._threads)):
            self._work.put(None)
        deadline = monotonic() + seconds
        for thread in list(self._threads):
            thread.join(max(0.0, deadline - monotonic()))

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            loop, future, context, function = work
            try:
                value = context.run(function)
            except BaseException as error:
                self._rest(loop, future, None, error)
            else:
                self._rest(loop, future, value, None)
            # What a handler held must not live on until the next job.
            del work, future, context, function
        with self._lock:
            self._threads.discard(threading.current_thread())

    def _rest(
        self,
        loop: asyncio.AbstractEventLoop,
        future: "asyncio.Future[Any]",
        value: Any,
        error: BaseException | None,
    ) -> None:
        with self._lock:
            self._idle += 1
        try:
            loop.call_soon_threadsafe(_settle, future, value, error)
        except RuntimeError:
            # The loop is closed: this worker has ended, and the job has long been given back.
            return


def _settle(future: "asyncio.Future[Any]", value: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration):
        # A future cannot hold one.
        future.set_exception(RuntimeError(f"the handler raised {error!r}"))
    else:
        future.set_exception(error)
