"""dead export and import: a file carries dead jobs anywhere; a damaged one changes nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Line, error_line

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def died(line: Line) -> Line:
    """A command line whose queues hold 3 dead of one kind and 2 of another."""
    line.bury("a", "b", "ü\x1b[2J\u202e")
    return line


def test_what_was_purged_comes_back_as_it_was(died: Line, tmp_path: Path) -> None:
    before = died.dead()
    exported = died("dead", "export")
    file = tmp_path / "dead.ndjson"
    file.write_bytes(exported.stdout_bytes)
    assert exported.stderr == "exported 5 jobs of default, math\n"
    died("dead", "purge", "--yes")

    assert died("dead", "import", str(file), "--dry-run").stdout == "would import 5 jobs, unless they are here\n"
    assert died.dead() == []
    assert died("dead", "import", str(file)).stdout == "imported 5 jobs\n"

    assert sorted(died.dead(), key=str) == sorted(before, key=str)
    assert died.dead("-Q", "math") == [job for job in before if job["queue"] == "math"]
    assert died("dead", "import", str(file)).stdout == "imported 0 jobs; 5 were dead here already\n"
    assert len(died.dead()) == 5
    totals = died.stats("math")["queues"][0]
    assert totals["dead"] == 2


def test_what_is_alive_is_left_alone(died: Line, tmp_path: Path) -> None:
    text = died("dead", "export").stdout
    died("dead", "replay", "-Q", "math", "--yes")

    result = died("dead", "import", "-", stdin=text)

    assert result.stdout == "imported 0 jobs; 3 were dead here already; 2 are alive here\n"
    assert result.stderr.count("is alive here: left alone") == 2
    assert died.json("dead", "import", "-", stdin=text)["alive"][0].startswith("math:")
    died.work()
    assert len(died.dead()) == 5


def test_a_selection_is_exported_in_plain_ascii(died: Line) -> None:
    result = died("dead", "export", "--kind", "tests.fail", "--where", "text=ü\x1b[2J\u202e")

    assert result.stdout_bytes.isascii()
    [text] = result.stdout.splitlines()
    assert text.isprintable()
    row = json.loads(text)
    assert json.loads(row["row"]["body"]) == {"text": "ü\x1b[2J\u202e"}
    assert result.stderr == "exported 1 job of default; 2 skipped: other arguments, 2 skipped: other kind\n"
    by_id = died("dead", "export", "--id", row["id"]).stdout
    assert by_id == result.stdout


def test_it_goes_into_another_namespace(died: Line) -> None:
    text = died("dead", "export").stdout
    there = Line(died.url, f"{died.namespace}x")

    there("dead", "import", "-", stdin=text)

    assert there.json("queue", "list")["queues"] == ["default", "math"]
    there("dead", "replay", "--yes")
    there.work()
    assert len(there.dead()) == 5
    there("dead", "purge", "--yes")
    from tests.leaks import check_keys

    assert check_keys(there.url, there.namespace) == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda lines: [*lines[:2], lines[2][:-9], *lines[3:]], "line 3: this is no exported dead job"),
        (lambda lines: [*lines, "\n", '{"kind":"mail","args":{}}\n'], "line 7: this is no exported dead job"),
        (lambda lines: ["\ufeff" + lines[0], *lines[1:]], "line 1: this is no exported dead job"),
        (lambda lines: [line.replace('"body"', '"bodi"') for line in lines], "line 1: job "),
        (lambda lines: [lines[0], lines[1].replace('"version":1', '"version":2')], "line 2: schema"),
        (lambda lines: ["\x00" * 5000], "line 1: this is no exported dead job"),
        (lambda lines: ["x\x1b[2J\u202e"], "line 1: this is no exported dead job"),
    ],
)
def test_a_damaged_file_is_named_with_its_line_and_nothing_is_imported(died: Line, damage: Any, said: str) -> None:
    lines = died("dead", "export").stdout.splitlines(keepends=True)
    died("dead", "purge", "--yes")

    line = error_line(died("dead", "import", "-", stdin="".join(damage(lines)), exit=2))

    assert line.startswith(f"-: {said}")
    assert line.endswith("; nothing was imported")
    assert line.isprintable()
    assert died.dead() == []


@pytest.mark.parametrize(
    ("file", "said"),
    [("nowhere.ndjson", "nowhere.ndjson: No such file"), (".", ".: Is a directory"), ("", "Is a directory")],
)
def test_a_file_that_cannot_be_read(line: Line, file: str, said: str) -> None:
    found = error_line(line("dead", "import", file, exit=2))

    assert said in found or "No such file" in found


def test_an_empty_file_is_no_failure(line: Line) -> None:
    assert line("dead", "import", "-", stdin="\n\n").stdout == "imported 0 jobs\n"
    assert line("dead", "export").stderr == f"exported 0 jobs of namespace {line.namespace}\n"


def test_a_pipe_can_be_imported_from(died: Line) -> None:
    """It cannot be read twice."""
    died("dead", "purge", "-Q", "math", "--yes")
    where = ["--url", died.url, "--namespace", died.namespace]
    text = died("dead", "export").stdout
    died("dead", "purge", "--yes")

    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    done = subprocess.run(
        [sys.executable, "-m", "streamjobs", "dead", "import", f"/dev/fd/{reader}", *where],
        cwd=ROOT, pass_fds=[reader], capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    os.close(reader)

    assert (done.stdout, done.returncode) == ("imported 3 jobs\n", 0)
