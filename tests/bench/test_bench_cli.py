"""The command line of the benchmarks, as a user calls it."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import redis

from benchmarks import enqueue
from benchmarks.document import Document, Result
from benchmarks.registry import SCENARIOS
from benchmarks.server import running

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["--repeats", "1", "--jobs", "1500"]


def benchmarks(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *words], cwd=ROOT, capture_output=True, text=True, timeout=120
    )


def test_list_names_the_scenarios() -> None:
    done = benchmarks("list")

    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(SCENARIOS)
    assert {"enqueue", "drain", "latency", "chaos"} <= set(SCENARIOS)


@pytest.mark.bench
def test_json_to_stdout_is_the_document_and_nothing_else() -> None:
    done = benchmarks("run", "enqueue", *SMALL, "--json", "-")

    assert done.returncode == 0, done.stderr
    document = msgspec.json.decode(done.stdout, type=Document)
    variants = [(result.scenario, result.variant) for result in document.results]
    assert variants == [("enqueue", name) for name, *_ in enqueue.VARIANTS]
    for result in document.results:
        assert isinstance(result, Result)
        assert result.void is None
        assert result.ratio_to_bare is not None
        assert result.ratio_to_bare > 0
    assert document.command[3:] == ["run", "enqueue", *SMALL, "--json", "-"]


@pytest.mark.bench
def test_json_to_a_file_leaves_the_table_on_stdout(tmp_path: Path) -> None:
    target = tmp_path / "out.json"

    with running() as url:
        done = benchmarks("run", "scripts", *SMALL, "--json", str(target), "--url", url)
        with redis.Redis.from_url(url) as client:
            assert client.keys() == []

    assert done.returncode == 0, done.stderr
    assert msgspec.json.decode(target.read_bytes(), type=Document).results[0].scenario == "scripts"
    assert "SCENARIO" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["run"], 2, "SCENARIO"),
        (["run", "nothing"], 2, "nothing"),
        (["run", "drain", "--jobs", "0"], 2, "0 is not at least 1"),
        (["run", "drain", "--jobs", "many"], 2, "argument --jobs: 'many' is not a whole number"),
        (["run", "chaos", "--seed", "many"], 2, "argument --seed: 'many' is not a whole number"),
        (["run", "drain", "--json", "no/such/folder/out.json"], 2, "no/such/folder"),
        (["run", "drain", "--url", "unix:///nowhere/socket"], 3, "/nowhere/socket"),
        (["run", "drain", "--server", "README.md"], 3, "README.md: no program"),
        (
            ["run", "drain", "--server", "x", "--url", "unix:///s"],
            2,
            "--server: --url names a server that runs already",
        ),
        (["run", "chaos", "--server", "x"], 2, "--server: chaos has no such option"),
        (["run", "drain", "--url", "nonsense"], 2, "'nonsense': name a redis://, rediss:// or unix:// server"),
        (["run", "drain", "--url", "http://ann:secret@here"], 2, "http://***@here: name a redis://"),
        (["run", "chaos", "--url", "nonsense"], 2, "'nonsense': name a redis:// or unix:// server"),
        (["run", "drain", "--url", "valkey://localhost:1"], 3, "localhost:1"),
        (["run", "drain", "--minutes", "1"], 2, "--minutes: drain has no such option"),
        (["run", "chaos", "enqueue", "--seed", "0"], 2, "--seed: enqueue has no such option"),
        (["run", "chaos", "--jobs", "5"], 2, "--jobs: chaos has no such option"),
        (["run", "cron", "--jobs", "5"], 2, "--jobs: cron has no such option"),
        (["run", "chaos", "--minutes", "0"], 2, "0 is not a time"),
        (["run", "chaos", "--minutes", "nan"], 2, "nan is not a time"),
        (["run", "chaos", "--url", "unix:///nowhere/socket"], 3, "/nowhere/socket"),
        (["run", "chaos", "--url", "redis://localhost?decode_responses=1"], 2, "decode_responses"),
        (["run", "chaos", "--url", "rediss://localhost:6379"], 2, "name a redis:// or unix:// server"),
    ],
)
def test_bad_input_gets_one_line_and_a_code(words: list[str], code: int, said: str) -> None:
    done = benchmarks(*words)

    assert done.returncode == code
    assert done.stdout == ""
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
