"""Bad words on the command line: for every option and argument of every command, one line that says what is wrong."""

from collections.abc import Iterator
from typing import Any

import click
import pytest
from click.testing import CliRunner

from streamjobs.cli.commands import GlobalOption
from streamjobs.cli.main import cli
from streamjobs.client import Connections
from streamjobs.protocol.calls import Command
from tests.cli import apps
from tests.cli.support import APP
from tests.security.corpus import WORDS

URL = "memory://words"
SAFE = {
    ("worker",): ["--burst", "-A", APP],
    ("enqueue",): ["k"],
    ("queue", "pause"): ["q"],
    ("queue", "resume"): ["q"],
    ("queue", "limit"): ["q"],
    ("job", "show"): ["q:1-1"],
    ("job", "cancel"): ["q:1-1"],
    ("job", "run-now"): ["q:1-1"],
    ("job", "reschedule"): ["q:1-1"],
    ("dead", "show"): ["q:1-1"],
    ("cron", "next"): ["nightly"],
    ("cron", "run"): ["nightly"],
    ("cron", "pause"): ["nightly"],
    ("cron", "resume"): ["nightly"],
    ("lua", "show"): ["take"],
}
"""What a command needs beside the word that is tried."""
LEFT_OUT = {("demo",)}
"""Starts processes for whatever it is told."""
EACH = 6
"""Words that are tried for each option; over all options every word comes up."""


def leaves(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command that does something."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        elif (*path, name) not in LEFT_OUT:
            yield (*path, name), command


LEAVES = list(leaves())


def tries(path: tuple[str, ...], command: click.Command, start: int) -> Iterator[list[str]]:
    """Yield command lines with a bad word for each parameter in turn."""
    own = [one for one in command.params if not isinstance(one, GlobalOption) and not getattr(one, "hidden", False)]
    for number, param in enumerate(own):
        for step in range(EACH):
            word = WORDS[(start + number * EACH + step) % len(WORDS)]
            if isinstance(param, click.Argument):
                yield [*path, "--", word]
            elif not getattr(param, "is_flag", False):
                yield [*path, *SAFE.get(path, []), f"{param.opts[-1]}={word}"]


def state() -> Any:
    """Return all that the server holds, but counters and who was there."""
    connections = Connections(URL)
    run = connections.sync().run
    keys = run(Command(["KEYS", "*"], sorted))
    lengths = [run(Command(["XLEN", key], int)) for key in keys if key.endswith((b":stream", b":dead"))]
    connections.close()
    return [key for key in keys if b":metrics:" not in key], lengths


@pytest.fixture(autouse=True)
def _app() -> Iterator[None]:
    """Leave the app of other tests where it was, and the server empty."""
    yield
    apps.app.use("memory://cli-tests")
    connections = Connections(URL)
    connections.sync().run(Command(["FLUSHALL"], bool))
    connections.close()


def complaint(words: list[str], *, exits: tuple[int, ...] = (2, 4, 5)) -> str:
    """Run a command that may well be fine; check how it ends, and return what it said on stderr."""
    before = state()
    result = CliRunner().invoke(cli, [*words, "--url", URL] if "--" not in words else ["--url", URL, *words])
    shown = [f"{word:.40}" for word in words]
    assert result.exit_code in (0, *exits), (shown, result.exit_code, result.stderr[-500:])
    assert "Traceback" not in result.stderr, shown
    assert "unexpected" not in result.stderr, (shown, result.stderr[-500:])
    if result.exit_code and words[0] != "worker":
        assert state() == before, shown
        errors = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
        assert len(errors) >= 1, (shown, result.stderr)
        assert max(map(len, errors)) < 2000, shown
    for text in (result.stdout, result.stderr):
        assert all(c.isprintable() or c == "\n" for c in text), shown
    return result.stderr


@pytest.mark.parametrize(
    ("number", "path", "command"), [(n, *leaf) for n, leaf in enumerate(LEAVES)], ids=lambda v: str(v)[:30]
)
def test_bad_words_are_said_in_one_line_and_change_nothing(
    number: int, path: tuple[str, ...], command: click.Command
) -> None:
    for words in tries(path, command, number):
        complaint(words)


@pytest.mark.parametrize("word", WORDS, ids=lambda word: f"{word[:20]!r}")
@pytest.mark.parametrize("name", ["--url", "--namespace", "--color"])
def test_bad_words_for_global_options(name: str, word: str) -> None:
    result = CliRunner().invoke(cli, ["stats", f"{name}={word}", *([] if name == "--url" else ["--url", URL])])

    assert result.exit_code in (0, 2, 3)
    assert "unexpected" not in result.stderr
    assert all(c.isprintable() or c == "\n" for c in result.stdout + result.stderr)


def test_every_word_is_tried() -> None:
    tried = {word for n, (path, command) in enumerate(LEAVES) for words in tries(path, command, n) for word in words}

    assert all(any(word in one for one in tried) for word in WORDS)
    assert {path for path, _ in LEAVES} >= SAFE.keys()
