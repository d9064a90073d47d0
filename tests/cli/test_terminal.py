"""On a terminal: commands that change something ask first."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.support import Line

ROOT = Path(__file__).resolve().parents[2]


def on_terminal(line: Line, *words: str, answer: str) -> tuple[int, str]:
    """Run a command on a pseudo terminal, typing an answer ahead; return exit code and what it showed."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "streamjobs", *words, "--url", line.url, "--namespace", line.namespace],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    os.write(master, answer.encode())
    shown = b""
    try:
        while part := os.read(master, 4096):
            shown += part
    except OSError:
        # How Linux says that nobody holds the other end any more.
        pass
    os.close(master)
    return process.wait(30), shown.decode()


@pytest.fixture
def died(line: Line) -> Line:
    for text in ("one", "two"):
        line.enqueue("tests.fail", text)
    line.work()
    return line


def dead(line: Line) -> int:
    return len(line.json("dead", "list")["jobs"])


def test_yes_does_it(died: Line) -> None:
    code, shown = on_terminal(died, "dead", "replay", "-Q", "default", answer="y\n")

    assert code == 0
    assert "replay 2 jobs of default, died " in shown
    assert " ago? [y/N]" in shown
    assert "replayed 2 jobs of default" in shown
    assert dead(died) == 0


@pytest.mark.parametrize(("answer", "code"), [("n\n", 5), ("\n", 5), ("\x04", 130)])
def test_anything_else_does_nothing(died: Line, answer: str, code: int) -> None:
    done, shown = on_terminal(died, "dead", "purge", answer=answer)

    assert done == code
    assert "Traceback" not in shown
    assert dead(died) == 2


def test_headings_are_bold_on_a_terminal(died: Line) -> None:
    assert "\x1b[1mCOUNT" in on_terminal(died, "dead", "groups", answer="")[1]
