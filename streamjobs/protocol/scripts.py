"""Load the Lua scripts: by name, with their includes, hashed once.

The package's own `lua/` is looked for first (an installed wheel), then the one beside the package
(an editable install or a checkout).
"""

import re
from functools import cache
from hashlib import sha1
from pathlib import Path

import msgspec

_PACKAGE = Path(__file__).resolve().parent.parent
_INCLUDE = re.compile(r"^-- @include (\w+)\n", re.MULTILINE)


class Script(msgspec.Struct, frozen=True):
    """One script: its name, full text, and the SHA-1 that EVALSHA takes."""

    name: str
    text: str
    sha: str


@cache
def folder() -> Path:
    """Return the folder that holds the scripts."""
    inside = _PACKAGE / "lua"
    return inside if inside.is_dir() else _PACKAGE.parent / "lua"


@cache
def names() -> tuple[str, ...]:
    """Return the name of every script, sorted."""
    return tuple(sorted(path.stem for path in folder().glob("*.lua")))


@cache
def load(name: str) -> Script:
    """Return the script `name` with its includes in place; each snippet is included once.

    Raises:
        FileNotFoundError: there is no such script or snippet.
    """
    seen: set[str] = set()

    def include(match: re.Match[str]) -> str:
        if match[1] in seen:
            return ""
        seen.add(match[1])
        return expand((folder() / "include" / f"{match[1]}.lua").read_text("utf-8"))

    def expand(text: str) -> str:
        return _INCLUDE.sub(include, text)

    text = expand((folder() / f"{name}.lua").read_text("utf-8"))
    return Script(name, text, sha1(text.encode(), usedforsecurity=False).hexdigest())


def load_all() -> None:
    """Load every script now: a process that is to live long may later have no file left to open."""
    for name in names():
        load(name)
