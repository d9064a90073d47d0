"""docs/batch.md is true: its module is imported with stand-ins for the reader's own, and its commands run."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.cli.support import Line
from tests.docs.blocks import blocks, commands, write_files

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "batch.md"


def test_batch_does_what_it_says(
    server_url: str, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[list[tuple[int, str]]] = []
    drawn: dict[int, str] = {}

    async def add(docs: list[tuple[int, str]]) -> dict[int, str]:
        added.append(docs)
        return {6: "its title is no title"}

    engine = ModuleType("engine")
    engine.__dict__.update(add=add, draw=lambda doc_id, key: drawn.update({doc_id: key}))
    monkeypatch.setitem(sys.modules, "engine", engine)
    [_] = write_files(DOCUMENT, tmp_path)
    monkeypatch.setenv("STREAMJOBS_URL", server_url)
    monkeypatch.syspath_prepend(str(tmp_path))
    line = Line(server_url, namespace)
    first, second = (line("enqueue", "-A", "search:app", "render", n).stdout.strip() for n in "12")

    ran = [command.words for block in blocks(DOCUMENT) for command in commands(block)]
    ids = [line(*words.split()[1:]).stdout.strip() for words in ran]

    assert added == [[(5, ""), (6, "Six"), (7, "")]]
    assert drawn == {1: first, 2: second}
    [dead] = line.json("dead", "list")["jobs"]
    assert (dead["id"], dead["reason"]) == (ids[1], "permanent")
    assert line.json("job", "show", ids[0])["result"] == "added"
    sys.modules.pop("search", None)
