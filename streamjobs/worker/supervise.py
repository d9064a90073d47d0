"""Keep several worker processes running: start them, start again those that die, stop them together.

Each child is a new interpreter, never a fork: no connection, lock or thread is shared. A pair of
sockets ties it to its parent. The parent's orders go over it and not as signals, since a service
manager may send its signal to every process of a group, and a child must not take that and the
parent's order for two. The socket closes when the parent dies, however it dies: the children then
stop in peace.
"""

import asyncio
import logging
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from time import monotonic

import msgspec

from streamjobs.core.errors import StreamJobsError
from streamjobs.core.retry import Exponential
from streamjobs.core.text import how_ended, plural
from streamjobs.worker.background import Background
from streamjobs.worker.front import QUARANTINE, Front
from streamjobs.worker.line import ABORT, AWAKE, LAST, MOVES, QUIET, READY, STOP, SUSPECT
from streamjobs.worker.service import until

log = logging.getLogger("streamjobs.worker")

BACKOFF = Exponential(base=0.5, cap=30.0)
SETTLED_S = 30.0
"""A child that has worked for so long begins its back-off anew."""
FALSE_STARTS = 5
"""After so many starts in a row, none of which came as far as to work, no more are made."""
AT_ONCE_S = 5.0
"""How long children that were told to end at once have for it."""
ASK_EVERY_S = 20.0
SILENT_ROUNDS = 3
"""A child that has not answered for so many rounds is named in a warning, and left alone: what it runs may be good."""
FAILED = 1
FOR_GOOD = (2, 3, 5)
"""Exit codes of a child that could not start and never will: wrong usage, a server that refuses or is refused."""


class CrashedAtStart(StreamJobsError):
    """No child comes as far as to work."""


class Child:
    """One process, and this side of the line to it."""

    def __init__(self, process: asyncio.subprocess.Process, line: socket.socket, *, for_suspects: bool) -> None:
        self.process = process
        self.for_suspects = for_suspects
        self.ready = False
        self.quiet = False
        """An operator has ordered it to start nothing."""
        self.last = False
        """An operator has ordered it to stop."""
        self.started_at = monotonic()
        self._line = line
        self.unanswered = 0
        """Rounds since it was asked whether it moves; no time, of which some may have passed while we were frozen."""

    def say(self, word: bytes) -> None:
        """Give an order; one that is dead or frozen takes none."""
        with suppress(OSError):
            self._line.send(word)

    def ask(self) -> None:
        """Find out whether its event loop moves, and say so where it has not for long."""
        self.unanswered += 1
        if self.unanswered == 1:
            self.say(MOVES)
        elif self.unanswered == SILENT_ROUNDS + 1:
            said = "child %d has not moved for %.0f s: it is frozen, or a handler blocks its event loop"
            log.warning(said, self.process.pid, SILENT_ROUNDS * ASK_EVERY_S)

    def heard(self) -> bytes | None:
        """Return what it has said since it was last asked; None when it will say no more."""
        try:
            return self._line.recv(4096) or None
        except BlockingIOError:
            return b""
        except OSError:
            return None


class End(msgspec.Struct, frozen=True):
    """How one child ended."""

    who: str
    code: int
    """Its exit code, or minus the signal that killed it."""
    how: str
    ready: bool = False
    lived_s: float = 0.0
    quiet: bool = False
    """It was to start nothing: nor does the next in its place."""
    last: bool = False
    """It was ordered to stop: no other takes its place."""

    @property
    def verdict(self) -> int:
        """0 or 1, of one that was told to end; one that a signal met before it could take any ended well."""
        early = not self.ready and self.code in (-signal.SIGTERM, -signal.SIGINT)
        return int(self.code != 0 and not early)


