"""Processes for handlers with `process=True`: as many as run at once, reused, killed where a run must end.

Each is a new interpreter, never a fork, in a process group of its own, and runs one job at a time. A pair of
sockets ties it to its worker: it closes when either of the two dies, however it dies.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Any

import msgspec

from streamjobs.client import Target
from streamjobs.core.cpus import cpus
from streamjobs.core.errors import InvalidOption
from streamjobs.core.job import Crashed, Outcome, Raised, Returned
from streamjobs.core.registry import Handler
from streamjobs.core.text import how_ended
from streamjobs.worker.execution import Execution
from streamjobs.worker.pipe import Answer, Begin, Pieces, Ready, Record, Report, Run, Taken, answer, packed
from streamjobs.worker.station import Station

READY_WITHIN_S = 60.0
"""How long a process may take to import what it is to run."""
TRIES = 3
"""So many processes in a row that die before they have taken a job are its failure, whoever kills them."""
LAST_S = 1.0
"""How long a process that was killed is waited for, and an idle one may take to end in order."""

_BOOT = "import sys; sys.path[:] = sys.argv[2:]; from streamjobs.worker.child import main; main(int(sys.argv[1]))"


class Gone(Exception):
    """A process has died; the text says how."""


class NotTaken(Gone):
    """It died before it had taken the job that it was given."""


class Process:
    """One process, from this side of the line."""

    def __init__(self, process: asyncio.subprocess.Process, line: socket.socket) -> None:
        self.jobs = 0
        self._process = process
        self._line = line
        self._pieces = Pieces()
        self._heard = False
        """Somebody listens to the line just now."""
        self.ended = asyncio.create_task(self._watch(), name="streamjobs-process")
        self.ended.add_done_callback(self._close_line)

    async def begin(self, begin: Begin) -> None:
        """Wait until it can run jobs.

        Raises:
            NotTaken: it has died.
            TimeoutError: it takes longer than READY_WITHIN_S.
        """
        async with asyncio.timeout(READY_WITHIN_S), self._listening():
            await self._send(packed(begin))
            while not isinstance(said := await self._hear(), Ready):
                if said is None:
                    raise NotTaken(await self._how())
                if isinstance(said, Record):
                    _log(said, {})

    async def run(self, run: Run, fields: dict[str, Any]) -> Report:
        """Have a job run; what it logs goes to this process's log, with these fields.

        Raises:
            NotTaken: the process has died, and not by this job.
            Gone: it has died in mid-job.
        """
        taken = False
        async with self._listening():
            await self._send(packed(run))
            try:
                while not isinstance(said := await self._hear(), Report):
                    if said is None:
                        raise (Gone if taken else NotTaken)(await self._how())
                    if isinstance(said, Record):
                        _log(said, fields)
                    taken = taken or isinstance(said, Taken)
            except msgspec.MsgspecError as error:
                # Something that the handler has forked has spoken, too.
                raise (Gone if taken else NotTaken)("said what nobody understands, and was killed") from error
        self.jobs += 1
        return said

    def kill(self) -> None:
        """End it now, and whatever it has started in its group."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def retire(self) -> None:
        """Let it end: it is idle, and sees its line cut."""
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_WR)

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[None]:
        """Listen to the line, and kill the process where that comes to no good end."""
        self._heard = True
        try:
            yield
        except BaseException:
            self.kill()
            await asyncio.wait([self.ended], timeout=LAST_S)
            raise
        finally:
            self._heard = False
            if self.ended.done():
                self._line.close()

    def _close_line(self, ended: "asyncio.Task[int]") -> None:
        if not self._heard:
            self._line.close()

    async def _watch(self) -> int:
        code = await self._process.wait()
        with suppress(ProcessLookupError, PermissionError):
            # What it has started and left behind.
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(OSError):
            # A copy of its end may live on in something that it has forked: that must not keep anybody waiting.
            self._line.shutdown(socket.SHUT_RDWR)
        return code

    async def _how(self) -> str:
        # Its end of the line can be closed by the handler too.
        self.kill()
        return how_ended(await asyncio.shield(self.ended))

    async def _send(self, piece: bytes) -> None:
        with suppress(OSError):
            # Who is dead says so by its silence.
            await asyncio.get_running_loop().sock_sendall(self._line, piece)

    async def _hear(self) -> Answer | None:
        """Return what it says next; None when it will say no more."""
        loop = asyncio.get_running_loop()
        while (piece := self._pieces.next()) is None:
            try:
                part = await loop.sock_recv(self._line, 1 << 16)
            except OSError:
                return None
            if not part:
                return None
            self._pieces.add(part)
        return answer(piece)


