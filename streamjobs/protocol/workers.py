"""What a worker tells of itself, and what it is ordered."""

from typing import Any

import msgspec

from streamjobs.protocol.calls import Call, Command, Word
from streamjobs.protocol.keys import worker

KEEP_MS = 600_000
"""A worker that has gone without a farewell is remembered for so long, with what it has told."""
MOST_JOBS = 20
MOST_QUEUES = 50
RUN, QUIET, STOP = "run", "quiet", "stop"
"""The words of orders."""


class Running(msgspec.Struct, frozen=True):
    """One job that runs."""

    id: str
    kind: str
    started_ms: int
    """By the server's clock."""


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """A worker, as it tells of itself; what another version does not tell is empty. Of jobs only ids and kinds."""

    host: str = ""
    pid: int = 0
    supervisor: int = 0
    """The process id of its supervisor; 0 for none."""
    version: str = ""
    started_ms: int = 0
    at_ms: int = 0
    """When it told this. Both by the server's clock."""
    state: str = ""
    """`running`, `quiet` (it starts nothing), or `stopping`."""
    order: str = ""
    """The last order that it has taken."""
    queues: tuple[str, ...] = ()
    """Which it serves, the first 50."""
    serves: int = 0
    """How many."""
    slots: int = 0
    running: int = 0
    claimed: int = 0
    """Jobs that it has claimed and not started, or ended and not settled."""
    stuck: int = 0
    """Handlers that were abandoned and have not ended."""
    jobs: tuple[Running, ...] = ()
    """Those that run, the 20 that began first."""
    done: int = 0
    failed: int = 0
    """Both since it started."""
    rss_bytes: int = 0
    """0 where the system does not tell."""
    lag_ms: int = 0
    """The longest that its event loop was late, in the last minute at most."""


class Told(msgspec.Struct, frozen=True):
    """What is known of a worker, and the last order that it was given."""

    note: Note | None = None
    order: str = ""


_note = msgspec.json.Decoder(Note)


def report(namespace: str, consumer: str, note: Note) -> Call[str]:
    """Tell of a worker; the reply is the last order that it was given, "" for none."""
    words: list[Word] = [msgspec.json.encode(note), KEEP_MS]
    return Call("report", [worker(namespace, consumer)], words, lambda raw: str(raw.decode()))


def order(namespace: str, consumer: str, word: str, token: str) -> Call[bool]:
    """Order a worker to do something; False where there is none of that name. `token` tells orders apart."""
    return Call("order", [worker(namespace, consumer)], [f"{word} {token}", KEEP_MS], bool)


def told(namespace: str, consumer: str) -> Command[Told]:
    """Read what a worker has told."""
    return Command(["HMGET", worker(namespace, consumer), "note", "order"], _told)


def _told(raw: list[Any]) -> Told:
    try:
        note = _note.decode(raw[0]) if raw[0] else None
    except ValueError:
        # Not one of ours: the worker is there all the same.
        note = None
    return Told(note, (raw[1] or b"").decode("utf-8", "replace"))


def forget(namespace: str, consumer: str) -> Command[int]:
    """Forget what a worker has told."""
    return Command(["UNLINK", worker(namespace, consumer)], int)
