"""stats --watch: in place on a terminal, one after the other elsewhere, and through an outage of the server."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from tests.cli.support import Line
from tests.servers import Server

ROOT = Path(__file__).resolve().parents[2]
WITHIN_S = 20.0
RUN = [sys.executable, "-m", "streamjobs", "stats", "--watch", "0.1s"]


class Terminal:
    """A pseudo terminal of 80 columns with a command on it."""

    def __init__(self, words: list[str], rows: int = 24, **environment: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
        left_out = ("COLUMNS", "LINES", "NO_COLOR")
        inherited = {name: value for name, value in os.environ.items() if name not in left_out}
        self.process = subprocess.Popen(
            words,
            env={**inherited, "PYTHONPATH": str(ROOT), "TERM": "xterm", **environment},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.shown = ""

    def until(self, pattern: str, times: int = 1) -> str:
        """Read until what was shown matches so often; return it all."""
        deadline = monotonic() + WITHIN_S
        while len(re.findall(pattern, self.shown)) < times:
            assert monotonic() < deadline, f"{pattern!r} did not come {times} times: {self.shown!r}"
            if select.select([self._master], [], [], 0.1)[0]:
                self.shown += os.read(self._master, 65_536).decode()
        return self.shown

    def interrupt(self) -> int:
        """Press Ctrl-C; return the exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            while part := os.read(self._master, 65_536):
                self.shown += part.decode()
        except OSError:
            # How Linux says that nobody holds the other end any more.
            pass
        os.close(self._master)
        return self.process.wait(WITHIN_S)


def where(line: Line) -> list[str]:
    return ["--url", line.url, "--namespace", line.namespace]


@contextmanager
def piped(words: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """Run a command with its output in a pipe, and interrupt it at last."""
    process = subprocess.Popen(
        words, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130


def test_on_a_terminal_each_look_is_drawn_over_the_last(line: Line) -> None:
    line("enqueue", "tests.greet", "--count", "5")
    terminal = Terminal([*RUN, *where(line)])
    terminal.until(r"default\*", 2)
    line("enqueue", "tests.greet", "--count", "7")
    shown = terminal.until(r"default\* +12 ")

    assert terminal.interrupt() == 130
    assert "Traceback" not in terminal.shown
    first, *others = re.split("\x1b\\[(?=\\d+A)", shown)
    # heading, empty, titles, queue, empty, reason
    assert first.count("\n") == 6
    assert all(part.startswith("6A\x1b[?7l") for part in others)
    # Nothing is cleared before it is drawn: each line is written over the old one and what it had more is erased.
    assert "\x1b[2J" not in shown
    assert first.count("\x1b[K") == 6
    assert "\x1b[31mcritical\x1b[0m" in shown


def test_what_does_not_fit_the_terminal_is_counted(line: Line) -> None:
    for name in "abcdefgh":
        line("enqueue", "kind", "-Q", name)
    terminal = Terminal([*RUN, *where(line), "--assert", "waiting>1"], rows=12)

    shown = terminal.until("lines more", 2)

    terminal.interrupt()
    assert re.search("Z\x1b\\[K\r\n\r\x1b\\[31merror: waiting>1 does not hold: ", shown)
    assert "… and 8 rows more" in shown
    assert "\x1b[11A" in shown


def test_without_colours_it_still_draws_in_place(line: Line) -> None:
    line.enqueue("tests.greet", "Ada")
    terminal = Terminal([*RUN, *where(line)], NO_COLOR="1")

    shown = terminal.until(r"default\*", 2)

    terminal.interrupt()
    assert "\x1b[6A" in shown
    assert not re.search("\x1b\\[\\d*m", shown)


def test_a_dumb_terminal_is_not_steered(line: Line) -> None:
    line.enqueue("tests.greet", "Ada")
    terminal = Terminal([*RUN, *where(line)], TERM="dumb")

    shown = terminal.until(r"default\*", 3)

    terminal.interrupt()
    assert "\x1b" not in shown


def test_in_a_pipe_screens_follow_each_other(line: Line) -> None:
    line.enqueue("tests.greet", "Ada")

    with piped([*RUN, *where(line), "--assert", "dead>0"]) as process:
        assert process.stdout is not None
        text = [process.stdout.readline() for _ in range(18)]

    assert [row.split()[0] for row in text if row.startswith("default*")] == ["default*", "default*"]
    assert "error: dead>0 does not hold: default: dead is 0\n" in text
    assert not any("\x1b" in row for row in text)


def test_documents_come_one_a_line(line: Line) -> None:
    line.enqueue("tests.greet", "Ada")

    with piped([*RUN, *where(line), "--json"]) as process:
        assert process.stdout is not None
        documents = [json.loads(process.stdout.readline()) for _ in range(3)]

    assert {document["schema"] for document in documents} == {"streamjobs.stats"}
    assert documents[0]["time"] < documents[-1]["time"]


def test_a_queue_may_follow_the_option(line: Line) -> None:
    line.enqueue("tests.greet", "Ada")
    line.enqueue("tests.add", "1")

    with piped([*RUN[:-1], "math", *where(line)]) as process:
        assert process.stdout is not None
        text = [process.stdout.readline() for _ in range(6)]

    assert [row.split()[0] for row in text[3:4]] == ["math*"]


def test_an_outage_is_said_and_waited_for(server_binary: Path, namespace: str) -> None:
    with Server(server_binary) as server:
        line = Line(server.url, namespace)
        line.enqueue("tests.greet", "Ada")
        terminal = Terminal([*RUN, *where(line)])
        terminal.until(r"default\*", 2)
        server.terminate()
        # What was seen last stays there, below.
        terminal.until(r"Z\x1b\[K\r\n\r\x1b\[31merror: [^Z]*trying[^Z]*default\* ", 2)
        server.start()
        line.enqueue("tests.add", "1")
        terminal.until(r"math\*", 2)

        assert terminal.interrupt() == 130
        assert "Traceback" not in terminal.shown


def test_a_server_that_is_away_at_the_start_is_waited_for(server_binary: Path, namespace: str) -> None:
    with Server(server_binary) as server:
        line = Line(server.url, namespace)
        server.terminate()
        terminal = Terminal([*RUN, *where(line)])
        terminal.until("trying", 2)
        server.start()
        line.enqueue("tests.greet", "Ada")
        terminal.until(r"default\*")

        assert terminal.interrupt() == 130
