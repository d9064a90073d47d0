"""An environment for each peer, made once and kept: what peers need does not agree, nor need it with ours."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

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
        NotInstalled: the packages cannot be had, or there is no Node for those that are Node's.
    """
    if not peer.packages:
        return Path(sys.executable)
    if peer.node and not (shutil.which("node") and shutil.which("npm")):
        raise NotInstalled("there is no Node with npm on this machine")
    # Peers that need the same share it.
    needs = f"{sys.version_info[:2]} {' '.join(peer.packages)}"
    place = where / f"{peer.package}-{hashlib.sha1(needs.encode()).hexdigest()[:8]}"
    python = place / "bin" / "python"
    if not (place / _STAMP).exists():
        _run(sys.executable, "-m", "venv", "--clear", str(place))
        if peer.node:
            words = ["npm", "install", "--loglevel", "error", "--no-audit", "--no-fund", "--prefix", str(place)]
            _run(*words, *peer.packages, reason=0)
        else:
            _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.packages)
        (place / _STAMP).touch()
    return python


def version_of(peer: Peer, python: Path) -> str:
    """Return the version of the peer that is installed."""
    if peer.node:
        about = python.parents[1] / "node_modules" / peer.package / "package.json"
        return str(msgspec.json.decode(about.read_bytes())["version"])
    program = f"from importlib.metadata import version; print(version({peer.package!r}))"
    return _run(str(python), "-c", program).strip()


def _run(*words: str, reason: int = -1) -> str:
    """Return what a command says; `reason` is the line that says why it failed."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise NotInstalled(f"not installed within {INSTALL_S:.0f} s") from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise NotInstalled(said[reason])
    return done.stdout
