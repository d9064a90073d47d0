"""Read a server's URL: what to connect to, and what may be shown of it.

Nothing is opened here. A URL is a secret as a whole until it has been taken apart, so every text
that leaves this module has been through `redact`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from streamjobs.core.errors import InvalidOption
from streamjobs.core.server import Finding, transport

DEFAULT_URL = "redis://localhost:6379/0"

_ALIASES = {"valkey": "redis", "valkeys": "rediss"}
_SCHEMES = "redis://, rediss://, valkey://, valkeys://, unix://, embedded:// or memory://"
_UNREADABLE = "<unreadable URL>"
_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_OPTIONS = {
    "redis": frozenset({"db"}),
    "rediss": frozenset({"db", "ssl_cert_reqs", "ssl_check_hostname", *_FILES}),
    "unix": frozenset({"db"}),
    "embedded": frozenset[str](),
    "memory": frozenset[str](),
}
_DEFAULT_FOLDER = ".streamjobs"
_BARE = re.compile(r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d{1,5})?(?:/\d*)?")
"""A host, and perhaps a port and a database, without a scheme."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a URL names. Its text and its repr never show a user name, a password or an option.

    Attributes:
        scheme: `redis`, `rediss`, `unix`, `embedded` or `memory`; aliases are resolved.
        text: the URL as it may be shown.
        arguments: keyword arguments of the driver's connection (`redis`, `rediss`, `unix`).
        folder: the absolute folder of an embedded server.
        name: which of this process's in-memory servers.
    """

    scheme: str
    text: str
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    folder: Path = Path()
    name: str = ""

    def __str__(self) -> str:
        return self.text

    @property
    def transport(self) -> Finding:
        """Who could read along on the way there, or pretend to be one of ours."""
        host, password = str(self.arguments.get("host", "")), "password" in self.arguments
        return transport(self.scheme, host, password=password, certificate="ssl_certfile" in self.arguments)


def redact(url: str) -> str:
    """Return the URL without user name, password and options; a placeholder if it cannot be read.

    An unquoted `@`, `/`, `?` or `#` in a password moves parts of it to other places, so a URL with an
    `@` behind its host, or with a port that is none, is not shown at all.
    """
    try:
        parts = urlsplit(url)
        readable = parts.scheme and "@" not in parts.path + parts.query + parts.fragment
        port = parts.port
    except ValueError:
        return _UNREADABLE
    if not readable:
        return _UNREADABLE
    userinfo, _, host = parts.netloc.rpartition("@")
    if port is None and ":" in host.rpartition("]")[2]:
        return _UNREADABLE
    return f"{parts.scheme}://{'***@' if userinfo else ''}{host}{parts.path}"


def parse_url(text: str) -> Target:
    """Take a URL apart and check every part of it; nothing is contacted.

    Raises:
        InvalidOption: one line that says what is wrong where, and what to write instead.
    """
    url = text.strip()
    if not url:
        raise InvalidOption("the server URL is empty: write e.g. redis://localhost:6379/0")
    if "\0" in unquote(url):
        raise InvalidOption("cannot read the server URL: there is a zero byte in it")
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower()
    scheme = _ALIASES.get(scheme, scheme)
    if not separator or scheme not in _OPTIONS:
        raise InvalidOption(_unknown_kind(url, named=bool(separator)))
    if scheme == "embedded":
        return _embedded(rest, url)
    parts = _split(url)
    options = _options(scheme, parts, url)
    if scheme == "memory":
        return Target("memory", redact(url), name=unquote(parts.netloc + parts.path).strip("/"))
    place = _socket(parts, url) if scheme == "unix" else _network(parts, url)
    return Target(scheme, redact(url), arguments={**place, **_login(parts), **options})


def _unknown_kind(url: str, *, named: bool) -> str:
    """Say what a URL should begin with; `named`: it has a scheme, though none of ours."""
    # Without an `@` and a `?` there is no place for a password: it is shown as it was typed.
    shown = redact(url) if named or "@" in url or "?" in url else f"{url!r:.80}"
    if _BARE.fullmatch(url):
        return f"the server URL {shown} has no scheme: it must begin with {_SCHEMES}; write e.g. redis://{url}"
    return f"unknown kind of server URL {shown}: it must begin with {_SCHEMES}"


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        # Not `from error`: a traceback would show its text, which has in it what was taken for a port.
        raise InvalidOption(
            f"cannot read the server URL {redact(url)}: host or port is malformed"
            " (percent-encode '@', ':', '/', '?' and '#' in a password)"
        ) from None
    if redact(url) == _UNREADABLE:
        raise InvalidOption(
            "cannot read the server URL: percent-encode '@', ':', '/', '?' and '#' in its password"
            " (and write the host behind an '@')"
        )
    if parts.fragment:
        raise InvalidOption(f"the server URL {redact(url)} has a '#' part: remove it")
    return parts


def _embedded(rest: str, url: str) -> Target:
    path, question, _ = rest.partition("?")
    if question:
        raise InvalidOption("an embedded:// URL takes no options: remove everything from the '?' on")
    try:
        folder = Path(path or _DEFAULT_FOLDER).expanduser().absolute()
    except RuntimeError as error:
        raise InvalidOption(f"{url}: there is no home folder of that name") from error
    return Target("embedded", f"embedded://{folder}", folder=folder)


def _network(parts: SplitResult, url: str) -> dict[str, Any]:
    if not parts.hostname:
        raise InvalidOption(f"the server URL {redact(url)} names no host: write e.g. redis://localhost:6379/0")
    try:
        parts.hostname.encode("idna")
    except UnicodeError as error:
        raise InvalidOption(f"the host in the server URL {redact(url)} is not a possible name") from error
    if parts.port == 0:
        raise InvalidOption(f"the server URL {redact(url)} has port 0: ports are 1 to 65535")
    place: dict[str, Any] = {"host": parts.hostname, "port": parts.port or 6379}
    database = unquote(parts.path).strip("/")
    return {**place, "db": _database(database, url)} if database else place


def _socket(parts: SplitResult, url: str) -> dict[str, Any]:
    host = parts.netloc.rpartition("@")[2]
    path = unquote(host + parts.path)
    if not path:
        raise InvalidOption(f"the server URL {redact(url)} names no socket: write e.g. unix:///run/redis.sock")
    return {"path": path}


def _login(parts: SplitResult) -> dict[str, Any]:
    login = {"username": parts.username, "password": parts.password}
    return {name: unquote(value) for name, value in login.items() if value}


def _database(text: str, url: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise InvalidOption(f"the database in the server URL {redact(url)} is not a number from 0 up")
    return int(text)


def _options(scheme: str, parts: SplitResult, url: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name == "decode_responses":
            raise InvalidOption(f"remove decode_responses from the server URL {redact(url)}: job bodies are bytes")
        if name not in _OPTIONS[scheme]:
            raise InvalidOption(_unknown_option(name, scheme, url))
        options |= _option(name, value, url)
    return options


def _unknown_option(name: str, scheme: str, url: str) -> str:
    known = ", ".join(sorted(_OPTIONS[scheme])) or "none"
    shown = name if name.isidentifier() and len(name) <= 40 else "with an odd name"
    return f"unknown option {shown} in the server URL {redact(url)}; those of {scheme}:// are: {known}"


def _option(name: str, value: str, url: str) -> dict[str, Any]:
    if name == "db":
        return {"db": _database(value, url)}
    if name in _FILES:
        if not Path(value).is_file():
            raise InvalidOption(f"{name} in the server URL {redact(url)}: there is no file {value!r}")
        return {name: value}
    if value.lower() not in {"ssl_cert_reqs": ("required",), "ssl_check_hostname": ("true", "1")}[name]:
        raise InvalidOption(
            f"{name} in the server URL {redact(url)} would accept any server: remove it and name the"
            " server's own authority with ssl_ca_certs=FILE"
        )
    return {}
