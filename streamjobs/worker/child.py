"""A process for handlers with `process=True`: runs one job at a time, as its worker says, until that is gone.

It imports the modules in which the kinds are registered, and finds there what is needed to run them: functions,
signatures, and the app's rules for errors. The main thread runs the jobs. Another one listens: when the line to
the worker is cut, the process ends itself and what it has started, whatever its handler does just then; where the
kernel is the quicker to end it, at the worker's death, what it has started may live on.
"""

import inspect
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import Any, Protocol
from weakref import WeakSet

import msgspec

from streamjobs.client import Connections, Target, forks
from streamjobs.core.classify import Rule
from streamjobs.core.codec import DecodeFailed, decode_meta, encode_value
from streamjobs.core.errors import UsageError
from streamjobs.core.job import Raised, Returned, Undecodable
from streamjobs.core.memory import rss_bytes
from streamjobs.core.registry import Handler, Registry
from streamjobs.core.text import error_text, valid
from streamjobs.protocol.keys import QueueKeys
from streamjobs.worker import context, outcomes
from streamjobs.worker.execution import Access, Execution, WorkerQueue
from streamjobs.worker.pipe import Begin, Pieces, Ready, Record, Report, Run, Taken, Told, packed

LAST_S = 1.0
"""How long an idle process has to end in order once its line is cut."""
_PR_SET_PDEATHSIG = 1


class Home(Protocol):
    """An app, as far as the processes for its handlers know it."""

    registry: Registry
    connections: Connections
    namespace: str
    rules: tuple[Rule, ...]

    def use(self, url: Target, *, namespace: str) -> None:
        """Work where the worker does, whatever the module says."""
        ...


homes: "WeakSet[Home]" = WeakSet()
"""Every app of this process."""


class Line:
    """The way to the worker."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._lock = threading.Lock()
        """A handler's own threads may log while it ends."""
        self.came: SimpleQueue[bytes | None] = SimpleQueue()
        """What the worker says, and None when it will say no more."""
        self.busy = False
        threading.Thread(target=self._listen, name="streamjobs-line", daemon=True).start()

    def say(self, piece: Ready | Taken | Record | Report) -> None:
        """Send a piece.

        Raises:
            OSError: nobody hears it any more.
        """
        with self._lock:
            self._line.sendall(packed(piece))

    def _listen(self) -> None:
        pieces = Pieces()
        with suppress(OSError):
            while part := self._line.recv(1 << 16):
                pieces.add(part)
                while (piece := pieces.next()) is not None:
                    self.came.put(piece)
        if not self.busy:
            self.came.put(None)
            time.sleep(LAST_S)
        os.killpg(0, signal.SIGKILL)


