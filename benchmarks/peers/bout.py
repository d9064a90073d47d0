"""One peer at work: how fast it adds jobs, how fast its workers drain them, and how soon a job starts."""

import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from time import perf_counter, sleep

import msgspec

from streamjobs.core.text import plural

from ..lab import Lab
from .catalogue import Config, Peer

WAYS = ("one", "one_awaited", "together", "bulk")
ADD_S = 90.0
FILL_S = 300.0
START_S = 60.0
WARM = 20
"""The first paced jobs, which count for nothing."""
LACKING = "lacking: "
_HERE = Path(__file__).resolve().parent
_KEEPER = '"$@" </dev/null >"$0" 2>&1 & cat >/dev/null; kill -9 0'
"""Runs a command, and kills it and all that it has started when a pipe ends that only we hold open."""


class Failed(Exception):
    """An adapter did not do its work; the message says how it ended."""


class Lacking(Exception):
    """A peer has no such way to work; the message says what it has not."""


class Added(msgspec.Struct, frozen=True):
    """What an adapter prints."""

    jobs: int
    seconds: float
    client_s: float


class Marks:
    """What handlers have written, each worker in a file of its own."""

    def __init__(self, paths: Sequence[Path], size: int) -> None:
        self._paths, self._size = paths, size
        for path in paths:
            path.write_bytes(b"")

    def counts(self) -> list[int]:
        """Return how many jobs each worker has begun."""
        return [path.stat().st_size // self._size for path in self._paths]

    def reached(self, jobs: int, seconds: float) -> float:
        """Wait until so many jobs have begun; return when."""
        deadline = perf_counter() + seconds
        while (found := sum(self.counts())) < jobs:
            if perf_counter() > deadline:
                raise Failed(f"only {found} of {jobs} jobs had run after {seconds:.0f} s")
            sleep(0.0005)
        return perf_counter()

    def all_at_work(self, jobs: int, seconds: float) -> tuple[float, int]:
        """Wait until each worker has begun one of so many jobs; return when, and how many all had begun by then."""
        deadline = self.reached(1, seconds) + seconds
        while not all(counts := self.counts()) and sum(counts) < jobs:
            if perf_counter() > deadline:
                raise Failed(
                    f"{counts.count(0)} of {plural(len(counts), 'worker')} had not begun after {seconds:.0f} s"
                )
            sleep(0.0005)
        if (begun := sum(counts)) >= jobs:
            raise Failed(f"{jobs} jobs had run before {plural(len(counts), 'worker')} could be seen at work")
        return perf_counter(), begun

    def times_ms(self) -> list[float]:
        """Return what the jobs have written, in ms, in the order in which they began."""
        [path] = self._paths
        return [found / 1e6 for (found,) in struct.iter_unpack("<q", path.read_bytes())]


class Bout:
    """One peer in one configuration, on a server that is all its own."""

    def __init__(self, url: str, peer: Peer, name: str, python: Path) -> None:
        self._lab, self._peer, self._python = Lab(url), peer, python
        self._config: Config = peer.configs[name == "fast"]
        self._folder = tempfile.TemporaryDirectory(prefix="sjpeer-")
        self._environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("STREAMJOBS_")},
            "PYTHONPATH": os.pathsep.join(filter(None, [str(_HERE), *([] if peer.packages else sys.path)])),
            "PEER_URL": url,
            "PEER_CONFIG": name,
        }

    def add(self, way: str, jobs: int) -> float:
        """Return how many jobs a second it adds in this way.

        Raises:
            Lacking: it has no such way.
            Failed: it ended with an error, or not in time.
        """
        self._lab.server.flushall()
        found = msgspec.json.decode(self._sent(way, jobs, ADD_S), type=Added)
        return found.jobs / found.seconds

    def drain(self, seconds: float, *, workers: int = 1, plain: bool = False) -> tuple[float, float]:
        """Return jobs a second, once each worker has begun one, and bytes per waiting job.

        `plain`: by a plain function, where the handler could be either.

        Raises:
            Failed: a job is missing, or ran twice, or all had run before each worker could begin one.
        """
        jobs = max(50, int(self._config.drains * seconds * workers))
        self._lab.server.flushall()
        before = self._lab.used_memory()
        self.add_unmeasured(jobs)
        grown = self._lab.used_memory() - before
        with self._working(workers, PEER_PLAIN="1" if plain else "") as marks:
            first, begun = marks.all_at_work(jobs, START_S)
            last = marks.reached(jobs, START_S + 10 * seconds)
        if (ran := sum(marks.counts())) != jobs:
            raise Failed(f"{ran} jobs ran, {jobs} were added")
        return (jobs - begun) / (last - first), grown / jobs

    def latencies(self, seconds: float) -> list[float]:
        """Return the ms from the call that adds a job to the start of its handler, of jobs at 100 a second.

        Raises:
            Failed: a job is missing, or ran twice.
        """
        jobs = WARM + int(100 * seconds)
        self._lab.server.flushall()
        with self._working(1, PEER_TIMED="1") as marks:
            self.add_unmeasured(1)
            marks.reached(1, START_S)
            self._sent("paced", jobs, ADD_S + seconds)
            marks.reached(1 + jobs, START_S + 10 * seconds)
        if (ran := sum(marks.counts())) != 1 + jobs:
            raise Failed(f"{ran} jobs ran, {1 + jobs} were added")
        return marks.times_ms()[1 + WARM :]

    def add_unmeasured(self, jobs: int) -> None:
        """Add jobs in the best way that the peer has, beside those that are there."""
        self._sent("fill", jobs, FILL_S)

    def close(self) -> None:
        """Leave nothing."""
        self._lab.server.flushall()
        self._lab.close()
        self._folder.cleanup()

    def _sent(self, way: str, jobs: int, seconds: float) -> str:
        """Have the adapter add jobs; return the last line that it prints."""
        words = [str(self._python), "-m", self._peer.module, way, str(jobs)]
        try:
            done = subprocess.run(
                words, cwd=_HERE, env=self._environment, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{way} did not end within {seconds:.0f} s") from error
        said = " ".join(done.stderr.splitlines()[-1:])
        if said.startswith(LACKING):
            raise Lacking(said.removeprefix(LACKING))
        if done.returncode:
            raise Failed(f"{way} ended with exit code {done.returncode}: {said}")
        return " ".join(done.stdout.splitlines()[-1:])

    @contextmanager
    def _working(self, workers: int, **environment: str) -> Iterator[Marks]:
        """Give what so many workers write, while they work."""
        folder = Path(self._folder.name)
        paths = [folder / f"marks{number}" for number in range(workers)]
        logs = [folder / f"log{number}" for number in range(workers)]
        # A time is a whole number of eight bytes.
        marks = Marks(paths, 8 if environment.get("PEER_TIMED") else 1)
        with ExitStack() as stack:
            for path, log in zip(paths, logs, strict=True):
                stack.enter_context(self._worker(log, {**environment, "PEER_MARKS": str(path)}))
            try:
                yield marks
            except Failed as error:
                said = [line for log in logs for line in log.read_text("utf-8", "replace").splitlines()[-1:]]
                raise Failed(f"{error}: {' '.join(said)}") from error

    @contextmanager
    def _worker(self, log: Path, environment: dict[str, str]) -> Iterator[None]:
        log.touch()
        with subprocess.Popen(
            ["sh", "-c", _KEEPER, str(log), str(self._python), "-m", self._peer.module, "drain", "0"],
            cwd=_HERE,
            env={**self._environment, **environment},
            stdin=subprocess.PIPE,
            start_new_session=True,
        ) as keeper:
            try:
                yield
            finally:
                keeper.communicate()


@contextmanager
def bout(url: str, peer: Peer, name: str, python: Path) -> Iterator[Bout]:
    """Give a bout, and leave nothing of it."""
    with closing(Bout(url, peer, name, python)) as found:
        yield found
