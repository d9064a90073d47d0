"""Run one worker as a process does: until a signal, and at once after a second one; or until its supervisor says so."""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from contextlib import suppress

from streamjobs.core.text import plural
from streamjobs.protocol import workers
from streamjobs.worker.line import ABORT, AWAKE, LAST, MOVES, QUIET, READY, SUSPECT
from streamjobs.worker.worker import Worker

log = logging.getLogger("streamjobs.worker")


async def run_until_signalled(worker: Worker) -> int:
    """Run the worker; return the process's exit code.

    SIGTERM or SIGINT stops it in peace; a second one ends it at once, with what runs given back.

    Returns:
        0 after a clean end, 1 if handlers outlived the grace time, 128 + the signal after a second one.
    """
    _spare_collections()
    loop = asyncio.get_running_loop()
    received: list[int] = []

    def on_signal(number: int) -> None:
        received.append(number)
        if len(received) == 1:
            name = signal.Signals(number).name
            log.info("worker %s is stopping: %s came; a second signal ends it at once", worker.consumer, name)
            worker.stop()
        else:
            worker.abort()

    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        # Only a main thread can take signals; elsewhere somebody else stops the worker.
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, on_signal, int(number))
    try:
        clean = await worker.run()
    finally:
        for number in numbers:
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.remove_signal_handler(number)
    if len(received) > 1:
        return 128 + received[1]
    return 0 if clean else 1


async def run_supervised(worker: Worker, descriptor: int) -> int:
    """Run the worker until the parent says so or is gone, or until a signal; return the exit code.

    Only the parent can end it at once: a service manager may send its signals to parent and child alike.
    Once the parent is gone, so can a second signal.

    Returns:
        0 after a clean end, 1 if handlers outlived the grace time.
    """
    _spare_collections()
    loop = asyncio.get_running_loop()
    with socket.socket(fileno=descriptor) as line:
        # What handlers start must not keep it open.
        line.set_inheritable(False)
        line.setblocking(False)
        worker.on_left = lambda: _say(line, SUSPECT)
        worker.on_order = lambda word: _say(line, _ORDERED[word])
        told = asyncio.create_task(_tell_when_ready(worker, line))
        orphaned = asyncio.Event()
        loop.add_reader(line, _on_words, worker, line, orphaned)
        received = 0

        def on_signal() -> None:
            nonlocal received
            received += 1
            worker.stop()
            if received > 1 and orphaned.is_set():
                worker.abort()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, on_signal)
        try:
            return 0 if await worker.run() else 1
        finally:
            told.cancel()
            loop.remove_reader(line)


async def _tell_when_ready(worker: Worker, line: socket.socket) -> None:
    await worker.ready.wait()
    _say(line, READY)


_ORDERED = {workers.QUIET: QUIET, workers.RUN: AWAKE, workers.STOP: LAST}
"""What the parent is told of an operator's orders."""


def _say(line: socket.socket, word: bytes) -> None:
    # A parent that is frozen reads nothing, and one that is dead is noticed elsewhere.
    with suppress(OSError):
        line.send(word)


def _on_words(worker: Worker, line: socket.socket, orphaned: asyncio.Event) -> None:
    try:
        words = line.recv(4096)
    except BlockingIOError:
        return
    except OSError:
        words = b""
    if not words:
        orphaned.set()
        log.warning("worker %s is stopping: its supervisor is gone", worker.consumer)
        asyncio.get_running_loop().remove_reader(line)
    if MOVES in words:
        _say(line, MOVES)
        words = words.replace(MOVES, b"")
        if not words:
            return
    if words == QUIET:
        worker.quiet()
        return
    worker.stop()
    if ABORT in words:
        worker.abort()


async def leave(code: int) -> None:
    """Exit at once where handlers do not end even when they are cancelled; else return.

    asyncio waits for every task before it closes its loop, and a handler that swallows its cancellation
    would keep a process that has been told to end.
    """
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    stuck = (await asyncio.wait(left, timeout=0.5))[1] if left else ()
    if stuck:
        log.error("%s will not end, even cancelled: leaving without", plural(len(stuck), "handler"))
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _spare_collections() -> None:
    """Leave out of each garbage collection what was loaded at start, and collect less often.

    A process that does nothing but run jobs gains a sixth of its time by this; measured with no-op jobs.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