class Forwarder(logging.Handler):
    """Hands log records to the worker, which logs them as its own."""

    def __init__(self, line: Line) -> None:
        super().__init__()
        self._to = line
        self._copies = forks.copies

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record, with its traceback as text; in a process that a handler has forked, write it to stderr: two at
        once would mix their words.
        """
        try:
            if forks.copies != self._copies:
                sys.stderr.write(f"{self.format(record)}\n")
                return
            self._to.say(Record(record.name, record.levelno, valid(self.format(record))))
        except Exception:
            self.handleError(record)


class Workplace:
    """What one process has imported, and runs jobs with."""

    def __init__(self, begin: Begin) -> None:
        scheme, text, arguments, folder, name = begin.target
        self._target = Target(scheme, text, arguments, Path(folder), name)
        self._namespace = begin.namespace
        self._found: dict[bytes, tuple[Handler, Home]] = {}
        self._failures: dict[bytes, str] = {}
        for kind, module in begin.kinds:
            self._import(kind, module)

    def _import(self, kind: str, module: str) -> None:
        try:
            import_module(module)
        except BaseException as error:
            print(outcomes.trace(error), file=sys.stderr)
            self._failures[kind.encode()] = f"importing {module} failed in its process: {error_text(error)}"
            return
        for home in list(homes):
            handler = home.registry.find(kind)
            if handler is not None and handler.options.process and handler.function.__module__ == module:
                home.use(self._target, namespace=self._namespace)
                self._found[kind.encode()] = handler, home
                return
        self._failures[kind.encode()] = (
            f"importing {module} does not register it in its process: process=True needs a function that is"
            " registered when its module is imported"
        )

    def run(self, run: Run) -> Report:
        """Run one job to its end."""
        if failure := self._failures.get(run.claim.kind):
            return Report(Raised(failure, "bug"), "", 0)
        handler, home = self._found[run.claim.kind]
        keys = QueueKeys(self._namespace, run.queue, run.partition)
        access = Access(home.connections.aio(), home.connections.sync(), run.consumer)
        execution = Execution(
            run.claim,
            WorkerQueue(keys, run.lease_ms),
            handler,
            meta=decode_meta(run.claim.meta),
            newer=run.newer,
            access=access,
        )
        outcome = copy_context().run(_run, execution, handler, home.rules)
        return Report(outcome, execution.traceback, _held_bytes())


def _run(execution: Execution, handler: Handler, rules: tuple[Rule, ...]) -> Told:
    context.current.set(execution)
    try:
        args, kwargs = handler.signature.decode(execution.claim.body)
    except DecodeFailed as error:
        return Undecodable(str(error))
    if handler.signature.wants_context:
        args = (context.Context(execution), *args)
    try:
        value = handler.function(*args, **kwargs)
        if inspect.isawaitable(value):
            raise TypeError("process=True is for plain functions: this one returned something to be awaited")
    except BaseException as error:
        execution.traceback = outcomes.trace(error)
        return outcomes.raised(execution, error, rules)
    return _returned(execution, value)


def _returned(execution: Execution, value: Any) -> Told:
    if not execution.meta.result_ttl_ms:
        return Returned()
    try:
        return Returned(encode_value(value, "what was returned"))
    except UsageError as error:
        return outcomes.unkeepable(error)


def main(descriptor: int) -> None:
    """Run jobs, as the worker at the other end of this socket says."""
    _die_with_the_worker()
    # A service manager may send its signals to every process: when this one ends is the worker's to say. Not
    # ignored, for what a handler starts would inherit that.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _pass_over)
    ours = socket.socket(fileno=descriptor)
    # What handlers start must not keep it open.
    ours.set_inheritable(False)
    line = Line(ours)
    if (first := line.came.get()) is None:
        return
    begin = msgspec.msgpack.decode(first, type=Begin)
    logging.basicConfig(level=begin.level, handlers=[Forwarder(line)], format="%(message)s")
    line.busy = True
    workplace = Workplace(begin)
    try:
        _serve(line, workplace.run)
    except OSError as error:
        # What cannot be told must not be taken for under way: its death can be seen.
        sys.exit(f"a process for handlers ends, for it cannot reach its worker: {error}")


def _serve(line: Line, run: Callable[[Run], Report]) -> None:
    decoder, copies = msgspec.msgpack.Decoder(Run), forks.copies
    line.busy = False
    line.say(Ready())
    while (piece := line.came.get()) is not None:
        line.busy = True
        job = decoder.decode(piece)
        line.say(Taken())
        report = run(job)
        # The report of a copy would pass for that of the next job.
        forks.end_copy(copies)
        line.busy = False
        line.say(report)
        # What a handler held must not live on until the next job.
        del piece, job, report


def _pass_over(number: int, frame: FrameType | None) -> None:
    """Do nothing."""


def _die_with_the_worker() -> None:
    """Ask the kernel for it, where it can be asked: code that holds the interpreter's lock hears nothing else."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _held_bytes() -> int:
    if held := rss_bytes():
        return held
    import resource

    # The most it ever held: bytes on macOS, KiB elsewhere.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
