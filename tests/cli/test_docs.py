"""docs/cli.md documents each command, each option and each setting."""

import re
from pathlib import Path

import click
import pytest

from streamjobs.cli import examples
from streamjobs.cli.commands import GlobalOption
from streamjobs.cli.main import cli
from streamjobs.cli.settings import GENERAL, WORKER
from tests.cli.test_help import EVERY

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text("utf-8")


def section(title: str) -> str:
    """Return the text under a heading, up to the next one of its level or above."""
    heading = re.search(rf"^(#+) {re.escape(title)}$", PAGE, re.MULTILINE)
    assert heading, f"docs/cli.md has no section {title!r}"
    rest = PAGE[heading.end() :]
    end = re.search(rf"^#{{1,{len(heading[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def command(words: tuple[str, ...]) -> click.Command:
    """Return the command of these words."""
    found: click.Command = cli
    for word in words:
        assert isinstance(found, click.Group)
        inner = found.get_command(click.Context(found), word)
        assert inner is not None
        found = inner
    return found


def missing(options: list[click.Option], text: str) -> list[str]:
    """Return the names of options that a text does not spell in code."""
    names = [name for option in options for name in option.opts]
    return [name for name in names if not re.search(rf"`{re.escape(name)}[ `]", text)]


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_every_command_and_option_is_documented(words: tuple[str, ...]) -> None:
    text = section(f"streamjobs {' '.join(words)}")
    if len(words) > 1:
        # What the commands of a group share is said above them.
        text += section(f"streamjobs {words[0]}")
    options = [
        param
        for param in command(words).params
        if isinstance(param, click.Option) and not isinstance(param, GlobalOption) and not param.hidden
    ]

    assert missing(options, text) == []


def test_global_options_are_documented() -> None:
    options = [param for param in cli.params if isinstance(param, GlobalOption)]

    assert missing(options, section("Global options")) == []


@pytest.mark.parametrize("name", sorted(GENERAL | WORKER))
def test_settings_are_documented(name: str) -> None:
    text = section("Global options")

    assert f"`{name}`" in text
    assert f"`STREAMJOBS_{name.upper()}`" in text


def test_examples_are_those_of_the_help() -> None:
    shown = re.findall(r"^    (\S.*)$", PAGE.partition("\n## streamjobs worker\n")[2], re.MULTILINE)

    assert [line for line in shown if "streamjobs " in line] == examples.LINES


def test_no_command_is_documented_that_is_not_there() -> None:
    headings = re.findall(r"^#+ streamjobs (.+)$", PAGE, re.MULTILINE)

    assert sorted(headings) == sorted(" ".join(words) for words in EVERY)
