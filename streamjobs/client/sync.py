"""Run requests over blocking connections."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from time import monotonic
from typing import Any, TypeVar

import redis

from streamjobs.client import faults, forks
from streamjobs.client.lines import MOST_LINES, SyncLine
from streamjobs.core.errors import StreamJobsError
from streamjobs.protocol.calls import Request, Word

T = TypeVar("T")


class SyncExecutor:
    """Runs requests, each on a connection of its own while it is under way. Safe to share among threads.

    A connection that broke is dropped and the next request opens another one. After a fork the child
    opens its own and leaves its parent's alone.
    """

    def __init__(self, where: str, dial: Callable[[], SyncLine]) -> None:
        self._where = where
        self._dial = dial
        self._start_afresh()
        forks.watch(self)

    def _start_afresh(self) -> None:
        self._idle: list[SyncLine] = []
        self._closings = 0
        self._room: SimpleQueue[None] = SimpleQueue()
        """As many items as connections may be added: a semaphore, at a fifth of the cost of threading's."""
        for _ in range(MOST_LINES):
            self._room.put(None)

    def after_fork(self) -> None:
        """Forget the parent's connections: closing our copies does not end them."""
        for line in self._idle:
            line.disconnect()
        self._start_afresh()

    def run(self, request: Request[T]) -> T:
        """Run one request and return its decoded reply.

        Raises:
            Unavailable: it was not executed; trying again may help.
            OutcomeUnknown: it was sent and its reply did not come.
            Rejected: the server refuses it for good.
        """
        [outcome] = self.run_all([request])
        if isinstance(outcome, StreamJobsError):
            raise outcome
        return outcome

    def run_all(self, requests: Sequence[Request[T]]) -> list[T | StreamJobsError]:
        """Run the requests in one round trip; return for each its decoded reply or its error.

        A request whose script the server did not know runs after the others, not in its place, and what follows
        it (see `Command`) behind it again.
        """
        if not requests:
            return []
        packed = [faults.packed(request) for request in requests]
        room = self._room
        room.get()
        try:
            try:
                line = self._take()
            except (StreamJobsError, *faults.FAILURES) as error:
                return [faults.unconnected(error, self._where) for _ in requests]
            closings = self._closings
            replies = self._round(line, packed)
            troubled = faults.troubled(replies)
            if troubled and (missing := faults.unloaded(requests, replies)):
                second = self._round(line, faults.reload(requests, missing))
                replies = faults.reloaded(requests, replies, missing, second)
            if troubled and faults.demoted(replies):
                self.close()
            if closings != self._closings:
                line.disconnect()
            elif not (troubled and faults.broken(replies)):
                self._idle.append(line)
        finally:
            room.put(None)
        return faults.outcomes(requests, replies, self._where)

    @contextmanager
    def listen(self, channel: str, timeout_s: float) -> Iterator[Iterator[bytes]]:
        """Subscribe to a channel; the iterator yields its messages and ends after `timeout_s` in all.

        On entering, the subscription is in place: what is published from then on is seen.

        Raises:
            Unavailable: the subscription could not be made, or (from the iterator) its connection broke.
            Rejected: the server refuses it for good.
        """
        deadline = monotonic() + timeout_s
        with self._translated():
            line = self._open()
        try:
            with self._translated():
                line.send_packed_command([faults.pack("SUBSCRIBE", channel)])
                line.read_response(disconnect_on_error=False)
            yield self._messages(line, deadline)
        finally:
            line.disconnect()

    def _messages(self, line: SyncLine, deadline: float) -> Iterator[bytes]:
        with self._translated():
            while (left := deadline - monotonic()) > 0 and line.can_read(left):
                yield line.read_response(disconnect_on_error=False)[2]

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except faults.FAILURES as error:
            raise faults.unconnected(error, self._where) from error

    def close(self) -> None:
        """Close the idle connections, and the busy ones when their requests end. A later request opens
        a new one.
        """
        self._closings += 1
        while self._idle:
            self._idle.pop().disconnect()

    def _take(self) -> SyncLine:
        while self._idle:
            line = self._idle.pop()
            if _usable(line):
                return line
            line.disconnect()
        return self._open()

    def _open(self) -> SyncLine:
        line = self._dial()
        try:
            line.connect()
            faults.welcome(ask(line, *faults.GREETING))
        except BaseException:
            line.disconnect()
            raise
        return line

    def _round(self, line: SyncLine, packed: list[bytes]) -> list[Any]:
        replies: list[Any] = []
        try:
            line.send_packed_command([b"".join(packed)])
            while len(replies) < len(packed):
                replies.append(_read(line))
        except faults.FAILURES as error:
            line.disconnect()
            replies += [faults.Lost(error)] * (len(packed) - len(replies))
        except BaseException:
            line.disconnect()
            raise
        return replies


def ask(line: SyncLine, *words: Word) -> Any:
    """Send one request on a connected line and return its reply, be it the server's error."""
    line.send_packed_command([faults.pack(*words)])
    return _read(line)


def _read(line: SyncLine) -> Any:
    try:
        return line.read_response(disconnect_on_error=False)
    except redis.RedisError as error:
        if faults.text(error) is None:
            raise
        return error


def _usable(line: SyncLine) -> bool:
    """Say whether an idle connection is still in step; finding out now makes the failure a definite one."""
    try:
        return not line.can_read()
    except faults.FAILURES:
        return False
