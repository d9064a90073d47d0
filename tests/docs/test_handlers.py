"""docs/handlers.md is true: its module works, in processes too, and its commands say what it shows."""

import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.support import Line
from tests.docs.blocks import blocks, commands, write_files

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "handlers.md"


def test_handlers_run_where_the_page_says(
    server_url: str, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [file] = write_files(DOCUMENT, tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    line = Line(server_url, namespace)
    line("enqueue", "-A", "handlers:app", "pages.fetch", "example.org")
    measured = line("enqueue", "-A", "handlers:app", "files.size", str(tmp_path / file)).stdout.strip()
    [block] = [block for block in blocks(DOCUMENT) if block.language == "console"]

    said = []
    for command in commands(block):
        _, *words = shlex.split(command.words)
        said.append(line(*words).stdout)
        for shown in command.output:
            fragment = " ".join(shown.removesuffix("...").split())
            assert fragment in " ".join(said[-1].split())
    line("worker", "-A", "handlers:app", "--burst")

    found = said[0].strip()
    assert line.json("job", "wait", found)["result"] == 2
    assert line.json("job", "wait", measured)["result"] == (tmp_path / file).stat().st_size
    sys.modules.pop("handlers", None)
