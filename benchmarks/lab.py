"""The parent's view of a run: starts measured processes, and looks at the server between them."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic, sleep

import msgspec
import redis

from streamjobs.protocol.keys import GROUP, QueueKeys

from .jobs import QUEUE
from .measure import Order, Sample

SIDE_S = 60.0
"""What a measured process may take, beside a millisecond per job."""
FREED_S = 10.0


class SideFailed(Exception):
    """A measured process gave no sample; the message says how it ended."""


class Lab:
    """One server, the processes measured against it, and what they leave there."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.server = redis.Redis.from_url(url, protocol=2, decode_responses=True)
        self._run = uuid.uuid4().hex[:12]
        self._orders = 0
        self.warm: set[object] = set()
        """What has been tried here before: its files and the server's memory are at hand."""

    def order(self, jobs: int, **how: float) -> Order:
        """Return an order in a namespace that nothing was ever in: a server in use keeps what it has."""
        self._orders += 1
        return Order(self.url, f"bench-{self._run}-{self._orders}", jobs, how)

    @contextmanager
    def ordered(self, jobs: int, **how: float) -> Iterator[Order]:
        """Give such an order, and wipe its keys in the end."""
        order = self.order(jobs, **how)
        try:
            yield order
        finally:
            self.wipe(order)

    def run(self, side: str, order: Order) -> Sample:
        """Run one side in a process of its own.

        Raises:
            SideFailed: it ended with an error, or not within `SIDE_S` and 1 ms per job.
        """
        [sample] = self.run_together((side, order))
        return sample

    def run_together(self, *parts: tuple[str, Order]) -> list[Sample]:
        """Run several sides at once, each in a process of its own; all begin when the last one can.

        Raises:
            SideFailed: as for `run`; the others are killed.
        """
        with self.ready(*(side for side, _ in parts)) as sides:
            for side, (_, order) in zip(sides, parts, strict=True):
                side.give(order)
            return [side.sample() for side in sides]

    @contextmanager
    def ready(self, *names: str) -> "Iterator[list[Side]]":
        """Give sides that have loaded all they need and wait for their orders; they are killed in the end."""
        with ExitStack() as stack:
            # They load at the same time, and none while another one is measured.
            sides = [Side(name) for name in names]
            for side in sides:
                stack.callback(side.kill)
            for side in sides:
                side.await_ready()
            yield sides

    @contextmanager
    def started(self, side: str, order: Order) -> "Iterator[subprocess.Popen[bytes]]":
        """Give the process of a side that has begun, and is killed in the end; its sample is of no interest."""
        with self.ready(side) as [one]:
            one.give(order)
            yield one.process

    def waiting(self, order: Order) -> int:
        """Return the length of the order's stream."""
        return int(self.server.xlen(QueueKeys(order.namespace, QUEUE).stream))

    def pending(self, order: Order) -> int:
        """Return how many entries are delivered and not settled."""
        return int(self.server.xpending(QueueKeys(order.namespace, QUEUE).stream, GROUP)["pending"])

    def used_memory(self) -> int:
        """Return the server's used memory in bytes, once it has freed what was deleted."""
        deadline = monotonic() + FREED_S
        while (found := self.server.info("memory")).get("lazyfree_pending_objects") and monotonic() < deadline:
            sleep(0.005)
        return int(found["used_memory"])

    def wipe(self, order: Order) -> None:
        """Delete the order's keys."""
        for key in self.server.scan_iter(match=f"{order.namespace}:*", count=1000):
            self.server.delete(key)

    def server_version(self) -> str:
        """Return name and version of the server."""
        about = self.server.info("server")
        if version := about.get("valkey_version"):
            return f"valkey {version}"
        return f"redis {about['redis_version']}"

    def close(self) -> None:
        """Give up the connection."""
        self.server.close()


class Side:
    """One measured process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs = 0
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.side", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    def await_ready(self) -> None:
        """Wait until it can begin, or has ended."""
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def give(self, order: Order) -> None:
        """Let it begin."""
        assert self.process.stdin is not None
        self._jobs = order.jobs
        self.process.stdin.write(msgspec.json.encode(order) + b"\n")
        self.process.stdin.flush()

    def sample(self) -> Sample:
        """Wait for its end, and return what it has measured.

        Raises:
            SideFailed: it ended with an error, or not within `SIDE_S` and 1 ms per job.
        """
        assert self.process.stdout is not None
        seconds = SIDE_S + self._jobs / 1000
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise SideFailed(f"{self._name} did not end within {seconds:.0f} s") from error
        if code:
            raise SideFailed(f"{self._name} ended with exit code {code}")
        return msgspec.json.decode(self.process.stdout.read(), type=Sample)

    def kill(self) -> None:
        """End it, if it has not ended, and leave nothing of it."""
        with self.process as process:
            process.kill()
