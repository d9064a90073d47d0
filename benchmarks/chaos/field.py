"""Where a soak takes place: a server, the ways to it, and the workers and producers that use them."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, NamedTuple

from streamjobs.client import Connections
from streamjobs.protocol import crons
from streamjobs.protocol.calls import Command
from streamjobs.protocol.keys import GROUP, PARKED, RELEASED, QueueKeys
from tests.faults.recorder import Recorder
from tests.servers import Server

from .jobs import CRON, FOLDER, GRACE_S, LEASE_S, QUEUE, SWEEP_S
from .plan import Way
from .processes import Actor, Processes, is_there
from .ways import Ways

JOBS_PER_S = 250.0
"""Added in all; what a fault holds up is made up for."""
CONCURRENCY = 15
READY_WITHIN_S = 30.0
DRAINED_WITHIN_S = 60.0
FIRST_NUMBERS = 10_000_000
"""Each producer has so many numbers of jobs to itself."""
BAD = (" ERROR ", " ended with exit code ")

_WORKER = (
    *("streamjobs", "worker", "-A", f"{__package__}.worker:app", "-Q", QUEUE, "-c", str(CONCURRENCY)),
    *("--lease", f"{LEASE_S}s", "--sweep", f"{SWEEP_S}s", "--grace", f"{GRACE_S}s"),
)


class Post(NamedTuple):
    """What is to be there at all times; when its process is gone, another one takes it."""

    role: str
    way: Way
    words: tuple[str, ...]


POSTS = (
    Post("worker", "left", (*_WORKER, "-w", "1")),
    Post("worker", "left", (*_WORKER, "-w", "1")),
    Post("supervisor", "right", (*_WORKER, "-w", "2")),
    Post("producer", "producers", (f"{__package__}.producer", "plain")),
    Post("producer", "producers", (f"{__package__}.producer", "async")),
)
WORKERS = 4
"""Processes that run jobs; the supervisor has two, and sometimes one for suspects."""


class Field:
    """All of it, until `close`. `ending` is set when it should come to its end early."""

    def __init__(self, url: str, namespace: str, folder: Path, seed: int, server: Server | None = None) -> None:
        """`server`: the one at `url`, if it may be restarted."""
        self.server = server
        self.ending = Event()
        self.problems: list[str] = []
        """What processes did that no checker sees."""
        self.keys = QueueKeys(namespace, QUEUE)
        self.recorder = Recorder(folder, "harness")
        self._folder, self._seed = folder, seed
        self._producers = 0
        self._stack = ExitStack()
        self.connections = Connections(url)
        self._stack.callback(self.connections.close)
        self.ways = self._stack.enter_context(Ways(url))
        environment = {FOLDER: str(folder), "STREAMJOBS_NAMESPACE": namespace}
        self.processes = Processes(folder, self.recorder, environment)
        self._stack.callback(self.processes.close)
        self.posts: dict[Actor, Post] = {}

    def close(self) -> None:
        """End whatever is left."""
        self._stack.close()

    def start(self) -> None:
        """Start everything, and wait until workers serve and jobs come in.

        Raises:
            RuntimeError: they do not.
        """
        for post in POSTS:
            self.man(post)
        serving = ["HLEN", self.keys.workers]
        self.until(lambda: self.ask(*serving) >= WORKERS and self.ask("HGET", self.keys.totals, "done"), READY_WITHIN_S)

    def man(self, post: Post) -> None:
        """Start a process for a post."""
        words = post.words
        if post.role == "producer":
            self._producers += 1
            share = sum(one.role == "producer" for one in POSTS)
            words += (str(self._seed), str(self._producers * FIRST_NUMBERS), str(JOBS_PER_S / share))
        self.posts[self.processes.start(post.role, self.ways.url(post.way), *words)] = post

    def replace(self, actor: Actor) -> None:
        """Put another process in the place of one that is gone."""
        self.man(self.posts.pop(actor))

    def on_way(self, way: Way) -> set[int]:
        """Return the processes that reach the server on a way; a supervisor's are those that the server knows."""
        own = {actor.pid: self.posts[actor] for actor in self.processes.running if actor in self.posts}
        if way != "right":
            return {pid for pid, post in own.items() if post.way == way}
        return {pid for _, pid in self.consumers() if pid not in own}

    def consumers(self, *, busy: bool = False) -> Iterator[tuple[str, int]]:
        """Yield the workers that are there, each with its process; `busy`: only those that hold jobs."""
        for row in self.ask("XINFO", "CONSUMERS", self.keys.stream, GROUP):
            about = dict(zip(row[::2], row[1::2], strict=True))
            name = about[b"name"].decode()
            if name in (RELEASED, PARKED) or (busy and not about[b"pending"]):
                continue
            pid = int(name.split("-")[-2])
            if is_there(pid):
                yield name, pid

    def held(self, consumer: str) -> frozenset[str]:
        """Return the entries that a worker holds, with the queue in front."""
        rows = self.ask("XPENDING", self.keys.stream, GROUP, "-", "+", 10_000, consumer)
        return frozenset(self.keys.job_id(row[0].decode()) for row in rows)

    def drain(self) -> None:
        """Let no more jobs come in, wait until none is left, and end the workers; what is left then is stuck."""
        self._end("producer")
        keys = self.keys
        # Or a slot would come behind the last worker.
        self.connections.sync().run(crons.pause(keys, CRON, 0))
        counts: list[Command[Any]] = [Command(["XLEN", keys.stream], int)]
        counts += [Command(["ZCARD", key], int) for key in (keys.scheduled, keys.retries)]
        # At once: a job that moves meanwhile would be in none of the places.
        whole = self.connections.sync()
        try:
            self.until(lambda: not any(whole.run_all(counts)), DRAINED_WITHIN_S)
        except RuntimeError:
            self.problems.append(f"not drained within {DRAINED_WITHIN_S:g} s")
        self._end("worker", "supervisor")
        self.problems += [f"{log.name} has: {line}" for log in self._folder.glob("*.log") for line in _bad_lines(log)]

    def _end(self, *roles: str) -> None:
        actors = [actor for actor in self.processes.running if actor.role in roles]
        for actor in actors:
            self.processes.signal(actor.pid, signal.SIGTERM)
        for actor in actors:
            self.ended(actor)

    def ended(self, actor: Actor) -> None:
        """Wait for the end of a process that was told to stop; it is a good one, or a problem."""
        code = self.processes.wait(actor)
        # One that had not come as far as to work has nothing to give back.
        early = code == -signal.SIGTERM and " serves " not in actor.log.read_text("utf-8", "replace")
        if code and not early:
            self.problems.append(f"{actor} was told to stop, and ended with exit code {code}: {_last(actor)}")

    def look_after(self) -> None:
        """Put others in the place of those that ended without being told to, which is a problem."""
        for actor in self.processes.ended():
            code = self.processes.wait(actor)
            self.problems.append(f"{actor} ended by itself with exit code {code}: {_last(actor)}")
            self.replace(actor)

    def until(self, done: Callable[[], object], within_s: float) -> None:
        """Wait for something that must come.

        Raises:
            RuntimeError: it does not.
        """
        deadline = monotonic() + within_s
        while not done():
            if monotonic() > deadline:
                said = "\n".join(f"{actor}: {_last(actor)}" for actor in self.processes.running)
                raise RuntimeError(f"the soak does not come about within {within_s:g} s\n{said}")
            # Not by `ending`: once that is set it waits for nothing.
            Event().wait(0.05)

    def ask(self, *words: str | int) -> Any:
        """Send one command, past all ways."""
        return self.connections.sync().run(Command(words, lambda reply: reply))


def _bad_lines(log: Path) -> list[str]:
    """Return what no fault of ours explains: errors, and children of a supervisor that ended by themselves."""
    return [line for line in log.read_text("utf-8", "replace").splitlines() if any(bad in line for bad in BAD)]


def _last(actor: Actor) -> str:
    lines = actor.log.read_text("utf-8", "replace").splitlines()
    return lines[-1] if lines else "it said nothing"
