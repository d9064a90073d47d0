"""What the tests of the producers share: an app, a way to enqueue in either colour, and a look at the server."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from streamjobs import Handle, OutcomeUnknown, StreamJobs
from streamjobs.client import Connections
from streamjobs.protocol.calls import Command, Word
from streamjobs.protocol.keys import QueueKeys

SOON_S = 30.0
"""Longer than anything in these tests takes on a slow machine."""


async def noted(n: int = 0, text: str = "") -> int:
    """The kind that these tests enqueue; it is never run."""
    return n


def make_app(url: str, namespace: str, **options: Any) -> StreamJobs:
    """Return an app with the kind `note` in queue `q`."""
    app = StreamJobs(url, namespace=namespace, **options)
    app.job(name="note", queue="q")(noted)
    return app


class Queue:
    """The queue `q` of a namespace, as the server has it."""

    def __init__(self, url: str, namespace: str) -> None:
        self._connections = Connections(url)
        self.keys = QueueKeys(namespace, "q")

    def command(self, *words: Word) -> Any:
        return self._connections.sync().run(Command(words, lambda reply: reply))

    def waiting(self) -> list[str]:
        """Return the local ids of the entries of the stream, in order."""
        return [entry[0].decode() for entry in self.command("XRANGE", self.keys.stream, "-", "+")]

    def bodies(self) -> list[bytes]:
        return [entry[1][3] for entry in self.command("XRANGE", self.keys.stream, "-", "+")]

    def scheduled(self) -> list[str]:
        return [job.decode() for job in self.command("ZRANGE", self.keys.scheduled, 0, -1)]

    def is_untouched(self) -> bool:
        """Say whether not a single key of the namespace exists."""
        cursor: bytes = b"0"
        while True:
            cursor, keys = self.command("SCAN", cursor, "MATCH", f"{self.keys.namespace}:*", "COUNT", 1000)
            if keys:
                return False
            if cursor == b"0":
                return True

    def producers(self) -> set[str]:
        """Return the ids under which batches were sent."""
        pattern, cursor, found = f"{self.keys.base}producer:*", b"0", set()
        while True:
            cursor, keys = self.command("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
            found |= {key.decode().rpartition(":")[2] for key in keys}
            if cursor == b"0":
                return found

    def script_calls(self) -> int:
        """Return how many scripts the server has run since it started; real servers only."""
        for line in self.command("INFO", "commandstats").decode().splitlines():
            if line.startswith("cmdstat_evalsha:calls="):
                return int(line.partition("calls=")[2].partition(",")[0])
        return 0

    def close(self) -> None:
        self._connections.close()


class Caller:
    """Enqueues through the plain API."""

    def __init__(self, app: StreamJobs) -> None:
        self.app = app

    def enqueue(self, n: int = 0, **options: Any) -> Handle[Any]:
        return self.app.kind("note").options(**options).enqueue_sync(n)

    def enqueue_many(self, *numbers: int) -> list[Any]:
        return self.app.enqueue_many_sync(self.app.kind("note").call(n) for n in numbers)

    def retry(self, error: OutcomeUnknown) -> Any:
        return error.retry()

    def close(self) -> None:
        self.app.close()


class AsyncCaller(Caller):
    """The same through the asyncio API, all calls in one loop."""

    def __init__(self, app: StreamJobs) -> None:
        super().__init__(app)
        self._runner = asyncio.Runner()

    def enqueue(self, n: int = 0, **options: Any) -> Handle[Any]:
        return self._runner.run(self.app.kind("note").options(**options).enqueue(n))

    def enqueue_many(self, *numbers: int) -> list[Any]:
        return self._runner.run(self.app.enqueue_many(self.app.kind("note").call(n) for n in numbers))

    def retry(self, error: OutcomeUnknown) -> Any:
        async def retry() -> Any:
            return await error.retry()

        return self._runner.run(retry())

    def close(self) -> None:
        self._runner.run(self.app.aclose())
        self._runner.close()


class Gate:
    """Holds up the sending before each call while it is shut; `reached` tells when one is there."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._open = threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self._open.wait(SOON_S)

    def open(self) -> None:
        self._open.set()


def body(n: int) -> bytes:
    """Return the body of a job of the kind `note`."""
    return b'{"n":%d,"text":""}' % n


MakeApp = Callable[..., StreamJobs]
MakeCaller = Callable[..., Caller]
