"""Threads for plain functions: as many as run at once, reused, and never waited for at the end.

All take their work, one piece at a time, from one line, so that none waits behind one that runs. What costs is
to wake a thread, and to wake the event loop: at most one thread is on its way up at a time, which wakes the next
one if there is more to do than it can take; and the loop is told once of all that has ended until it looks.
So short functions run by the dozen in one thread, and a hundred that block have a hundred.

A thread stuck in a handler cannot be ended; as a daemon it does not keep the process alive either.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context
from time import monotonic
from typing import Any, TypeAlias

from streamjobs.client import forks

Waiting: TypeAlias = "asyncio.Future[Any]"
Work: TypeAlias = tuple[Waiting, Context, Callable[[], Any]]


class Threads:
    """Runs plain functions for one event loop; a new thread starts when none is idle."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._copies = forks.copies
        self._work: deque[Work] = deque()
        self._ended: deque[tuple[Waiting, Any, BaseException | None]] = deque()
        self._told = False
        """The loop will look at what has ended."""
        self._lock = threading.Lock()
        """Held to sleep and to wake, never for a single piece of work."""
        self._idle: list[threading.Lock] = []
        """Each thread sleeps on a lock of its own; the last one to fall asleep is the first to be woken."""
        self._rising = False
        """A thread is on its way up: whatever was put in line before it arrives, it will see."""
        self._closed = False
        self._threads: set[threading.Thread] = set()

    def submit(self, context: Context, function: Callable[[], Any]) -> "asyncio.Future[Any]":
        """Run `function` in `context` on a thread; the future gets what comes of it. From the loop only.

        A future that is cancelled is left; the function runs on.

        Raises:
            RuntimeError: the system has no thread for it, and there is none yet.
        """
        future: asyncio.Future[Any] = self._loop.create_future()
        self._work.append((future, context, function))
        if not self._rising:
            try:
                self._raise_one()
            except RuntimeError:
                self._work.pop()
                raise
        return future

    def close(self, seconds: float) -> None:
        """End the idle threads, waiting at most so long for all; those that run end after their function."""
        with self._lock:
            self._closed = True
            threads = list(self._threads)
            while self._idle:
                self._idle.pop().release()
        deadline = monotonic() + seconds
        for thread in threads:
            thread.join(max(0.0, deadline - monotonic()))

    def _raise_one(self) -> None:
        with self._lock:
            if self._rising:
                return
            self._rising = True
            if self._idle:
                self._idle.pop().release()
                return
            thread = threading.Thread(target=self._serve, name="streamjobs-handler", daemon=True)
            self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError:
            # The system has no more: those that are there take the work in turn.
            self._rising = False
            self._threads.discard(thread)
            if not self._threads:
                raise

    def _serve(self) -> None:
        bed = threading.Lock()
        bed.acquire()
        work = self._work
        # Before it looks: what comes in line later then wakes another one.
        self._rising = False
        while True:
            try:
                future, context, function = work.popleft()
            except IndexError:
                if self._sleep(bed):
                    continue
                return
            if work and not self._rising:
                # This function may block: what is behind it must not wait for that.
                self._raise_one()
            value = error = None
            try:
                value = context.run(function)
            except BaseException as raised:
                error = raised
            forks.end_copy(self._copies)
            self._ended.append((future, value, error))
            # What a handler held must not live on until the next job.
            del value, error
            del future, context, function
            if not self._told:
                self._tell()

    def _sleep(self, bed: threading.Lock) -> bool:
        """Sleep until there is work; False when there will be none."""
        with self._lock:
            if self._work:
                return True
            if self._closed:
                self._threads.discard(threading.current_thread())
                return False
            self._idle.append(bed)
        bed.acquire()
        self._rising = False
        return True

    def _tell(self) -> None:
        self._told = True
        try:
            self._loop.call_soon_threadsafe(self._take_in)
        except RuntimeError:
            # The loop is closed: this worker has ended, and its jobs have long been given back.
            return

    def _take_in(self) -> None:
        """Give everything that has ended to who waits for it."""
        # Before it looks: what ends from here on is told anew.
        self._told = False
        ended = self._ended
        while ended:
            _settle(*ended.popleft())


def _settle(future: Waiting, value: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration):
        # A future cannot hold one.
        future.set_exception(RuntimeError(f"the handler raised {error!r}"))
    else:
        future.set_exception(error)
