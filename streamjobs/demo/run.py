"""The show: enqueue, work, kill a worker, look at the dead, replay one, have it all checked.

Everything that is claimed at the end is checked by `check.py`, a program of its own. What this file
starts ends with it, whatever happens: workers and producers are its children, and an embedded
server goes with the last process that uses it.
"""

import json
import secrets
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from streamjobs import InvalidOption, StreamJobs, Unavailable, UsageError
from streamjobs.demo import broken, check, index, journal
from streamjobs.demo.jobs import DATABASE
from streamjobs.demo.processes import VERDICT, DemoFailed, Processes
from streamjobs.demo.produce import FILES
from streamjobs.demo.watch import Watch

PRODUCERS = 3
WORKERS = 3
WORKER = "worker -A streamjobs.demo.jobs:app -c 4 --lease 2s --sweep 1s"
KILL_AFTER = 0.25
"""The share of files that is indexed when a worker is killed."""
FEWEST = 200
STALLED_S = 60.0
POLL_S = 0.05

Say = Callable[[str], None]
Progress = Callable[[int, int], None]


def run(
    url: str | None = None,
    folder: Path | None = None,
    *,
    files: int | None = None,
    progress: Progress = lambda done, total: None,
    say: Say = print,
) -> int:
    """Run the whole demo; about half a minute on two cores.

    Args:
        url: the server; None starts an embedded one in the folder.
        folder: where everything is kept, new or empty; None takes a temporary one, which is left
            behind only when something failed.
        files: at most this many files of the standard library, 200 or more; None takes all.
        progress: called with the number of files that are through and of all files.
        say: called with each line to show.

    Returns:
        0 only if the check holds, else 1.

    Raises:
        UsageError: the URL, the folder or `files` cannot be used, or the package for an embedded server is
            missing; no job was enqueued.
        Unavailable: the server cannot be reached; no job was enqueued.
    """
    _check(url, files)
    place = _place(folder)
    keep = folder is not None
    try:
        with _exit_on_sigterm():
            code = _Demo(url, place, progress, say).show(files)
        keep = keep or code != 0
    except DemoFailed as error:
        for line in f"the demo failed: {error}".splitlines():
            say(line)
        code, keep = 1, True
    finally:
        if not keep:
            shutil.rmtree(place, ignore_errors=True)
    if keep:
        say(f"everything is kept in {place}")
    return code


def _check(url: str | None, files: int | None) -> None:
    if url is not None:
        StreamJobs(url)
    if files is not None and files < FEWEST:
        raise InvalidOption(f"files={files}: use {FEWEST} or more, fewer are done before anything can go wrong")
    if url and url.startswith("memory:"):
        raise InvalidOption("memory:// is seen by one process alone, and the demo runs several: use embedded://")


