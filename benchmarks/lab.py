"""The parent's view of a run: starts measured processes, and looks at the server between them."""

import os
import subprocess
import sys
import uuid

import msgspec
import redis

from streamjobs.protocol.keys import GROUP, QueueKeys

from .jobs import QUEUE
from .measure import Order, Sample

SIDE_S = 60.0
"""What a measured process may take, beside a millisecond per job."""


class SideFailed(Exception):
    """A measured process gave no sample; the message says how it ended."""


class Lab:
    """One server, the processes measured against it, and what they leave there."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._server = redis.Redis.from_url(url, protocol=2, decode_responses=True)
        self._run = uuid.uuid4().hex[:12]
        self._orders = 0

    def order(self, jobs: int) -> Order:
        """Return an order in a namespace that nothing was ever in: a server in use keeps what it has."""
        self._orders += 1
        return Order(self.url, f"bench-{self._run}-{self._orders}", jobs)

    def run(self, side: str, order: Order) -> Sample:
        """Run one side in a process of its own.

        Raises:
            SideFailed: it ended with an error, or not within `SIDE_S` and 1 ms per job.
        """
        with subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.side", side],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        ) as process:
            try:
                return self._sample(process, side, order)
            finally:
                process.kill()

    def _sample(self, process: subprocess.Popen[bytes], side: str, order: Order) -> Sample:
        assert process.stdin is not None
        assert process.stdout is not None
        seconds = SIDE_S + order.jobs / 1000
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        process.stdin.flush()
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise SideFailed(f"{side} did not end within {seconds:.0f} s") from error
        if code:
            raise SideFailed(f"{side} ended with exit code {code}")
        return msgspec.json.decode(process.stdout.read(), type=Sample)

    def waiting(self, order: Order) -> int:
        """Return the length of the order's stream."""
        return int(self._server.xlen(QueueKeys(order.namespace, QUEUE).stream))

    def pending(self, order: Order) -> int:
        """Return how many entries are delivered and not settled."""
        return int(self._server.xpending(QueueKeys(order.namespace, QUEUE).stream, GROUP)["pending"])

    def used_memory(self) -> int:
        """Return the server's used memory in bytes."""
        return int(self._server.info("memory")["used_memory"])

    def wipe(self, order: Order) -> None:
        """Delete the order's keys."""
        for key in self._server.scan_iter(match=f"{order.namespace}:*", count=1000):
            self._server.delete(key)

    def server_version(self) -> str:
        """Return name and version of the server."""
        about = self._server.info("server")
        if version := about.get("valkey_version"):
            return f"valkey {version}"
        return f"redis {about['redis_version']}"

    def close(self) -> None:
        """Give up the connection."""
        self._server.close()
