"""Worker processes that live through hours in seconds: the product's own workers, on a clock that jumps.

The event loop's time passes only while nobody has anything to do, and then at once to whatever is due
next. The server is a real one, asked without blocking. A process that crashes does nothing more: no
request of its gets through, and a lease later its claims look silent.
"""

import asyncio
import selectors
from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import pytest

from streamjobs import StreamJobs, WorkerOptions
from streamjobs.client import Connections
from streamjobs.client.aio import AsyncExecutor
from streamjobs.client.sync import SyncExecutor
from streamjobs.protocol.calls import Command, Request
from streamjobs.worker.duty import Duty
from streamjobs.worker.worker import Worker
from tests.worker.support import Queue, make_app

LEASE_S = 15.0
ENDLESS_LEASE_S = 86_400
"""What the server is told: its clock is not ours. A claim looks silent when we say so."""
RESTART_S = 1.0
"""So long after its death a process is started again."""
REQUEST_S = 0.001
"""What a request takes. Where it took nothing, who asks again and again would stop the clock."""
BELL_S = 15.0
"""How often a simulated read or a wait for a bell looks whether something has come."""
CLOCKED = (
    "clock deadlines fetch once order promote quarantine run service start supervise threads watchdog winddown".split()
)
"""The modules of a worker that may look at the clock."""


class _Jumping(selectors.DefaultSelector):
    """Waits for nothing; what a loop would have waited goes to `slept`."""

    slept = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        self.slept += 0.0 if found or timeout is None else timeout
        return found


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop with a clock of its own."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.slept


class Wire(AsyncExecutor):
    """A process's way to the server; none once it is dead."""

    def __init__(self, executor: SyncExecutor, over: asyncio.Event) -> None:
        """`over`: set at the end of it all; what the dead wait for comes to its end then."""
        self._executor = executor
        self._over = over
        self.cut = False

    async def run_all(self, requests: Sequence[Request[Any]]) -> list[Any]:
        await self._pass(REQUEST_S)
        first = requests[0]
        if isinstance(first, Command) and (first.words[0] == "BLPOP" or "BLOCK" in first.words):
            # What follows is run when the wait is over.
            return [await self._patiently(first), *self._executor.run_all(requests[1:])]
        return self._executor.run_all(requests)

    async def _patiently(self, command: Command[Any]) -> Any:
        """Run a command; one that blocks is asked again and again for as long as it would have blocked."""
        words, seconds = list(command.words), 0.0
        if words[0] == "BLPOP":
            words, seconds = ["LPOP", words[1]], float(words[2])
        elif "BLOCK" in words:
            at = words.index("BLOCK")
            seconds = int(words[at + 1]) / 1000
            del words[at : at + 2]
        while True:
            [reply] = self._executor.run_all([Command(words, lambda raw: raw)])
            if reply or seconds <= 0:
                break
            await self._pass(min(BELL_S, seconds))
            seconds -= BELL_S
        if isinstance(reply, Exception):
            return reply
        # The list's name comes with what is popped, but only to who would have blocked.
        return command.decode([str(command.words[1]).encode(), reply] if words[0] == "LPOP" and reply else reply)

    async def _pass(self, seconds: float) -> None:
        """Let time pass; nothing follows once the process is dead."""
        await asyncio.sleep(seconds)
        if self.cut:
            await self._over.wait()
            raise asyncio.CancelledError

    async def unblock(self, via: AsyncExecutor) -> bool:
        return False

    async def aclose(self) -> None:
        return None


class _Wires(Connections):
    """The connections of one process."""

    def __init__(self, wire: Wire, url: str) -> None:
        super().__init__(url)
        self._wire = wire

    def aio(self, *, block_ms: int = 0, reply_s: float | None = None) -> AsyncExecutor:
        return getattr(self, "_wire", None) or super().aio(block_ms=block_ms, reply_s=reply_s)


class Process:
    """One worker process; `crash` ends it as SIGKILL does."""

    def __init__(self, world: "World", duty: Duty) -> None:
        self.duty = duty
        self._world = world
        self._wire = Wire(world.connections.sync(), world.over)
        app = make_app(world.url, world.queue.keys.namespace)
        app.connections = _Wires(self._wire, world.url)
        world.register(app, self)
        self.worker: Worker = app.make_worker(["q"], world.options, duty=duty)
        self.worker.on_left = world.on_left
        self._app = app
        self._task = asyncio.create_task(self._live())

    async def _live(self) -> None:
        try:
            await self.worker.run()
        finally:
            self._app.connections.close()
            self._world.ended(self)

    def crash(self) -> None:
        if not self._wire.cut:
            self._wire.cut = True
            self._task.cancel()
            self._world.crashed(self)


class World:
    """A queue, its worker processes, and who starts them again when they die."""

    def __init__(
        self,
        url: str,
        namespace: str,
        register: Callable[[StreamJobs, Process], None],
        duties: Sequence[Duty],
        concurrency: int = 100,
    ) -> None:
        """`register`: registers the kinds of a process."""
        self.url = url
        self.queue = Queue(url, namespace)
        self.connections = Connections(url)
        self.register = register
        self.options = WorkerOptions(concurrency=concurrency, lease=ENDLESS_LEASE_S, sweep=60.0, block=30.0)
        self.over = asyncio.Event()
        self.processes = {Process(self, duty) for duty in duties}
        self.crashes: Counter[Duty] = Counter()
        self._supervised = Duty.ORDINARY in duties
        self._closing = False

    def on_left(self) -> None:
        """Start the child for suspects, as a supervisor does."""
        if self._supervised and not any(one.duty is Duty.SUSPECTS for one in self.processes):
            self.processes.add(Process(self, Duty.SUSPECTS))

    def crashed(self, process: Process) -> None:
        """Let a dead process's claims look silent after a lease."""
        self.crashes[process.duty] += 1
        name = process.worker.consumer.encode()
        asyncio.get_running_loop().call_later(LEASE_S, lambda: self.silence(name))

    def silence(self, consumer: bytes) -> None:
        self.queue.silence(ENDLESS_LEASE_S * 1000, consumer)

    def ended(self, process: Process) -> None:
        """Start another one in the place of one that died; the child for suspects is started when there are some."""
        self.processes.discard(process)
        if not self._closing and process.duty is not Duty.SUSPECTS:
            asyncio.get_running_loop().call_later(RESTART_S, self._restart, process.duty)

    def _restart(self, duty: Duty) -> None:
        if not self._closing:
            self.processes.add(Process(self, duty))

    async def close(self) -> None:
        """Stop every process in peace."""
        self._closing = True
        for one in self.processes:
            one.worker.stop()
        while self.processes:
            await asyncio.sleep(1)
        self.over.set()
        await asyncio.sleep(1)
        self.connections.close()
        self.queue.close()


def live(scene: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Play a scene, a coroutine function, in a loop whose clock jumps; return what it returns."""
    # Without the loop's own checks, which triple the time of some million callbacks.
    with asyncio.Runner(debug=False, loop_factory=JumpingLoop) as runner:
        loop = runner.get_loop()
        for name in CLOCKED:
            monkeypatch.setattr(import_module(f"streamjobs.worker.{name}"), "monotonic", loop.time)
        monkeypatch.setattr("streamjobs.worker.deadlines.BEAT_S", 5.0)
        monkeypatch.setattr("streamjobs.worker.promote.LONGEST_S", 30.0)
        monkeypatch.setattr("streamjobs.worker.watchdog.EVERY_S", 60.0)
        return runner.run(scene())
