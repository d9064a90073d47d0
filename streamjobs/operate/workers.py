"""Workers as they tell of themselves: look at them, order them to be quiet or to stop, and forget dead ones.

No keys are searched: the names stand in the queues that the workers serve. The cost is a request for each
queue and one for each worker.
"""

from collections.abc import Callable, Sequence
from secrets import token_hex
from time import monotonic

import msgspec

from streamjobs.client.talk import Leniently, Pause, Talk
from streamjobs.core.errors import InvalidOption, NotFound
from streamjobs.operate.queues import several, there_are
from streamjobs.operate.replies import counted, must, or_else
from streamjobs.operate.stats import LIVE_MS
from streamjobs.protocol import leases, upkeep, workers
from streamjobs.protocol.keys import PARKED, RELEASED, QueueKeys
from streamjobs.protocol.workers import STOP, Note

WITHIN_S = 12.0
"""How long it is waited until an order is taken: workers hear theirs every 5 s."""
EVERY_S = 0.25
SILENT_MS = 60_000
"""A consumer that no queue knows as a worker, and that has asked for nothing for so long, is gone."""
GONE = "gone"


class WorkerStatus(msgspec.Struct, frozen=True):
    """One worker, as of a moment."""

    name: str
    seen_ms: int
    """When it was last seen, by the server's clock."""
    live: bool
    queues: tuple[str, ...] = ()
    """Those that it has shown itself to."""
    note: Note = Note()
    """What it has told last; empty for one that tells nothing, such as an older version."""
    told: bool = True
    """Whether it tells anything."""
    order: str = ""
    """The word of an order that it has not taken yet; "" for none."""

    @property
    def state(self) -> str:
        """`running`, `quiet`, `stopping`, or `gone`."""
        return (self.note.state or "running") if self.live else GONE


class Workers(msgspec.Struct, frozen=True):
    """The workers of some queues."""

    at_ms: int
    """The server's time."""
    workers: list[WorkerStatus]


def look(namespace: str, queues: Sequence[str] = ()) -> Talk[Workers]:
    """Read the workers of some queues, by default of all; live ones first, then by name. Dead ones are known for
    10 minutes.

    Raises:
        NotFound: a queue that was named is not there.
    """
    names = yield from several(namespace, queues)
    asks = [upkeep.workers(QueueKeys(namespace, one)) for one in names]
    now_ms, *replies = yield Leniently([upkeep.server_time(), *asks])
    now_ms, hashes = must(now_ms), [counted(reply) for reply in replies]
    seen: dict[str, int] = {}
    serves: dict[str, list[str]] = {}
    for queue, found in zip(names, hashes, strict=True):
        for worker, (at_ms, _) in found.items():
            seen[worker] = max(at_ms, seen.get(worker, 0))
            serves.setdefault(worker, []).append(queue)
    told = yield [workers.told(namespace, one) for one in seen]
    statuses = [
        _status(one, at_ms, serves[one], reply, now_ms) for (one, at_ms), reply in zip(seen.items(), told, strict=True)
    ]
    return Workers(now_ms, sorted(statuses, key=lambda one: (not one.live, one.name)))


def _status(name: str, seen_ms: int, queues: Sequence[str], told: workers.Told, now_ms: int) -> WorkerStatus:
    note = told.note or Note()
    # One that is stopping shows itself to no queue any more.
    seen_ms = max(seen_ms, note.at_ms)
    word, _, token = told.order.partition(" ")
    return WorkerStatus(
        name,
        seen_ms,
        now_ms - seen_ms <= LIVE_MS,
        tuple(queues),
        note,
        told.note is not None,
        word if token != note.order else "",
    )


def started_ms(namespace: str, worker: str, job_id: str) -> Talk[int]:
    """Read when a worker began a job that it runs, by the server's clock; 0 where it has not told."""
    [told] = yield [workers.told(namespace, worker)]
    jobs = told.note.jobs if told.note else ()
    return next((one.started_ms for one in jobs if one.id == job_id), 0)


def find(found: Sequence[WorkerStatus], name: str) -> WorkerStatus:
    """Return a worker by its name, or by a part of it that no other has.

    Raises:
        NotFound: there is none.
        InvalidOption: there are several.
    """
    if exact := next((one for one in found if one.name == name), None):
        return exact
    fits = [one for one in found if name in one.name]
    if not fits:
        raise NotFound(f"worker {name:.80}: there is none{there_are([one.name for one in found])}")
    if len(fits) > 1:
        raise InvalidOption(f"worker {name:.80} could be {' or '.join(one.name for one in fits[:3])}: write more of it")
    return fits[0]


