"""Where a process listens for those who ask how it is: `8080`, `0.0.0.0:8080`, `[::1]:8080`, `fd://3`."""

import re

import msgspec

from streamjobs.core.errors import InvalidOption

LOOPBACK = "127.0.0.1"
"""Where a bare port listens: what says how a process is, is for this machine unless told otherwise."""

_PLACE = re.compile(r"(?:(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]*):)?([0-9]{1,5})\Z")
_DESCRIPTOR = re.compile(r"fd://([0-9]{1,6})\Z")


class Address(msgspec.Struct, frozen=True):
    """A host and a port, or a listening socket that this process was started with."""

    host: str = ""
    """"" for all interfaces."""
    port: int = 0
    """0 for one that is free."""
    descriptor: int | None = None


def parse_address(value: int | str, what: str) -> Address:
    """Read `PORT` (on loopback), `HOST:PORT`, `:PORT` (all interfaces) or `fd://N`.

    Raises:
        InvalidOption: it is none of these.
    """
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(text, str):
        if match := _DESCRIPTOR.match(text):
            return Address(descriptor=int(match[1]))
        if (match := _PLACE.match(text)) and int(match[2]) <= 65535:
            host = LOOPBACK if match[1] is None else match[1].strip("[]")
            return Address(host, int(match[2]))
    raise InvalidOption(f"{what}={value!r:.80}: use PORT (this machine only), HOST:PORT, or :PORT (all interfaces)")
