"""`streamjobs bench` does what `python -m benchmarks` does, and speaks as every other command does."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.registry import SCENARIOS
from benchmarks.runs import Asked
from streamjobs.cli.main import cli
from tests.bench.test_document import RESULT, finished
from tests.cli.schema import load, problems
from tests.cli.support import error_line


def test_list_names_the_scenarios() -> None:
    shown = CliRunner().invoke(cli, ["bench", "list"], env={"COLUMNS": "80"}).stdout

    assert [line.split()[0] for line in shown.splitlines()[1:]] == list(SCENARIOS)
    assert "…" not in shown


@pytest.mark.bench
def test_run_prints_one_document_and_it_fits_its_schema() -> None:
    done = CliRunner().invoke(cli, ["bench", "run", "scripts", "--repeats", "1", "--json"])

    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert problems(found, load("streamjobs.bench")) == []
    assert found["command"][2:] == ["benchmarks", "run", "scripts", "--repeats", "1", "--json", "-"]


def test_compare_reads_two_files(tmp_path: Path) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file in files:
        file.write_bytes(finished(RESULT).encode())

    shown = CliRunner().invoke(cli, ["bench", "compare", *map(str, files)])
    document = json.loads(CliRunner().invoke(cli, ["bench", "compare", *map(str, files), "--json"]).stdout)

    assert "enqueue many_sync" in shown.stdout
    assert problems(document, load("streamjobs.bench.compare")) == []
    assert [row["by"] for row in document["rows"]] == [1.0, 1.0]


def test_what_is_asked_for_is_said_in_words_that_ask_for_it_again() -> None:
    asked = Asked(scenario=["chaos", "drain"], quick=True, minutes=2.0, seed=7, charts=Path("c"), url="unix:///s")

    said = "run chaos drain --quick --minutes 2 --seed 7 --charts c --url unix:///s"
    assert asked.words() == said.split()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["run"], 2, "SCENARIO"),
        (["run", "nothing"], 2, "scenario 'nothing': there is none; there are enqueue, "),
        (["run", "drain", "--jobs", "x"], 2, "'x' is not a whole number"),
        (["run", "drain", "--seed", "1"], 2, "--seed: drain has no such option"),
        (["run", "drain", "--server", "README.md"], 3, "README.md: no program"),
        (["run", "drain", "--url", "nonsense"], 2, "'nonsense': name a redis://"),
        (["run", "drain", "--url", "unix:///nowhere/socket"], 3, "/nowhere/socket"),
        (["run", "drain", "--out", "x", "--json"], 2, "--out and --json: give one of the two"),
        (["run", "drain", "--out", "no/such/folder/out.json"], 2, "no/such/folder"),
        (["compare", "README.md", "README.md"], 2, "README.md: not what `run --json FILE` writes"),
        (["compare", "nowhere.json", "README.md"], 2, "nowhere.json"),
    ],
)
def test_errors_are_one_line_and_a_code(words: list[str], code: int, said: str) -> None:
    done = CliRunner().invoke(cli, ["bench", *words])

    assert said in error_line(done)
    assert done.exit_code == code