class Taken(msgspec.Struct, frozen=True):
    """What became of an order."""

    name: str
    taken: bool
    """Whether the worker has taken it, or is gone and so needs none; else it may still."""
    note: Note | None = None
    """What it has told since; None for one that has ended."""


def order(
    namespace: str,
    names: Sequence[str],
    word: str,
    *,
    within_s: float | None = None,
    tell: Callable[[Taken], None] = lambda taken: None,
) -> Talk[list[Taken]]:
    """Order workers to be quiet, to run again, or to stop, and wait until each has taken that.

    Args:
        namespace: where they are.
        names: their full names.
        word: `quiet`, `run` or `stop`.
        within_s: how long it is waited; default 12 s.
        tell: called with each worker as soon as it has taken the order.

    Returns:
        Those that have taken it, in that order, then those that have not.
    """
    token = token_hex(4)
    known = yield [workers.order(namespace, one, word, token) for one in names]
    done: list[Taken] = []
    left: list[str] = []
    for name, there in zip(names, known, strict=True):
        if there:
            left.append(name)
        else:
            # It tells nothing, and hears nothing; one that has ended needs no order to stop.
            done.append(Taken(name, False))
    taken: list[Taken] = []
    until = monotonic() + (WITHIN_S if within_s is None else within_s)
    while left:
        replies: list[workers.Told] = yield [workers.told(namespace, one) for one in left]
        for name, reply in zip(left, replies, strict=True):
            if answer := _answer(name, reply, word, token):
                taken.append(answer)
                tell(answer)
        left = [one for one in left if one not in {answer.name for answer in taken}]
        if monotonic() >= until:
            break
        if left:
            yield Pause(EVERY_S)
    return [*taken, *done, *(Taken(one, False) for one in left)]


def _answer(name: str, told: workers.Told, word: str, token: str) -> Taken | None:
    """Return that an order was taken; None while it is not."""
    if told.note is None:
        # It has ended meanwhile.
        return Taken(name, word == STOP)
    return Taken(name, True, told.note) if told.note.order == token else None


class Pruned(msgspec.Struct, frozen=True):
    """What dead workers left behind in one queue."""

    queue: str
    forgotten: int
    """Or, in a dry run, how many could be."""
    holding: int
    """Dead ones that hold jobs still: those go over to others after a lease, and the names with them."""


def prune(namespace: str, queues: Sequence[str] = (), *, dry_run: bool = False) -> Talk[list[Pruned]]:
    """Forget the workers that are gone, as workers themselves do after 10 minutes; never one that holds a job.

    Raises:
        NotFound: a queue that was named is not there.
    """
    names = yield from several(namespace, queues)
    known = yield from look(namespace, names)
    asks = [upkeep.consumers(QueueKeys(namespace, one)) for one in names]
    consumers = yield Leniently(asks)
    pruned = []
    for name, reply in zip(names, consumers, strict=True):
        dead, holding = _dead(name, known, or_else(reply, {}))
        forgotten = len(dead)
        if not dry_run:
            keys = QueueKeys(namespace, name)
            # Where the group is lost, they are forgotten once a worker has made it anew.
            counts = yield Leniently(leases.retire_all(keys, dead))
            forgotten = sum(or_else(count, 0) for count in counts)
        pruned.append(Pruned(name, forgotten, holding))
    if not dry_run:
        yield [workers.forget(namespace, one.name) for one in known.workers if not one.live]
    return pruned


def _dead(queue: str, known: Workers, held: dict[str, tuple[int, int]]) -> tuple[list[str], int]:
    """Return the workers of a queue that are gone and hold nothing there, and how many hold something."""
    gone = {one.name for one in known.workers if not one.live and queue in one.queues}
    strangers = held.keys() - {one.name for one in known.workers} - {RELEASED, PARKED}
    gone |= {name for name in strangers if held[name][0] > SILENT_MS}
    empty = sorted(name for name in gone if held.get(name, (0, 0))[1] == 0)
    return empty, len(gone) - len(empty)
