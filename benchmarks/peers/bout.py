"""One peer at work: how fast it adds jobs, and how fast one worker of it drains them."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import perf_counter, sleep

import msgspec

from ..lab import Lab
from .catalogue import Config, Peer

WAYS = ("one", "one_awaited", "together", "bulk")
ADD_S = 90.0
START_S = 60.0
_HERE = Path(__file__).resolve().parent
_KEEPER = '"$@" </dev/null >"$0" 2>&1 & cat >/dev/null; kill -9 0'
"""Runs a command, and kills it and all that it has started when a pipe ends that only we hold open."""


class Failed(Exception):
    """An adapter did not do its work; the message says how it ended."""


class Added(msgspec.Struct, frozen=True):
    """What an adapter prints."""

    jobs: int
    seconds: float
    client_s: float


class Bout:
    """One peer in one configuration, on a server that is all its own."""

    def __init__(self, url: str, peer: Peer, name: str, python: Path) -> None:
        self._lab, self._peer, self._python = Lab(url), peer, python
        self._config: Config = peer.configs[name == "fast"]
        self._folder = tempfile.TemporaryDirectory(prefix="sjpeer-")
        self._marks = Path(self._folder.name) / "marks"
        self._environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("STREAMJOBS_")},
            "PYTHONPATH": os.pathsep.join(filter(None, [str(_HERE), *([] if peer.packages else sys.path)])),
            "PEER_URL": url,
            "PEER_CONFIG": name,
            "PEER_MARKS": str(self._marks),
        }

    def add(self, way: str, jobs: int) -> float | None:
        """Return how many jobs a second it adds in this way; None if it has no such way.

        Raises:
            Failed: it ended with an error, or not in time.
        """
        self._lab.server.flushall()
        words = [str(self._python), "-m", self._peer.module, way, str(jobs)]
        try:
            done = subprocess.run(
                words, cwd=_HERE, env=self._environment, capture_output=True, text=True, timeout=ADD_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{way} did not end within {ADD_S:.0f} s") from error
        said = done.stderr.splitlines()[-1:]
        if done.returncode and said == [f"KeyError: '{way}'"]:
            return None
        if done.returncode:
            raise Failed(f"{way} ended with exit code {done.returncode}: {' '.join(said)}")
        found = msgspec.json.decode(done.stdout.splitlines()[-1], type=Added)
        return found.jobs / found.seconds

    def drain(self, seconds: float) -> tuple[float, float]:
        """Return jobs a second from the first that ran to the last, and bytes per waiting job.

        Raises:
            Failed: a job is missing, or ran twice.
        """
        jobs = max(50, int(self._config.drains * seconds))
        self._lab.server.flushall()
        before = self._lab.used_memory()
        self.add_unmeasured(jobs)
        grown = self._lab.used_memory() - before
        self._marks.write_bytes(b"")
        with self._working():
            first = self._reached(1, START_S)
            last = self._reached(jobs, START_S + 10 * seconds)
        if (ran := self._marks.stat().st_size) != jobs:
            raise Failed(f"{ran} jobs ran, {jobs} were added")
        return (jobs - 1) / (last - first), grown / jobs

    def add_unmeasured(self, jobs: int) -> None:
        """Add jobs in the best way that the peer has, beside those that are there."""
        words = [str(self._python), "-m", self._peer.module, "fill", str(jobs)]
        done = subprocess.run(words, cwd=_HERE, env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"fill: {' '.join(done.stderr.splitlines()[-1:])}")

    def close(self) -> None:
        """Leave nothing."""
        self._lab.server.flushall()
        self._lab.close()
        self._folder.cleanup()

    @contextmanager
    def _working(self) -> Iterator[None]:
        log = Path(self._folder.name) / "log"
        with subprocess.Popen(
            ["sh", "-c", _KEEPER, str(log), str(self._python), "-m", self._peer.module, "drain", "0"],
            cwd=_HERE,
            env=self._environment,
            stdin=subprocess.PIPE,
            start_new_session=True,
        ) as keeper:
            try:
                yield
            except Failed as error:
                said = log.read_text("utf-8", "replace").splitlines()[-1:]
                raise Failed(f"{error}: {' '.join(said)}") from error
            finally:
                keeper.communicate()

    def _reached(self, jobs: int, seconds: float) -> float:
        deadline = perf_counter() + seconds
        while (found := self._marks.stat().st_size) < jobs:
            if perf_counter() > deadline:
                raise Failed(f"only {found} of {jobs} jobs had run after {seconds:.0f} s")
            sleep(0.0005)
        return perf_counter()


@contextmanager
def bout(url: str, peer: Peer, name: str, python: Path) -> Iterator[Bout]:
    """Give a bout, and leave nothing of it."""
    with closing(Bout(url, peer, name, python)) as found:
        yield found
