"""What happened, in a file outside Redis: one line of JSON per event, in one order for all processes.

A line is one `write` to a file opened for appending, so lines of several processes never mix and a
process killed in mid-job leaves its start behind. Whether a job was started twice is read from here
and not from the counters of the system under test.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAME = "journal.ndjson"


def note(folder: Path, event: str, **fields: str | int) -> None:
    """Append one event, with this process's id and a monotonic instant, to the journal in `folder`."""
    common = {"event": event, "pid": os.getpid(), "at_ms": time.monotonic_ns() // 1_000_000}
    line = json.dumps({**common, **fields})
    handle = os.open(folder / NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, line.encode() + b"\n")
    finally:
        os.close(handle)


@contextmanager
def noted(folder: Path, path: str, attempt: int) -> Iterator[None]:
    """Note the start of work on `path` and its end, with what it raised; a killed process leaves no end."""
    note(folder, "start", path=path, attempt=attempt)
    try:
        yield
    except Exception as error:
        note(folder, "end", path=path, attempt=attempt, error=f"{type(error).__name__}: {error}"[:200])
        raise
    note(folder, "end", path=path, attempt=attempt, error="")


class Tail:
    """Reads the journal as it grows."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._offset = 0

    def read(self) -> list[dict[str, Any]]:
        """Return the events that were added since the last call, oldest first."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        # A reader may see half of a line that is just being written.
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [json.loads(line) for line in whole.splitlines()]
