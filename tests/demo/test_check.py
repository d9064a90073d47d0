"""The demo's check believes nothing: each damage planted in a good run's folder makes it fail."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from streamjobs.demo import check, index

KILLED, OTHER = 11, 12
Damage = Callable[[Path], None]


def event(name: str, pid: int, **fields: str | int) -> dict[str, Any]:
    return {"event": name, "pid": pid, "at_ms": 0, **fields}


def run_of(path: str, pid: int, error: str = "") -> list[dict[str, Any]]:
    return [event("start", pid, path=path, attempt=1), event("end", pid, path=path, attempt=1, error=error)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as a good run leaves it: three good files, one dead."""
    paths = {name: str(tmp_path / f"{name}.py") for name in ("good", "twice", "mended", "dead")}
    for name, path in paths.items():
        Path(path).write_text("def (\n" if name == "dead" else f"class {name}: ...\n")
    (tmp_path / "files.txt").write_text("".join(f"{path}\n" for path in paths.values()))
    (tmp_path / "dead.json").write_text(json.dumps(dead_list(paths["dead"])))
    index.create(tmp_path / "index.db")
    for name in ("good", "twice", "mended"):
        index.upsert(tmp_path / "index.db", paths[name], index.read_symbols(Path(paths[name])))
    events = [
        *run_of(paths["good"], OTHER, "OperationalError: database is locked"),
        *run_of(paths["dead"], OTHER, "SyntaxError: invalid syntax"),
        *run_of(paths["mended"], KILLED, "SyntaxError: invalid syntax"),
        event("start", KILLED, path=paths["twice"], attempt=1),
        event("kill", 1, target=KILLED),
        *run_of(paths["good"], OTHER),
        *run_of(paths["twice"], OTHER),
        event("replay", 1, path=paths["mended"]),
        *run_of(paths["mended"], OTHER),
    ]
    write_events(tmp_path, events)
    return tmp_path


def dead_list(*paths: str) -> dict[str, Any]:
    return {"jobs": [{"args": {"path": path}} for path in paths]}


def write_events(folder: Path, events: list[dict[str, Any]]) -> None:
    (folder / "journal.ndjson").write_text("".join(f"{json.dumps(line)}\n" for line in events))


def without(folder: Path, unwanted: Callable[[dict[str, Any]], bool]) -> None:
    lines = [json.loads(line) for line in (folder / "journal.ndjson").read_text().splitlines()]
    write_events(folder, [line for line in lines if not unwanted(line)])


def execute(folder: Path, statement: str, *values: str) -> None:
    with closing(sqlite3.connect(folder / "index.db")) as connection, connection:
        assert connection.execute(statement, values).rowcount


def missing_row(folder: Path) -> None:
    execute(folder, "DELETE FROM files WHERE symbols = 'good'")


def extra_row(folder: Path) -> None:
    index.upsert(folder / "index.db", str(folder / "dead.py"), index.Symbols([], []))


def row_of_no_file(folder: Path) -> None:
    execute(folder, "INSERT INTO files (rowid, symbols, summaries) VALUES (99, 'x', '')")


def wrong_symbols(folder: Path) -> None:
    index.upsert(folder / "index.db", str(folder / "good.py"), index.Symbols(["wrong"], []))


def dead_file_that_compiles(folder: Path) -> None:
    (folder / "dead.py").write_text("def fine(): ...\n")


def broken_file_that_is_not_dead(folder: Path) -> None:
    (folder / "dead.json").write_text(json.dumps(dead_list()))


def dead_file_listed_twice(folder: Path) -> None:
    (folder / "dead.json").write_text(json.dumps(dead_list(*[str(folder / "dead.py")] * 2)))


def no_start_after_the_kill(folder: Path) -> None:
    without(folder, lambda e: e["pid"] == OTHER and e.get("path", "").endswith("twice.py"))


def a_kill_that_hit_no_job(folder: Path) -> None:
    without(folder, lambda e: e["pid"] == KILLED and e["path"].endswith("twice.py"))


def no_kill(folder: Path) -> None:
    without(folder, lambda e: e["event"] == "kill")


def nothing_locked(folder: Path) -> None:
    without(folder, lambda e: "locked" in e.get("error", ""))


def no_replay(folder: Path) -> None:
    without(folder, lambda e: e["event"] == "replay")


def a_replay_that_failed(folder: Path) -> None:
    failed = event("end", OTHER, path=str(folder / "mended.py"), attempt=1, error="SyntaxError")
    write_events(folder, [*check.read(folder).events[:-1], failed])


DAMAGES: list[tuple[Damage, str]] = [
    (missing_row, "index holds"),
    (extra_row, "index holds"),
    (row_of_no_file, "index holds"),
    (wrong_symbols, "a search finds"),
    (dead_file_that_compiles, "compile() fails"),
    (broken_file_that_is_not_dead, "compile() fails"),
    (dead_file_listed_twice, "compile() fails"),
    (no_start_after_the_kill, "started again"),
    (a_kill_that_hit_no_job, "started again"),
    (no_kill, "started again"),
    (nothing_locked, "were retried"),
    (no_replay, "the replayed job"),
    (a_replay_that_failed, "the replayed job"),
]


def test_a_good_run_passes_as_a_program_of_its_own(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-I", check.__file__, str(folder)], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("ok  ") == len(check.CHECKS)


@pytest.mark.parametrize(("damage", "said"), DAMAGES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_damage_is_found(
    folder: Path,
    damage: Damage,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # With three files, each of them is searched for.
    monkeypatch.setattr(check, "_EVERY", 1)
    damage(folder)

    code = check.main([str(folder)])

    failed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED")]
    assert code == 1
    assert any(said in line for line in failed), failed


@pytest.mark.parametrize("name", ["files.txt", "dead.json", "index.db", "journal.ndjson"])
def test_a_missing_file_is_one_line(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / name).unlink()

    assert check.main([str(folder)]) == 1
    assert capsys.readouterr().out.startswith("FAILED  the folder cannot be read")


def test_usage_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main([]) == 2
    assert "usage" in capsys.readouterr().err
