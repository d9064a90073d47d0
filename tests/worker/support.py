"""What the tests of the worker share: short clocks, a look at the queue, claims made to look old."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streamjobs import JobOptions, StreamJobs
from streamjobs.client import Connections
from streamjobs.core.job import Claim
from streamjobs.core.options import WorkerOptions
from streamjobs.protocol import leases
from streamjobs.protocol.calls import Command, Word
from streamjobs.protocol.keys import QueueKeys

ROOT = Path(__file__).parents[2]
WITHIN_S = 20.0
"""How long a test waits for what must come; on an idle machine it comes in a fraction of that."""

FAST = WorkerOptions(concurrency=10, lease=1.0, sweep=0.1, grace=5.0, block=1.0)


def make_app(url: str, namespace: str, **options: Any) -> StreamJobs:
    """Return an app without kinds, whose jobs go to the queue `q`."""
    options.setdefault("defaults", JobOptions(queue="q", result_ttl=60))
    return StreamJobs(url, namespace=namespace, **options)


async def within(event: asyncio.Event, seconds: float = WITHIN_S) -> None:
    """Wait for an event that must come."""
    async with asyncio.timeout(seconds):
        await event.wait()


async def pause(seconds: float) -> None:
    """Let time pass: where it is what is measured, or what a handler is said to take."""
    waiting = asyncio.ensure_future(asyncio.Event().wait())
    try:
        await asyncio.wait([waiting], timeout=seconds)
    finally:
        waiting.cancel()


async def drain(app: StreamJobs, queues: Sequence[str] | None = None, **changes: Any) -> None:
    """Run a worker until nothing waits, runs or retries."""
    options = msgspec.structs.replace(FAST, burst=True, **changes)
    async with asyncio.timeout(WITHIN_S):
        assert await app.make_worker(queues, options).run()


class Flag:
    """An event that counts: `wait(n)` until it was raised n times. From the loop's own thread only."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    def raise_(self) -> int:
        """Raise it once more; return how often it was."""
        self.count += 1
        task = asyncio.ensure_future(self._tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return self.count

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def wait(self, times: int = 1) -> None:
        async with asyncio.timeout(WITHIN_S), self._changed:
            await self._changed.wait_for(lambda: self.count >= times)


class Queue:
    """The queue `q` of a namespace, as the server has it."""

    def __init__(self, url: str, namespace: str) -> None:
        self._connections = Connections(url)
        self.keys = QueueKeys(namespace, "q")

    def close(self) -> None:
        self._connections.close()

    def run(self, request: Any) -> Any:
        return self._connections.sync().run(request)

    def command(self, *words: Word) -> Any:
        return self.run(Command(words, lambda reply: reply))

    def length(self) -> int:
        return int(self.command("XLEN", self.keys.stream))

    def counts(self) -> dict[str, int]:
        """Return how many jobs are in each place, and what the totals count."""
        places = {"waiting": ("XLEN", self.keys.stream), "scheduled": ("ZCARD", self.keys.scheduled),
                  "retries": ("ZCARD", self.keys.retries), "dead": ("XLEN", self.keys.dead)}  # fmt: skip
        return {name: int(self.command(*words)) for name, words in places.items()}

    def totals(self) -> dict[str, int]:
        raw = self.command("HGETALL", self.keys.totals)
        return {raw[i].decode(): int(raw[i + 1]) for i in range(0, len(raw), 2)}

    def dead(self) -> list[dict[str, bytes]]:
        """Return the fields of each dead job."""
        rows = self.command("XRANGE", self.keys.dead, "-", "+")
        return [{fields[i].decode(): fields[i + 1] for i in range(0, len(fields), 2)} for _, fields in rows]

    def add(self, *fields: bytes | str, entry: str = "*") -> bytes:
        """Add an entry by hand."""
        added: bytes = self.command("XADD", self.keys.stream, entry, *fields)
        return added

    def pending(self) -> list[tuple[bytes, bytes, int, int]]:
        """Return entry, consumer, ms of silence and deliveries of each claim."""
        rows = self.command("XPENDING", self.keys.stream, "workers", "-", "+", 1000)
        return [tuple(row) for row in rows]

    def read(self, consumer: str, count: int = 100) -> list[Claim]:
        """Claim fresh entries for a consumer that is no worker."""
        reply = self.run(leases.read([self.keys.stream], consumer, count, None))
        return leases.claims(reply[0][1], 0.0) if reply else []

    def make_group(self) -> None:
        self.run(leases.join(self.keys, 15_000))

    def silence(self, ms: int = 600_000, consumer: bytes | None = None) -> None:
        """Let every claim look silent for `ms`, as after a crash or a freeze of its holder."""
        for entry, holder, *_ in self.pending():
            if consumer in (None, holder):
                self.command("XCLAIM", self.keys.stream, "workers", holder, 0, entry, "IDLE", ms, "JUSTID")

    def crash(self, jobs: int = 100, consumer: str = "dead-worker") -> list[Claim]:
        """Let a worker that is no more have claimed what waits."""
        claims = self.read(consumer, jobs)
        self.silence(consumer=consumer.encode())
        return claims

    def steal(self, consumer: str = "thief") -> list[Claim]:
        """Let another consumer take every claim over, as a sweep does with silent ones."""
        self.silence()
        sweep = leases.reclaim(self.keys, consumer, 1000, leases.SWEEP_BEGIN, 1000, 0.0)
        swept: leases.Swept = self.run(sweep)
        return swept.claims

    @contextmanager
    def monitored(self) -> Iterator[list[bytes]]:
        """Gather what clients send to the server meanwhile, a line for each request; real servers only."""
        seen: list[bytes] = []
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(self._connections.target.text.removeprefix("unix://"))
            line.sendall(b"MONITOR\r\n")
            line.recv(100)
            yield seen
            line.setblocking(False)
            try:
                while part := line.recv(1 << 20):
                    seen += part.splitlines()
            except BlockingIOError:
                return

    def calls(self) -> dict[str, int]:
        """Return how often the server has run each command since it started; real servers only."""
        lines = self.command("INFO", "commandstats").decode().splitlines()
        named = [line.removeprefix("cmdstat_").split(":calls=") for line in lines if ":calls=" in line]
        return {name: int(rest.partition(",")[0]) for name, rest in named}


def messages(caplog: pytest.LogCaptureFixture, level: str = "WARNING") -> list[str]:
    """Return what was logged at this level."""
    return [record.getMessage() for record in caplog.records if record.levelname == level]


Arm = Callable[[str, Callable[[], None]], None]


def codes_of(module: str, *words: str) -> list[int]:
    """Run a program again and again until it ends in peace, six times at most; return its exit codes."""
    codes: list[int] = []
    while len(codes) < 6 and 0 not in codes:
        command = [sys.executable, "-m", module, *words]
        environment = {**os.environ, "PYTHONDEVMODE": ""}
        codes.append(subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, env=environment).returncode)
    return codes