def _place(folder: Path | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="streamjobs-demo-")).resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidOption(f"folder {folder}: {error.strerror}") from error
    if any(folder.iterdir()):
        raise InvalidOption(f"folder {folder} is not empty: name a new one")
    return folder.resolve()


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    # The default action would end this process without a chance to stop its children.
    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Demo:
    def __init__(self, url: str | None, folder: Path, progress: Progress, say: Say) -> None:
        self._folder = folder
        self._progress = progress
        self._line = say
        # A namespace of its own: on a server that others use, their queues stay out of the picture.
        self._namespace = f"sj-demo-{secrets.token_hex(4)}"
        self._foreign = url is not None
        self._environment = {
            "STREAMJOBS_URL": url or f"embedded://{folder}/server",
            "STREAMJOBS_NAMESPACE": self._namespace,
            "PYTHONWARNINGS": "ignore",
        }
        self._watch = Watch(folder)

    def show(self, limit: int | None) -> int:
        with Processes(self._folder, self._environment) as processes:
            self._reach(processes)
            total = self._prepare(limit)
            self._start(processes)
            self._work(processes, total)
            self._rest(processes)
            for command in ("stats", "dead groups"):
                self._command(processes, *command.split())
            self._replay(processes)
            self._rest(processes)
            dead = processes.ask("dead", "list", "--json")
            (self._folder / check.DEAD).write_text(dead, "utf-8")
            self._stop(processes)
            code = self._check(processes)
        if self._foreign:
            self._say(f"\nthe server keeps the dead jobs and counters of this run in namespace {self._namespace}")
        return code

    def _say(self, text: str) -> None:
        for line in text.rstrip("\n").split("\n"):
            self._line(line)

    def _reach(self, processes: Processes) -> None:
        done = processes.run("-m", "streamjobs", "stats")
        if done.returncode not in (0, VERDICT):
            error = {2: UsageError, 3: Unavailable}.get(done.returncode, DemoFailed)
            raise error(done.stderr.strip().removeprefix("error: "))

    def _prepare(self, limit: int | None) -> int:
        own = broken.write(self._folder / "broken")
        library = index.stdlib_files(limit)
        try:
            index.create(self._folder / DATABASE)
        except sqlite3.OperationalError as error:
            raise DemoFailed(f"this Python's SQLite cannot make the index: {error}") from error
        files = [*library, *own]
        (self._folder / FILES).write_text("".join(f"{path}\n" for path in files), "utf-8")
        self._say(
            f"{len(files)} jobs, one per file: {len(library)} of Python {sys.version.split()[0]}'s standard"
            f" library, {len(own)} broken ones of the demo's own"
        )
        return len(files)

    def _start(self, processes: Processes) -> None:
        for number in range(WORKERS):
            processes.start(f"worker-{number}", "-m", "streamjobs", *WORKER.split())
        for nth in range(PRODUCERS):
            share = (str(self._folder), str(nth), str(PRODUCERS))
            processes.start(f"producer-{nth}", "-m", "streamjobs.demo.produce", *share)
        self._say(f"{PRODUCERS} producers and {WORKERS} workers: streamjobs {WORKER}")

    def _work(self, processes: Processes, total: int) -> None:
        """Follow the jobs until each file is through; kill a worker on the way."""
        killed: int | None = None
        moved = time.monotonic()
        while len(self._watch.through) < total:
            if self._watch.read():
                moved = time.monotonic()
                self._progress(len(self._watch.through), total)
            if killed is None and len(self._watch.through) >= total * KILL_AFTER:
                killed = self._kill(processes)
            if time.monotonic() - moved > STALLED_S:
                raise DemoFailed(f"nothing has happened for {STALLED_S:.0f} s; logs are in {self._folder}")
            self._expect_alive(processes, killed)
            time.sleep(POLL_S)

    def _kill(self, processes: Processes) -> int | None:
        pid = self._watch.kill_one(processes.pids("worker"))
        if pid is not None:
            jobs = len(self._watch.running[pid])
            self._say(f"killed worker {pid} with SIGKILL in the middle of {jobs} jobs")
        return pid

    def _expect_alive(self, processes: Processes, killed: int | None) -> None:
        for name, code in processes.ended().items():
            wanted = 0 if name.startswith("producer") else -signal.SIGKILL if killed else None
            if code != wanted:
                raise DemoFailed(f"{name} ended with exit code {code}{processes.tail(name)}")

    def _rest(self, processes: Processes) -> None:
        """Wait until every job is done or dead."""
        end = time.monotonic() + STALLED_S
        while _alive(json.loads(processes.ask("stats", "--json"))):
            if time.monotonic() > end:
                raise DemoFailed(f"jobs are left over after {STALLED_S:.0f} s:\n{processes.ask('stats')}")
            time.sleep(POLL_S)

    def _command(self, processes: Processes, *words: str) -> None:
        self._say(f"\n$ streamjobs {' '.join(words)}")
        self._say(processes.ask(*words))

    def _replay(self, processes: Processes) -> None:
        path = str(broken.repair(self._folder / "broken"))
        self._say(f"\n{broken.UNFINISHED} of the demo's own files is repaired; its dead job is replayed:")
        dead = json.loads(processes.ask("dead", "list", "--json"))["jobs"]
        (job,) = [job["id"] for job in dead if job["args"]["path"] == path]
        journal.note(self._folder, "replay", path=path)
        self._command(processes, "dead", "replay", "--id", job, "--yes")

    def _stop(self, processes: Processes) -> None:
        codes = processes.stop("worker").values()
        if sorted(codes) != [-signal.SIGKILL, *[0] * (WORKERS - 1)]:
            raise DemoFailed(f"workers ended with exit codes {sorted(codes)}; logs are in {self._folder}")

    def _check(self, processes: Processes) -> int:
        # -I: not even by accident does the program import what lies beside it.
        done = processes.run("-I", check.__file__, str(self._folder))
        self._say(f"\n$ python {check.__file__} {self._folder}")
        self._say(done.stdout + done.stderr)
        return 1 if done.returncode else 0


def _alive(stats: dict[str, Any]) -> bool:
    states = ("waiting", "running", "scheduled", "retrying")
    return any(queue[state] for queue in stats["queues"] for state in states)
