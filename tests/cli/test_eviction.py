"""Case F10: a server that deletes jobs when it is full is refused, by an exit code of its own, unless forced."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import APP, Line, error_line
from tests.servers import Server


@pytest.fixture
def evicting(server_binary: Path) -> Iterator[Line]:
    """A command line on a server that evicts."""
    with Server(server_binary, args=("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")) as server:
        yield Line(server.url, "ns")


def test_case_F10_worker_is_refused_and_told_what_to_do(evicting: Line) -> None:
    said = error_line(evicting("worker", "-A", APP, "--burst", exit=5))

    assert said == (
        f"{evicting.url}: the server deletes whole queues when its memory is full (maxmemory-policy allkeys-lru);"
        " set maxmemory-policy noeviction there, or accept that with --allow-eviction (allow_eviction=True in code)"
    )


def test_case_F10_forced_by_the_flag(evicting: Line) -> None:
    evicting.enqueue("add", "1")

    result = evicting.work("--allow-eviction")

    assert "WARNING" in result.stderr
    assert "deletes whole queues" in result.stderr
    assert "1 done" in result.stderr


@pytest.mark.parametrize(("value", "exit"), [("true", 0), ("1", 0), ("no", 5), ("perhaps", 2)])
def test_case_F10_forced_by_the_environment(
    evicting: Line, monkeypatch: pytest.MonkeyPatch, value: str, exit: int
) -> None:
    monkeypatch.setenv("STREAMJOBS_ALLOW_EVICTION", value)

    result = evicting("worker", "-A", APP, "--burst", exit=exit)

    if exit == 2:
        assert error_line(result).startswith("STREAMJOBS_ALLOW_EVICTION: ")


def test_case_F10_forced_by_the_file(evicting: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "streamjobs.toml").write_text("[worker]\nallow_eviction = true\n")

    evicting("worker", "-A", APP, "--burst")
