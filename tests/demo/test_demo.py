"""The whole demo, as a user starts it: it passes its own check, and leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from streamjobs import InvalidOption
from streamjobs.demo import check, journal
from streamjobs.demo.run import run

FILES = "300"
EXAMPLE = Path(__file__).parents[2] / "examples" / "index_stdlib.py"


def environment(**more: str) -> dict[str, str]:
    """What the demo is run with: this checkout, and none of the settings of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("STREAMJOBS_", "REDIS_"))}
    root = str(EXAMPLE.parents[1])
    return {**kept, "PYTHONPATH": os.pathsep.join((root, kept.get("PYTHONPATH", ""))), **more}


def leftovers(folder: Path) -> list[object]:
    """Return what still runs of a demo in `folder`."""
    pids = {event["pid"] for event in journal.Tail(folder).read() if event["event"] in ("start", "end")}
    socket = Path(json.loads((folder / "server" / "server.json").read_text())["socket"])
    return [*filter(runs, pids), *([socket] if socket.exists() else [])]


def runs(pid: int) -> bool:
    """Return whether there is a process of this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_the_demo_passes_its_check(tmp_path: Path) -> None:
    folder = tmp_path / "demo"

    done = subprocess.run(
        [sys.executable, "-m", "streamjobs", "demo", "--files", FILES, "--folder", str(folder)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok  ") == len(check.CHECKS)
    for shown in ("with SIGKILL in the middle of", "$ streamjobs stats", "$ streamjobs dead groups", "replayed 1 job"):
        assert shown in done.stdout
    assert "Traceback" not in done.stderr
    assert leftovers(folder) == []


@pytest.mark.slow
def test_an_interrupted_demo_stops_what_it_started(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    demo = subprocess.Popen(
        [sys.executable, "-m", "streamjobs", "demo", "--files", FILES, "--folder", str(folder)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert demo.stdout is not None
    for line in demo.stdout:
        if line.startswith("killed worker"):
            demo.send_signal(signal.SIGINT)
    demo.communicate(timeout=60)

    assert demo.returncode == 130
    assert leftovers(folder) == []


@pytest.mark.slow
def test_a_temporary_folder_does_not_outlive_a_demo_without_a_server(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "streamjobs", "demo", "--url", f"unix://{tmp_path}/nobody"],
        env=environment(TMPDIR=str(tmp_path)),
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 3
    assert "cannot reach" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "files", "said"),
    [("memory://", None, "one process alone"), ("foo://x", None, "foo://x"), (None, 5, "200 or more")],
)
def test_what_cannot_work_is_refused_at_once(url: str | None, files: int | None, said: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=said):
        run(url, tmp_path, files=files)

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(InvalidOption, match="is not empty"):
        run(None, tmp_path)
    with pytest.raises(InvalidOption, match="File exists"):
        run(None, tmp_path / "file")


@pytest.mark.slow
def test_the_example_fills_and_searches_an_index(tmp_path: Path) -> None:
    told = environment(STREAMJOBS_URL=f"embedded://{tmp_path}/server", PYTHONWARNINGS="ignore")

    def python(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, *arguments], env=told, capture_output=True, text=True, timeout=60, check=True
        ).stdout

    filled = python(str(EXAMPLE), "fill", str(tmp_path / "index"), "40")
    python("-m", "streamjobs", "worker", "-A", "streamjobs.demo.jobs:app", "-c", "2", "--burst")
    found = python(str(EXAMPLE), "search", str(tmp_path / "index"), "__init__")

    assert filled == "enqueued 40 jobs, 0 failed\n"
    assert found.count(".py\n") > 1
