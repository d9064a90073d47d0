"""Just enough of the wire protocol to see where a request or a reply ends, and what a request asks for."""

from collections.abc import Iterator

from streamjobs.protocol import scripts

INCOMPLETE = -1

_SCRIPTS = {scripts.load(name).sha.encode(): name for name in scripts.names()}


def end_of(data: bytes | bytearray, at: int = 0) -> int:
    """Return where the value that begins at `at` ends; INCOMPLETE if that has not come yet."""
    line = data.find(b"\r\n", at)
    if line < 0:
        return INCOMPLETE
    kind, end = data[at : at + 1], line + 2
    if kind in (b"$", b"=", b"!"):
        size = int(data[at + 1 : line])
        end += size + 2 if size >= 0 else 0
        return end if end <= len(data) else INCOMPLETE
    if kind in (b"*", b"~", b">", b"%"):
        for _ in range(int(data[at + 1 : line]) * (2 if kind == b"%" else 1)):
            end = end_of(data, end)
            if end == INCOMPLETE:
                return INCOMPLETE
    return end


def take_frames(data: bytearray) -> Iterator[bytes]:
    """Yield every whole value at the begin of a buffer, and remove it there."""
    while data and (end := end_of(data)) != INCOMPLETE:
        frame = bytes(data[:end])
        del data[:end]
        yield frame


def name_of(request: bytes) -> str:
    """Return what a request asks for: the script's name if it runs one of ours, else the command in lower case."""
    words = request.split(b"\r\n", 5)
    if not request.startswith(b"*") or len(words) < 3:
        return request.split()[0].decode("ascii", "replace").lower() if request.split() else ""
    command = words[2].decode("ascii", "replace").lower()
    return _SCRIPTS.get(words[4], command) if command == "evalsha" and len(words) > 4 else command
