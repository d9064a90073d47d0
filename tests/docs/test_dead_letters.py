"""docs/dead-letters.md is true: its modules are imported, its commands run in their order, and do what it says."""

import re
import shlex
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.cli.support import Line
from tests.docs.blocks import blocks, commands, write_files

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "dead-letters.md"
LATE, NOWHERE = 20, 3


@pytest.fixture
def line(server_url: str, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    """A command line in a folder with the modules, whose dead jobs are those of the document."""
    write_files(DOCUMENT, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STREAMJOBS_URL", server_url)
    monkeypatch.setenv("STREAMJOBS_NAMESPACE", namespace)
    monkeypatch.syspath_prepend(str(tmp_path))
    line = Line(server_url, namespace)
    for order in range(LATE + NOWHERE):
        country = "XX" if order < NOWHERE else "DE"
        line("enqueue", "-A", "shop:app", "ship", str(order), country)
    line("enqueue", "-A", "shop:app", "invoice", "1")
    line("worker", "-A", "shop:app", "--burst")
    return line


def test_the_commands_do_what_the_page_says(line: Line, namespace: str, tmp_path: Path) -> None:
    said: dict[str, str] = {}
    shown: list[str] = []
    for block in blocks(DOCUMENT):
        for command in commands(block):
            words, _, file = command.words.partition(" > ")
            result = line(*shlex.split(words)[1:])
            if file:
                (tmp_path / file).write_bytes(result.stdout_bytes)
            said[command.words] = result.stdout
            shown += [*command.output, *([] if not command.output else result.stdout.splitlines())]
    say = iter(said.values())

    # Up to where errors are cut: how much fits depends on how long ago they were.
    assert [row.split()[:6] for row in shown[:3]] == [row.split()[:6] for row in shown[3:]]
    next(say)
    assert [len(next(say).splitlines()) for _ in range(2)] == [1 + NOWHERE, 1 + 5]
    assert next(say).startswith(f"would replay {LATE} jobs of orders, died ")
    assert next(say).startswith(f"replayed {LATE} jobs of orders")
    assert next(say) == f"replayed {NOWHERE} jobs of orders\n"
    line("worker", "-A", "shop:app", "--burst")
    assert line.json("dead", "groups")["groups"][0]["count"] == LATE + NOWHERE
    assert "keep_dead" in said["streamjobs queue limit orders --keep-dead 30d"]


def test_what_was_exported_comes_back(line: Line, tmp_path: Path) -> None:
    before = line.json("dead", "list")["jobs"]
    export, purge, restore = [
        command for block in blocks(DOCUMENT) for command in commands(block)
        if re.search("export|purge|import", command.words)
    ]  # fmt: skip

    words, _, file = export.words.partition(" > ")
    (tmp_path / file).write_bytes(line(*shlex.split(words)[1:]).stdout_bytes)
    assert line(*shlex.split(purge.words)[1:]).stdout.startswith(f"purged {NOWHERE} jobs of orders")
    assert line(*shlex.split(restore.words)[1:]).stdout == f"imported {NOWHERE} jobs\n"

    assert sorted(line.json("dead", "list")["jobs"], key=str) == sorted(before, key=str)


async def test_the_module_runs(line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = import_module("sweep")
    try:
        await sweep.sweep()
        await sweep.app.aclose()
    finally:
        for name in ("sweep", "shop"):
            sys.modules.pop(name, None)

    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == f"{LATE} shop.ship TimeoutError: carrier API: no answer to order N within N s"
    assert last == f"{LATE} put back {{}}"


@pytest.fixture(autouse=True)
def _forget_modules() -> object:
    yield
    for name in ("sweep", "shop"):
        sys.modules.pop(name, None)
