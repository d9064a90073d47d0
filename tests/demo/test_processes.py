"""What the demo starts ends with it, and its kill hits a worker in the middle of a job."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from streamjobs.demo import journal
from streamjobs.demo.processes import DemoFailed, Processes
from streamjobs.demo.watch import Watch

WAIT = "import signal; signal.pause()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); signal.pause()"


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_children_end_with_the_block_also_on_an_error(tmp_path: Path) -> None:
    pids: list[int] = []

    def interrupted() -> None:
        with Processes(tmp_path, {}) as processes:
            pids.extend(processes.start(name, "-c", WAIT) for name in ("one", "two"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert [gone(pid) for pid in pids] == [True, True]


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjobs.demo.processes.STOP_S", 0.1)

    with Processes(tmp_path, {}) as processes:
        pid = processes.start("deaf", "-c", DEAF)
        while not (tmp_path / "deaf.log").stat().st_size:
            pass
        with pytest.raises(DemoFailed, match="deaf did not stop within"):
            processes.stop("deaf")

    assert gone(pid)


def test_exit_codes_and_logs_are_told(tmp_path: Path) -> None:
    with Processes(tmp_path, {"WORD": "hello"}) as processes:
        pid = processes.start("short", "-c", "import os, sys; print(os.environ['WORD']); sys.exit(3)")
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

        assert processes.ended() == {"short": 3}
        assert processes.pids("short") == []
        assert processes.tail("short") == "\n    hello"


def test_a_program_that_fails_is_quoted(tmp_path: Path) -> None:
    processes = Processes(tmp_path, {})

    done = processes.run("-c", "import sys; print('out'); sys.exit('why')")

    assert (done.returncode, done.stdout, done.stderr) == (1, "out\n", "why\n")


def test_the_kill_waits_for_a_worker_that_runs_a_job(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    with Processes(tmp_path, {}) as processes:
        pid = processes.start("worker-0", "-c", WAIT)

        assert watch.kill_one([pid]) is None
        assert processes.ended() == {}

        line = {"event": "start", "pid": pid, "path": "a.py", "attempt": 1, "at_ms": 0}
        (tmp_path / journal.NAME).write_text(f"{json.dumps(line)}\n")

        assert watch.kill_one([pid]) == pid
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert processes.ended() == {"worker-0": -signal.SIGKILL}

    assert [event["event"] for event in journal.Tail(tmp_path).read()] == ["start", "kill"]


def test_the_journal_tells_what_runs_and_what_is_through(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    assert watch.read() == 0
    with pytest.raises(SyntaxError), journal.noted(tmp_path, "broken.py", 1):
        raise SyntaxError("invalid syntax")
    with pytest.raises(OSError, match="locked"), journal.noted(tmp_path, "locked.py", 1):
        raise OSError("database is locked")
    with journal.noted(tmp_path, "good.py", 1):
        assert watch.read() == 5
        assert watch.running == {os.getpid(): {"good.py"}}

    watch.read()

    assert watch.through == {"broken.py", "good.py"}
    assert watch.running == {os.getpid(): set()}


def test_half_a_line_is_left_for_the_next_look(tmp_path: Path) -> None:
    tail = journal.Tail(tmp_path)
    (tmp_path / journal.NAME).write_bytes(b'{"event": "a"}\n{"eve')

    assert [event["event"] for event in tail.read()] == ["a"]

    with (tmp_path / journal.NAME).open("ab") as file:
        file.write(b'nt": "b"}\n')
    assert [event["event"] for event in tail.read()] == ["b"]


def test_the_demo_runs_this_python() -> None:
    done = Processes(Path(), {}).run("-c", "import sys; print(sys.executable)")

    assert done.stdout.strip() == sys.executable
