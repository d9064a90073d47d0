"""The parent's view of a run: starts measured processes, and looks at the server between them."""

import os
import socket
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
CHUNK = 4096


class SideFailed(Exception):
    """A measured process gave no sample; the message says how it ended."""


class Lab:
    """One server, the processes measured against it, and what they leave there."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.server = redis.Redis.from_url(url, protocol=2, decode_responses=True)
        self._run = uuid.uuid4().hex[:12]
        self._orders = 0
        self._template: Template | None = None
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
            self._template = self._template or Template()
            sides = [self._template.side(name) for name in names]
            for side in sides:
                stack.callback(side.kill)
            for side in sides:
                side.await_ready()
            yield sides

    @contextmanager
    def started(self, side: str, order: Order) -> "Iterator[Side]":
        """Give a side that has begun, and is killed in the end; its sample is of no interest."""
        with self.ready(side) as [one]:
            one.give(order)
            yield one

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
        """Give up the connection and the template."""
        if self._template is not None:
            self._template.close()
        self.server.close()


class Template:
    """A process that has loaded what any side needs, and forks one as often as it is asked to."""

    def __init__(self) -> None:
        self._sockets, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.side"],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                # A session of its own: Ctrl-C is for us, and the sides end with us.
                start_new_session=True,
            )

    def side(self, name: str) -> "Side":
        """Start a side."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._sockets, [b"\n"], [theirs.fileno()])
        return Side(name, ours)

    def close(self) -> None:
        """End it; sides that have begun go on."""
        self._sockets.close()
        self._process.wait()


class Side:
    """One measured process."""

    def __init__(self, name: str, connection: socket.socket) -> None:
        self._name = name
        self._connection = connection
        self._answers = connection.makefile("rb")
        self._connection.settimeout(SIDE_S)
        self._connection.sendall(f"{name}\n".encode())
        self.pid = 0

    def await_ready(self) -> None:
        """Wait until it can begin.

        Raises:
            SideFailed: it has ended.
        """
        self.pid = int(self._answers.readline() or 0)
        if not self.pid:
            raise SideFailed(f"{self._name} ended before it could begin")

    def give(self, order: Order) -> None:
        """Let it begin."""
        self._connection.settimeout(SIDE_S + order.jobs / 1000)
        self._connection.sendall(msgspec.json.encode(order) + b"\n")

    def sample(self) -> Sample:
        """Wait for its end, and return what it has measured.

        Raises:
            SideFailed: it ended with an error, or not within `SIDE_S` and 1 ms per job.
        """
        try:
            said = self._answers.read()
        except TimeoutError as error:
            raise SideFailed(f"{self._name} did not end within {self._connection.gettimeout():.0f} s") from error
        if not said:
            raise SideFailed(f"{self._name} ended without a sample")
        return msgspec.json.decode(said, type=Sample)

    def kill(self) -> None:
        """End it, if it has not ended, and leave nothing of it."""
        with self._connection, self._answers:
            # It ends when its stdin does.
            self._connection.settimeout(SIDE_S)
            self._connection.shutdown(socket.SHUT_WR)
            while self._connection.recv(CHUNK):
                pass
