"""The processes of a soak, none of which outlives it."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

from tests.faults.recorder import Recorder

ENDS_WITHIN_S = 20.0
"""How long a process may take to its end; those that hang are killed, and that is found."""


class Actor:
    """One process of ours, and what it says on stderr."""

    def __init__(self, role: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.role, self.process, self.log = role, process, log

    @property
    def pid(self) -> int:
        return self.process.pid

    def __str__(self) -> str:
        return f"{self.role} {self.pid}"


class Processes:
    """Starts and ends processes; notes for the checker how they end.

    They share a process group of their own, so that Ctrl-C is not for them. In it is a guard, which waits
    for the end of a pipe that only we hold open, and then kills the group: however this process ends.
    """

    def __init__(self, folder: Path, recorder: Recorder, environment: Mapping[str, str]) -> None:
        self._folder, self._recorder = folder, recorder
        # Whatever else is set for streamjobs here is not for them.
        others = {name: value for name, value in os.environ.items() if not name.startswith("STREAMJOBS_")}
        self._environment = {**others, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment}
        self._started = 0
        self.running: list[Actor] = []
        self._guard = subprocess.Popen(
            ["sh", "-c", "cat >/dev/null; kill -9 0"], stdin=subprocess.PIPE, process_group=0
        )

    def start(self, role: str, url: str, *words: str) -> Actor:
        """Start `python -m WORDS`, which finds its server at `url`."""
        self._started += 1
        log = self._folder / f"{role}-{self._started}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", *words],
                env={**self._environment, "STREAMJOBS_URL": url},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                process_group=self._guard.pid,
            )
        self.running.append(Actor(role, process, log))
        return self.running[-1]

    def signal(self, pid: int, number: signal.Signals) -> None:
        """Send a signal to one of them, or to a child of one; harmless if it has just ended."""
        with suppress(ProcessLookupError):
            self._recorder.kill(pid, number)

    def kill(self, pid: int) -> None:
        """Kill one of them, or a child of one, and wait until it is gone."""
        self.signal(pid, signal.SIGKILL)
        actor = next((one for one in self.running if one.pid == pid), None)
        if actor is not None:
            self.wait(actor)
            return
        deadline = monotonic() + ENDS_WITHIN_S
        while is_there(pid) and monotonic() < deadline:
            sleep(0.005)
        self._recorder.died(pid, -signal.SIGKILL)

    def wait(self, actor: Actor) -> int:
        """Wait for its end; return its exit code."""
        try:
            code = actor.process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            actor.process.kill()
            code = actor.process.wait()
        self._recorder.died(actor.pid, code)
        self.running.remove(actor)
        return code

    def ended(self) -> list[Actor]:
        """Return those that have ended without being told to."""
        return [actor for actor in self.running if actor.process.poll() is not None]

    def close(self) -> None:
        """Kill what is left."""
        for actor in list(self.running):
            actor.process.kill()
            self.wait(actor)
        self._guard.communicate()


def is_there(pid: int) -> bool:
    """Say whether there is a process of this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
