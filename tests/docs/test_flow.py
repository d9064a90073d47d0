"""docs/flow.md is true: its module is imported, its commands run, and what they say holds for its jobs."""

import sys
from pathlib import Path

import pytest

from tests.cli.support import Line
from tests.docs.blocks import blocks, commands, write_files

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "flow.md"


def test_flow_does_what_it_says(
    server_url: str, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [_] = write_files(DOCUMENT, tmp_path)
    monkeypatch.setenv("STREAMJOBS_URL", server_url)
    monkeypatch.syspath_prepend(str(tmp_path))
    line = Line(server_url, namespace)
    line("enqueue", "-A", "flow:app", "flow.sync", "--arg", "tenant=1", "--arg", "account=a")
    line("enqueue", "-A", "flow:app", "flow.fetch", "example.org")

    line("worker", "-A", "flow:app", "-Q", "web", "--burst")
    shown = []
    for block in blocks(DOCUMENT):
        for command in commands(block):
            _, *words = command.words.split()
            line(*words)
            shown.append(line.json("queue", "limit", "web")["limits"])

    by_code = {(one["limits"], one["kind"], one["key"]): one for one in shown[-1]}
    assert not any(one["by_operator"] for one in shown[-1] if not one["kind"])
    assert by_code["concurrency", "", ""]["places"] == 50
    assert by_code["rate", "flow.fetch", ""]["interval_us"] == 12_000_000
    assert by_code["concurrency", "flow.sync", "account"]["places"] == 2
    sys.modules.pop("flow", None)
