"""A supervisor with its children, as processes of their own, and jobs that wait until they are let go."""

import fcntl
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENT_S = 40.0


class Group:
    """A supervisor and its children, seen by what they print together."""

    def __init__(self, environment: dict[str, str], *words: str) -> None:
        self.said: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "streamjobs", "worker", *words],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        # A line that never comes must not hold up the tests for ever.
        self._alarm = threading.Timer(PATIENT_S, self._process.kill)
        self._alarm.start()

    def await_line(self, pattern: str) -> re.Match[str]:
        """Read on until a line matches."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.said.append(line)
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"no line matches {pattern!r}:\n{''.join(self.said)}")

    def await_lines(self, *patterns: str) -> None:
        """Read on until each has matched a line, in whatever order."""
        left = set(patterns)
        while left:
            line = self.await_line("|".join(left)).string
            left = {pattern for pattern in left if not re.search(pattern, line)}

    def await_children(self, number: int) -> list[int]:
        """Wait until so many more children work; return their process ids."""
        return [int(self.await_line(r"worker \S*-(\d+)-[0-9a-f]{8} serves")[1]) for _ in range(number)]

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self) -> int:
        """Wait until every process has ended; return the supervisor's exit code."""
        # The children hold the other end too.
        assert self._process.stdout is not None
        # A step that took 0.1 s on a busy machine is told of by asyncio's debug mode, and is none of theirs.
        self.said += [line for line in self._process.stdout.readlines() if not line.startswith("Executing <")]
        return self._process.wait()

    def count(self, pattern: str) -> int:
        """Return how many lines match, of those read."""
        return sum(bool(re.search(pattern, line)) for line in self.said)

    def close(self) -> None:
        self._process.kill()
        self.end()
        self._alarm.cancel()
        self._alarm.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


Start = Callable[..., Group]


class Barrier:
    """Where jobs wait until it opens, also those that come later."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def open(self) -> None:
        self._file.close()