class Pool:
    """The processes of one worker."""

    def __init__(self, station: Station, handlers: Iterable[Handler], target: Target) -> None:
        options = station.options
        self._consumer = station.consumer
        self._most = min(options.concurrency, options.pool or cpus())
        self._max_jobs, self._max_bytes = options.max_jobs_per_process, options.max_process_bytes
        place = (target.scheme, target.text, dict(target.arguments), str(target.folder), target.name)
        kinds = [(one.kind, one.function.__module__) for one in handlers if one.options.process]
        level = min(logging.getLogger(name).getEffectiveLevel() for name in (None, "streamjobs.job"))
        self._begin = Begin(place, station.namespace, kinds, level)
        self._idle: list[Process] = []
        self._processes: set[Process] = set()
        self._taken = 0

    @property
    def free(self) -> int:
        """How many more jobs can run now."""
        return self._most - self._taken

    def reserve(self) -> None:
        """Keep a process for a job that is about to `run`."""
        self._taken += 1

    def vacate(self) -> None:
        """Give up what `reserve` kept."""
        self._taken -= 1

    async def run(self, execution: Execution) -> Outcome:
        """Run a job; return its outcome, a value as its JSON. Cancelled, it kills the process.

        The job's deadline counts from when its process has taken it.
        """
        how = ""
        try:
            for _ in range(TRIES):
                try:
                    return await self._run(execution)
                except NotTaken as error:
                    how = str(error)
            return Raised(f"its process {how} before it ran anything: see the worker's stderr", "crash")
        except Gone as gone:
            return Crashed(f"its process {gone}")
        except TimeoutError:
            return Raised(f"its process was not ready within {READY_WITHIN_S:g} s", "timeout")
        except OSError as error:
            return Raised(f"no process can be started: {error}", "other")

    async def close(self) -> None:
        """End all; an idle one may do so in order."""
        for process in self._processes:
            process.retire()
        await self._wait_for_all()
        for process in self._processes:
            process.kill()
        await self._wait_for_all()

    async def _wait_for_all(self) -> None:
        if self._processes:
            await asyncio.wait([one.ended for one in self._processes], timeout=LAST_S)

    async def _run(self, execution: Execution) -> Outcome:
        # The start of a process is no time of the job's.
        execution.deadline = None
        process = await self._have()
        claim, queue = execution.claim, execution.queue
        assert execution.handler is not None
        if execution.handler.timeout_s is not None:
            execution.deadline = monotonic() + execution.handler.timeout_s
        keys = queue.keys
        run = Run(claim, keys.queue, keys.partition, queue.lease_ms, self._consumer, execution.newer)
        report = await process.run(run, execution.log_fields)
        self._put_back(process, report.held_bytes)
        execution.traceback = report.traceback
        if isinstance(report.outcome, Returned) and isinstance(report.outcome.value, bytes):
            return Returned(msgspec.Raw(report.outcome.value))
        return report.outcome

    def _put_back(self, process: Process, held_bytes: int) -> None:
        if process.jobs < self._max_jobs and held_bytes <= (self._max_bytes or held_bytes):
            self._idle.append(process)
        else:
            process.retire()
            # One whose threads do not let it end.
            asyncio.get_running_loop().call_later(2 * LAST_S, process.kill)

    async def _have(self) -> Process:
        while self._idle:
            process = self._idle.pop()
            if not process.ended.done():
                return process
        process = await self._start()
        await process.begin(self._begin)
        return process

    async def _start(self) -> Process:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            try:
                started = await asyncio.create_subprocess_exec(
                    sys.executable, "-u", "-c", _BOOT, str(theirs.fileno()), *sys.path,
                    stdin=asyncio.subprocess.DEVNULL,
                    # What handlers print must not mix with what the worker's own output is for.
                    stdout=2,
                    pass_fds=[theirs.fileno()],
                    # A group of its own; uvloop knows no `process_group`.
                    start_new_session=True,
                )  # fmt: skip
            except BaseException:
                ours.close()
                raise
        process = Process(started, ours)
        self._processes.add(process)
        process.ended.add_done_callback(lambda _: self._processes.discard(process))
        return process


def _log(record: Record, fields: dict[str, Any]) -> None:
    logger = logging.getLogger(record.logger)
    if logger.isEnabledFor(record.level):
        logger.handle(logger.makeRecord(record.logger, record.level, "", 0, record.text, (), None, extra=fields))


def check_handlers(handlers: Iterable[Handler], target: Target) -> None:
    """See that the handlers with `process=True` can run in a process.

    Raises:
        InvalidOption: no other process could find one, or see the server.
    """
    for handler in handlers:
        if not handler.options.process:
            continue
        if handler.function.__module__ == "__main__":
            raise InvalidOption(
                f"kind {handler.kind!r}: process=True, and its module is the program that was started, which no"
                " process may start again: put it in a module of its own, or start `streamjobs worker -A MODULE:APP`"
            )
        if target.scheme == "memory":
            raise InvalidOption(
                f"kind {handler.kind!r}: process=True, and memory:// is seen by one process alone:"
                " use a server, or embedded://PATH"
            )
