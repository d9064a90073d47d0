"""A process that uses an embedded server and does as it is told through its stdin.

`python -m tests.client.guests FOLDER` joins, prints the server's run id, then reads words: `close`
closes its connections, `ping` prints the run id again, and the end of stdin exits without closing.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

from streamjobs.client import Connections
from tests.client.words import command

ROOT = Path(__file__).resolve().parents[2]


class Guest:
    """Another process that uses the embedded server of a folder."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.client.guests", str(folder)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def hear(self) -> str:
        """Return its next line."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def tell(self, word: str) -> None:
        """Give it a word."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def ask(self, word: str) -> str:
        """Give it a word and return its answer."""
        self.tell(word)
        return self.hear()

    def interrupt(self) -> None:
        """Press Ctrl-C in its terminal: everything in its process group gets SIGINT."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self, how: signal.Signals | None = None) -> int:
        """Wait for its end, brought about by a signal or by the end of its stdin; return its exit code."""
        if how is not None:
            self.process.send_signal(how)
        self.process.communicate(timeout=30)
        return self.process.returncode


def run_id(connections: Connections) -> str:
    """Return what names this start of the server."""
    found = connections.sync().run(command("INFO", "server")).decode()
    return str(next(line for line in found.splitlines() if line.startswith("run_id:")))


def main(folder: str) -> None:
    connections = Connections(f"embedded://{folder}")
    print(run_id(connections), flush=True)
    for line in sys.stdin:
        if line.strip() == "close":
            connections.close()
            print("closed", flush=True)
        else:
            print(run_id(connections), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