class Supervisor:
    """Runs children until a signal, or until they have done what they were started for."""

    def __init__(
        self,
        command: Sequence[str],
        processes: int,
        *,
        burst: bool = False,
        backoff: Exponential = BACKOFF,
        front: Front | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            command: starts a child; `--line FD` is added to it, and `--quarantine` for the child for suspects.
            processes: how many children, beside that one.
            burst: a child that ends well has done its part.
            backoff: the pauses between the deaths of a child and its next start.
            front: answers for all children, where somebody asks.
        """
        self._command = list(command)
        self._processes = processes
        self._burst = burst
        self._backoff = backoff
        self._front = front or Front()
        self._random = Random()
        self._children: set[Child] = set()
        self._stopping = asyncio.Event()
        self._proven = asyncio.Event()
        """A child has come as far as to work: the others may start."""
        self._suspects = asyncio.Event()
        """A child has left a suspect to the child for those."""
        self._false_starts = 0
        self._signals: list[int] = []
        self._codes: list[int] = []
        self._cause: int | CrashedAtStart | None = None
        """What ended it all before a signal did."""

    async def run(self) -> int:
        """Keep the children until the end; return the exit code for them all.

        Returns:
            0 after a clean end, 1 if a child's was not, 128 + the signal after a second one, 2, 3 or 5
            when no child could ever start for that reason.

        Raises:
            CrashedAtStart: the children die again and again before they work.
        """
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGTERM, signal.SIGINT)
        for number in numbers:
            loop.add_signal_handler(number, self._on_signal, int(number))
        broken: asyncio.Future[None] = loop.create_future()
        # Nobody else would start what suspects wait for.
        broken.add_done_callback(lambda _: self._stop(STOP))
        background = Background(broken, "supervisor")
        quarantine = background.spawn(self._keep_quarantine())
        background.spawn(self._ask())
        try:
            await asyncio.gather(*(self._keep(number) for number in range(self._processes)))
            self._stop(STOP)
            await asyncio.wait([quarantine])
        finally:
            self._stopping.set()
            await background.end()
            await self._leave_none()
            for number in numbers:
                loop.remove_signal_handler(number)
        if isinstance(self._cause, CrashedAtStart):
            raise self._cause
        if broken.done():
            broken.result()
        if len(self._signals) > 1:
            return 128 + self._signals[1]
        return self._cause or max(self._codes, default=0)

    def _on_signal(self, number: int) -> None:
        self._signals.append(number)
        if len(self._signals) == 1:
            name = signal.Signals(number).name
            log.info("the supervisor is stopping: %s came; a second signal ends it at once", name)
            self._stop(STOP)
        else:
            self._end_at_once()

    def _stop(self, order: bytes) -> None:
        self._stopping.set()
        for child in self._children:
            child.say(order)

    def _end_at_once(self) -> None:
        self._stop(ABORT)
        asyncio.get_running_loop().call_later(AT_ONCE_S, self._kill)

    def _kill(self) -> None:
        for child in self._children:
            with suppress(ProcessLookupError):
                child.process.kill()

    async def _leave_none(self) -> None:
        self._kill()
        for child in list(self._children):
            await child.process.wait()

    async def _keep(self, number: int) -> None:
        """Keep one ordinary child; all but the first wait until one works, so that a bad app is said once."""
        if number:
            await self._either(self._proven)
        failures, quiet = 0, False
        while not self._stopping.is_set():
            end = await self._run_one("child", str(number), quiet=quiet)
            quiet = end.quiet
            if self._stopping.is_set() or end.last or (end.code == 0 and self._burst):
                self._codes.append(end.verdict)
                self._front.dismiss(str(number))
                return
            if self._hopeless(end):
                return
            failures = await self._pause(end, failures)

    async def _keep_quarantine(self) -> None:
        """Keep one child for suspects, for as long as there are some."""
        failures = 0
        while await self._either(self._suspects):
            end = await self._run_one("quarantine child", QUARANTINE, "--quarantine")
            # What was left since then is met again by a sweep, and said again.
            self._suspects.clear()
            if self._stopping.is_set():
                self._codes.append(end.verdict)
            elif end.code:
                failures = await self._pause(end, failures)

    async def _ask(self) -> None:
        """Ask all children that work, again and again, whether they move."""
        while True:
            await asyncio.sleep(ASK_EVERY_S)
            for child in self._children:
                if child.ready:
                    child.ask()

    async def _either(self, event: asyncio.Event) -> bool:
        """Wait for an event or the end; say whether there is no end yet."""
        waits = [asyncio.create_task(one.wait()) for one in (event, self._stopping)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
        return not self._stopping.is_set()

    async def _pause(self, end: End, failures: int) -> int:
        """Wait before the next start; return how many ends there were in a row."""
        failures = 1 if end.lived_s > SETTLED_S else failures + 1
        pause_s = self._backoff.delay_ms(failures, self._random.random()) / 1000
        log.warning("%s %s; the next starts in %.1f s", end.who, end.how, pause_s)
        await until(self._stopping, pause_s)
        return failures

    def _hopeless(self, end: End) -> bool:
        """Give up, and say so, where no start will ever work."""
        if end.ready:
            return False
        self._false_starts += 1
        if end.code in FOR_GOOD:
            self._cause = self._cause or end.code
        elif self._false_starts >= FALSE_STARTS and not any(one.ready for one in self._children):
            often = f"{plural(self._false_starts, 'start')} in a row came to nothing"
            self._cause = CrashedAtStart(
                f"the worker dies before it works ({often}, the last {end.how}): see its lines above"
            )
        else:
            return False
        self._end_at_once()
        return True

    async def _run_one(self, name: str, place_name: str, *words: str, quiet: bool = False) -> End:
        """Start a child, perhaps one that starts nothing until it is ordered to, and wait for its end."""
        ours, theirs = socket.socketpair()
        with ours, self._front.place(place_name) as place:
            ours.setblocking(False)
            try:
                with theirs:
                    process = await self._start([theirs.fileno(), *place.descriptors], [*place.words, *words])
            except OSError as error:
                return End(name, FAILED, f"could not be started: {error}")
            place.member = child = Child(process, ours, for_suspects=bool(words))
            if quiet:
                child.quiet = True
                child.say(QUIET)
            self._children.add(child)
            await self._watch(child, ours)
            self._children.discard(child)
        assert process.returncode is not None
        who, lived_s = f"{name} {process.pid}", monotonic() - child.started_at
        return End(
            who, process.returncode, how_ended(process.returncode), child.ready, lived_s, child.quiet, child.last
        )

    async def _start(self, descriptors: Sequence[int], words: Sequence[str]) -> asyncio.subprocess.Process:
        """Start a child that inherits these: the first is the line."""
        return await asyncio.create_subprocess_exec(
            *self._command, "--line", str(descriptors[0]), *words,
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=descriptors,
            # Ctrl-C goes to the supervisor alone, which then stops them in order.
            process_group=0,
        )  # fmt: skip

    async def _watch(self, child: Child, line: socket.socket) -> None:
        """Listen to a child until it has ended."""
        loop = asyncio.get_running_loop()
        loop.add_reader(line, self._on_words, child, line)
        try:
            if self._stopping.is_set():
                child.say(STOP)
            await child.process.wait()
        finally:
            loop.remove_reader(line)
        # Its last words may have come with its end.
        self._on_words(child, line)

    def _on_words(self, child: Child, line: socket.socket) -> None:
        words = child.heard()
        if words is None:
            asyncio.get_running_loop().remove_reader(line)
            return
        if READY in words:
            child.ready = True
            self._false_starts = 0
            self._proven.set()
        if MOVES in words:
            child.unanswered = 0
        if SUSPECT in words:
            self._suspects.set()
        if QUIET in words or AWAKE in words:
            child.quiet = words.rfind(QUIET) > words.rfind(AWAKE)
            self._rest()
        child.last = child.last or LAST in words

    def _rest(self) -> None:
        """Where no ordinary child starts anything, neither does the one for suspects: it ends with what it runs."""
        if all(one.quiet for one in self._children if not one.for_suspects):
            for child in self._children:
                if child.for_suspects:
                    child.say(STOP)
