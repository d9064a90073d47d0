"""Progress is a bar on a terminal, and a line a step elsewhere."""

import io
import sys

import pytest

from benchmarks.progress import tell


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_one_line_that_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "42")

    for step in (1, 2, 4):
        tell("drain", step, 4, f"{step} jobs/s and more than there is room for"[: 8 if step < 4 else 99])

    written = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert written.split("\r\x1b[K") == [
        "",
        "drain [#####---------------] 1/4 1 jobs/s",
        "drain [##########----------] 2/4 2 jobs/s",
        "drain [####################] 4/4 4 jobs/s\n",  # a longer line would not go away when it is drawn again
    ]


def test_a_file_gets_lines(capsys: pytest.CaptureFixture[str]) -> None:
    tell("drain", 1, 4, "ours: 3 jobs/s")

    assert capsys.readouterr() == ("", "drain 1/4 ours: 3 jobs/s\n")
