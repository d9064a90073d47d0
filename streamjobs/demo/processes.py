"""The processes that the demo starts: logs in its folder, and none of them outlives it."""

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType

STOP_S = 15.0
VERDICT = 1
"""The exit code by which `stats` says that something is critical: on a busy machine it may be, for a moment."""


class DemoFailed(Exception):
    """The demo cannot go on; the message says why and where to look."""


class Processes:
    """Starts children with one environment; leaving the block stops those that still run."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = {**os.environ, **environment}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "Processes":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._end_all()
        finally:
            # A second Ctrl-C lands here.
            for process in self._running.values():
                process.kill()
                process.wait()

    def _end_all(self) -> None:
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()

    def start(self, name: str, *arguments: str) -> int:
        """Start `python ARGUMENTS` with its output in `name`.log; return its process id."""
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C goes to the demo alone, which then stops them in order.
                process_group=0,
            )
        self._running[name] = process
        return process.pid

    def ended(self) -> dict[str, int]:
        """Return the exit codes of those that have ended, by name; a negative one is a signal."""
        codes = {name: process.poll() for name, process in self._running.items()}
        return {name: code for name, code in codes.items() if code is not None}

    def pids(self, prefix: str) -> list[int]:
        """Return the ids of those that still run and whose name begins with `prefix`."""
        return [p.pid for name, p in self._running.items() if name.startswith(prefix) and p.poll() is None]

    def stop(self, prefix: str) -> dict[str, int]:
        """Send SIGTERM to those whose name begins with `prefix`, wait for them, return the exit codes.

        Raises:
            DemoFailed: one does not end within 15 s.
        """
        chosen = {name: process for name, process in self._running.items() if name.startswith(prefix)}
        for process in chosen.values():
            process.terminate()
        for name, process in chosen.items():
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                late = f"{name} did not stop within {STOP_S:.0f} s of SIGTERM"
                raise DemoFailed(late + self.tail(name)) from None
        return {name: process.returncode for name, process in chosen.items()}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `python ARGUMENTS` to its end and return its exit code and what it printed.

        Raises:
            DemoFailed: it takes longer than 60 s.
        """
        try:
            return subprocess.run(
                [sys.executable, *arguments],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                process_group=0,
            )
        except subprocess.TimeoutExpired:
            raise DemoFailed(f"{' '.join(arguments)} takes longer than 60 s") from None

    def ask(self, *arguments: str) -> str:
        """Run `streamjobs ARGUMENTS` to its end and return its standard output.

        Raises:
            DemoFailed: it exits with something other than 0 (or a verdict, of `stats`), or takes longer than 60 s.
        """
        done = self.run("-m", "streamjobs", *arguments)
        if done.returncode not in (0, *([VERDICT] if arguments[0] == "stats" else [])):
            shown = f"{done.stdout}{done.stderr}".rstrip()
            raise DemoFailed(f"streamjobs {' '.join(arguments)}: exit {done.returncode}\n{shown}")
        return done.stdout

    def tail(self, name: str) -> str:
        """Return the last lines of a child's log, to end an error message with."""
        lines = (self._folder / f"{name}.log").read_text("utf-8", "replace").splitlines()[-5:]
        return "".join(f"\n    {line}" for line in lines)
