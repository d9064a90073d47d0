"""An environment for each peer, made once and kept: what peers need does not agree, nor need it with ours."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from .catalogue import Peer

INSTALL_S = 600.0
_STAMP = "streamjobs-peer"


class NotInstalled(Exception):
    """A peer cannot be installed here; the message says why."""


def folder() -> Path:
    """Return where environments are kept, unless something else is said."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "streamjobs-peers"


def python_of(peer: Peer, where: Path) -> Path:
    """Return the Python of a peer's environment, made and filled if it is not there.

    Raises:
        NotInstalled: the packages cannot be had.
    """
    if not peer.packages:
        return Path(sys.executable)
    # Peers that need the same share it.
    words = f"{sys.version_info[:2]} {' '.join(peer.packages)}"
    place = where / f"{peer.package}-{hashlib.sha1(words.encode()).hexdigest()[:8]}"
    python = place / "bin" / "python"
    if not (place / _STAMP).exists():
        _run(sys.executable, "-m", "venv", "--clear", str(place))
        _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.packages)
        (place / _STAMP).touch()
    return python


def version_of(peer: Peer, python: Path) -> str:
    """Return the version of the peer that is installed."""
    program = f"from importlib.metadata import version; print(version({peer.package!r}))"
    return _run(str(python), "-c", program).strip()


def _run(*words: str) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise NotInstalled(f"not installed within {INSTALL_S:.0f} s") from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()][-1:] or ["no reason given"]
        raise NotInstalled(said[0])
    return done.stdout
