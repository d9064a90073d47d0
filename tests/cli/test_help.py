"""--help and --version are quick: they import neither the driver nor an event loop."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from streamjobs.cli.commands import GlobalOption
from streamjobs.cli.main import cli
from streamjobs.cli.settings import Settings
from tests.cli.support import error_line

HEAVY = ("redis", "asyncio", "msgspec", "hiredis", "ssl")


def commands(group: click.Group = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command, groups included."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*path, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


EVERY = list(commands())


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from streamjobs.cli.main import cli\n"
        f"for words in {[[], *map(list, EVERY)]!r}:\n"
        "    try: cli.main([*words, '--help'])\n"
        "    except SystemExit as end: assert not end.code, words\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_a_look_at_the_queues_loads_no_worker() -> None:
    """A third of the time that stats takes would be for what it does not use."""
    program = (
        "import sys\n"
        "from streamjobs.cli.main import cli\n"
        "try: cli.main(['stats', '--url', 'memory://'])\n"
        "except SystemExit as end: assert not end.code\n"
        "print([name for name in sys.modules if name.startswith(('streamjobs.worker', 'streamjobs.producer'))])\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert done.stdout.splitlines()[-1] == "[]", done


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_every_command_has_help_and_takes_the_global_options(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(cli, [*words, "--help"])

    assert shown.exit_code == 0
    assert "Global options:" in shown.stdout
    assert "--namespace NS" in shown.stdout


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_help_says_something_of_each_option(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(cli, [*words, "--help"]).stdout

    assert "RANGE" not in shown
    assert "INTEGER" not in shown
    listed = shown.partition("ptions:")[2].splitlines()
    assert not [line for line in listed if line.startswith("  [")]


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_help_of_options_is_written_alike(words: tuple[str, ...]) -> None:
    *_, context = contexts(words)
    helps = [one.help or "" for one in context.command.get_params(context) if isinstance(one, click.Option)]

    assert not [text for text in helps if text[:1].islower() or not text.endswith(".")]


def test_help_ends_with_examples_that_can_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("before.json", "after.json", "jobs.ndjson", "dead.ndjson"):
        Path(name).touch()

    for words in EVERY:
        *_, context = contexts(words)
        if isinstance(context.command, click.Group):
            continue
        shown = CliRunner().invoke(cli, [*words, "--help"]).stdout
        lines = [line.strip() for line in shown.partition("\nExamples:\n")[2].splitlines()]
        assert lines, f"{words}: --help has no example"
        for line in lines:
            # What the shell makes of it is taken off: a file for the output, or all around a $(...).
            line = line.partition(" > ")[0].removeprefix('eval "$(').removesuffix(')"')
            first, *rest = shlex.split(line)
            assert [first, *rest[: len(words)]] == ["streamjobs", *words]
            context.command.make_context(words[-1], rest[len(words) :], parent=context.parent)


def contexts(words: tuple[str, ...]) -> list[click.Context]:
    """Return the contexts of the root and of the commands of these words."""
    found = [click.Context(cli, info_name="streamjobs", obj=Settings())]
    for word in words:
        group = found[-1].command
        assert isinstance(group, click.Group)
        command = group.get_command(found[-1], word)
        assert command is not None
        found.append(click.Context(command, info_name=word, parent=found[-1]))
    return found


def test_root_help_lists_the_commands_that_are_there() -> None:
    shown = CliRunner().invoke(cli, []).stdout

    assert all(f"  {words[0]} " in shown for words in EVERY)


def test_version() -> None:
    import streamjobs

    for words in (["--version"], ["stats", "--version"]):
        assert CliRunner().invoke(cli, words).stdout == f"streamjobs {streamjobs.__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["dead"], "Missing command; there are list, groups, show, replay, purge"),
        (["dead", "--json"], "Missing command; there are list"),
        (["dead", "lst"], "No such command 'lst'"),
        (["enqueue", "k", "--count", "x"], "'x' is not a whole number"),
        (["enqueue", "k", "--count", "0"], "0: use 1 to 10,000,000"),
        (["dead", "list", "--limit", "0"], "0: use 1 or more"),
        (["stats", "--nonsense"], "No such option"),
        (["job", "show"], "Missing argument 'ID'"),
        (["job", "cancel"], "Missing argument 'ID...'"),
        (["lua", "show", "nonsense"], "script 'nonsense'"),
        (["stats", "--color", "blue"], "--color"),
    ],
)
def test_usage_errors_are_one_line(words: list[str], said: str) -> None:
    result = CliRunner().invoke(cli, words)

    assert said in error_line(result)
    assert result.exit_code == (4 if words[0] == "lua" else 2)


def test_global_options_are_the_same_everywhere() -> None:
    root = {param.name for param in cli.params if isinstance(param, GlobalOption)}
    stats = cli.get_command(click.Context(cli), "stats")

    assert stats is not None
    assert {param.name for param in stats.params if isinstance(param, GlobalOption)} == root


def test_lua_shows_what_the_server_runs() -> None:
    listed = CliRunner().invoke(cli, ["lua", "list"]).stdout
    folder = CliRunner().invoke(cli, ["lua", "path"]).stdout.strip()

    assert "enqueue" in listed
    assert folder.endswith("lua")
    text = CliRunner().invoke(cli, ["lua", "show", "retry"]).stdout
    assert "@include" not in text.replace("-- @include", "@include").split("local function")[-1]
    assert "XPENDING" in text
