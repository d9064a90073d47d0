"""What can happen to a server, done to one of our own: each fault is one small function.

Faults that last are context managers, which heal what they did. Those that a server must be started
for say so; `ARGS` has what most of them need.
"""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import redis

from tests.servers import Server

DURABLE = ("--appendonly", "yes", "--appendfsync", "always")
"""Keeps everything that was acknowledged, over a SIGKILL."""
BUSY_AFTER_MS = 50
ARGS = ("--enable-debug-command", "yes", "--busy-reply-threshold", str(BUSY_AFTER_MS))
"""Lets DEBUG be used, and foreign scripts be noticed soon (Redis 7.0 and later)."""

_SHIM = Path(__file__).with_name("clock_shim.c")


def command(server: Server, *words: Any) -> Any:
    """Run one command on a connection of its own."""
    with server.client() as client:
        return client.execute_command(*words)


def crash(server: Server, *, away_s: float = 0.0) -> None:
    """Kill the server and start it again at its address; it keeps what its arguments let it keep."""
    server.kill9()
    sleep(away_s)
    server.start()


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    """Stop the process of the server: connections stay open, nothing answers."""
    server.stop()
    try:
        yield
    finally:
        server.cont()


def cut_clients(server: Server) -> int:
    """Close every connection but our own; return how many there were."""
    return int(command(server, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"))


def pause_clients(server: Server, seconds: float, *, writes_only: bool = False) -> None:
    """Let clients wait for their replies for this long."""
    command(server, "CLIENT", "PAUSE", int(seconds * 1000), "WRITE" if writes_only else "ALL")


def fall_asleep(server: Server, seconds: float) -> None:
    """Block the server in one command, and return when it is over; needs `ARGS`."""
    command(server, "DEBUG", "SLEEP", seconds)


def flush_scripts(server: Server) -> None:
    """Let the server forget every script."""
    command(server, "SCRIPT", "FLUSH")


def flush_all(server: Server) -> None:
    """Delete everything."""
    command(server, "FLUSHALL")


def destroy_group(server: Server, stream: str) -> None:
    """Delete the consumer group with all its claims; the entries stay."""
    command(server, "XGROUP", "DESTROY", stream, "workers")


def delete(server: Server, key: str) -> None:
    """Delete one key."""
    command(server, "DEL", key)


def wrong_type(server: Server, key: str) -> None:
    """Put something else in the place of a key."""
    command(server, "SET", key, "of the wrong type")


@contextmanager
def setting(server: Server, name: str, value: str) -> Iterator[None]:
    """Run with another configuration."""
    before = command(server, "CONFIG", "GET", name)
    before = before[name.encode()] if isinstance(before, dict) else before[1]
    command(server, "CONFIG", "SET", name, value)
    try:
        yield
    finally:
        command(server, "CONFIG", "SET", name, before)


@contextmanager
def full_memory(server: Server) -> Iterator[None]:
    """Let every command that may need memory be refused (OOM)."""
    with setting(server, "maxmemory-policy", "noeviction"), setting(server, "maxmemory", "1"):
        yield


@contextmanager
def full_disk(server: Server) -> Iterator[None]:
    """Let every write be refused because the last snapshot failed (MISCONF): a folder stands in its place."""
    place = server.folder / "dump.rdb"
    place.mkdir()
    try:
        with setting(server, "save", "3600 1"):
            command(server, "BGSAVE")
            _until(lambda: _info(server, "persistence")["rdb_last_bgsave_status"] == "err")
            yield
            place.rmdir()
            command(server, "BGSAVE")
            _until(lambda: _info(server, "persistence")["rdb_last_bgsave_status"] == "ok")
    finally:
        shutil.rmtree(place) if place.is_dir() else None


@contextmanager
def too_few_replicas(server: Server) -> Iterator[None]:
    """Let every write be refused for want of replicas (NOREPLICAS)."""
    with setting(server, "min-replicas-to-write", "1"):
        yield


@contextmanager
def demoted(server: Server) -> Iterator[None]:
    """Make the server a replica of nobody that can be reached: it refuses writes (READONLY)."""
    command(server, "REPLICAOF", "127.0.0.1", "1")
    try:
        yield
    finally:
        command(server, "REPLICAOF", "NO", "ONE")


@contextmanager
def busy(server: Server) -> Iterator[None]:
    """Let somebody's endless script run (BUSY); needs `ARGS`. It ends because it has written nothing."""

    def run() -> None:
        try:
            command(server, "EVAL", "while true do end", 0)
        except redis.RedisError:
            # It was killed.
            pass

    foreign = threading.Thread(target=run, name="foreign-script")
    foreign.start()
    try:
        _until(lambda: _refused(server, "BUSY"))
        yield
    finally:
        command(server, "SCRIPT", "KILL")
        foreign.join()


def load_slowly(server: Server, seconds: float) -> threading.Thread:
    """Kill the server and start it with its last snapshot, which takes this long to load (LOADING).

    Needs some thousand keys. Returns, once it answers so, a thread that ends when it is ready again.
    """
    command(server, "SAVE")
    keys = int(command(server, "DBSIZE"))
    server.kill9()
    slow = ("--key-load-delay", str(int(seconds * 1e6 / keys)), "--loading-process-events-interval-bytes", "1024")
    args, server.args = server.args, (*server.args, *slow)
    starting = threading.Thread(target=server.start, name="loading")
    starting.start()
    _until(lambda: _refused(server, "LOADING"))
    server.args = args
    return starting


class ShiftedClock:
    """A server whose wall clock can be wrong: `start` it under this, then `shift`.

    Needs a C compiler and a server that is linked dynamically; `why_not` says what is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._library, self._file = folder / "shim.so", folder / "shift"
        self._file.write_text("0")

    def why_not(self) -> str:
        """Build the shim; return what prevents it, or nothing."""
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            return "no C compiler at hand: the server's clock cannot be shifted"
        build = [compiler, "-shared", "-fPIC", "-O1", "-o", str(self._library), str(_SHIM)]
        built = subprocess.run(build, capture_output=True, text=True, check=False)
        return f"the clock shim cannot be built: {built.stderr[-300:]}" if built.returncode else ""

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Let a server that starts meanwhile have the shim."""
        os.environ.update(LD_PRELOAD=str(self._library), CLOCK_SHIFT=str(self._file))
        try:
            yield
        finally:
            del os.environ["LD_PRELOAD"], os.environ["CLOCK_SHIFT"]

    def shift(self, seconds: int) -> None:
        """Let the server's clock be wrong by this much."""
        self._file.write_text(str(seconds))
        # The shim looks every 20 ms, when the server asks for the time; that it does ten times a second.
        sleep(0.15)


def _info(server: Server, section: str) -> dict[str, Any]:
    with server.client() as client:
        found: dict[str, Any] = client.info(section)
        return found


def _refused(server: Server, word: str) -> bool:
    """Say whether the server answers, and that with this word."""
    try:
        command(server, "GET", "x")
    except redis.RedisError as error:
        # The driver takes the word off the errors that it knows.
        return word.lower() in f"{type(error).__name__} {error}".lower()
    return False


def _until(done: Any, within_s: float = 10.0) -> None:
    deadline = monotonic() + within_s
    while not done():
        assert monotonic() < deadline, "the fault does not come"
        sleep(0.01)
