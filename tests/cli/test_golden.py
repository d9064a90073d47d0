"""Screens as they are, character by character, at 80 and 120 columns, in colours and without.

They lie in golden/. There `{red}` begins a colour and `{/}` ends it. To write them anew: GOLDEN=write pytest
tests/cli/test_golden.py; then read the difference.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from streamjobs.cli import show
from streamjobs.cli.main import cli
from streamjobs.cli.settings import Settings
from tests.cli.looks import NOON_MS, SCREENS, URL

GOLDEN = Path(__file__).parent / "golden"
MARKS = {
    "\x1b[0m": "{/}",
    "\x1b[1m": "{bold}",
    "\x1b[31m": "{red}",
    "\x1b[31m\x1b[1m": "{red bold}",
    "\x1b[32m": "{green}",
    "\x1b[33m": "{yellow}",
}


class Answers:
    """In the place of the server: the answers that one command gets, in order."""

    def __init__(self, answers: Any) -> None:
        self._left: Iterator[Any] = iter(answers)

    def reach(self, settings: Settings) -> "tuple[Answers, int]":
        return self, NOON_MS

    def run(self, request: Any) -> Any:
        # All but one of the commands ask only for the names of the queues in this way.
        return ["mail", "web"] if "SMEMBERS" in getattr(request, "words", ()) else next(self._left)

    def talk(self, executor: Any, conversation: Any) -> Any:
        conversation.close()
        return next(self._left)


def screen(words: str, columns: int, color: str, patch: pytest.MonkeyPatch) -> str:
    told, code = SCREENS[words]
    answers = Answers(told)
    patch.setenv("COLUMNS", str(columns))
    patch.setattr(Settings, "reach", lambda settings: answers.reach(settings))
    patch.setattr("streamjobs.client.talk.talk", answers.talk)
    result = CliRunner().invoke(cli, [*words.split(), "--url", URL, "--color", color])
    assert (result.exit_code, result.stderr) == (code, ""), result.output
    return result.stdout


def marked(text: str) -> str:
    for code in sorted(MARKS, key=len, reverse=True):
        text = text.replace(code, MARKS[code])
    return text


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("words", SCREENS)
def test_the_screen_is_as_it_was(words: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "-".join(word.strip("-") for word in words.split() if word != "--reveal" and ":" not in word)
    file = GOLDEN / f"{name}-{columns}.txt"
    seen = marked(screen(words, columns, "always", monkeypatch))
    if os.environ.get("GOLDEN") == "write":
        file.write_text(seen)
    golden = file.read_text()

    assert seen == golden
    plain = re.sub(r"\{(/|[a-z ]+)\}", "", golden)
    assert screen(words, columns, "never", monkeypatch) == plain
    assert "\x1b" not in seen
    wide = [line for line in plain.splitlines() if show.width(line) > columns]
    assert not [line for line in wide if "streamjobs " not in line and not line.startswith(("arguments", "trace"))]
