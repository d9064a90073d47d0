"""Crons as operators see them: what live workers schedule, where each stands, and how to run or hold one."""

from collections.abc import Sequence
from secrets import token_hex
from typing import Any

import msgspec

from streamjobs.client.talk import Talk
from streamjobs.core.cron import Cron, parse_schedule
from streamjobs.core.errors import InvalidOption, NotFound, UsageError
from streamjobs.core.job import Job
from streamjobs.operate.queues import there_are
from streamjobs.operate.stats import live_ones
from streamjobs.protocol import crons, intake, upkeep, views
from streamjobs.protocol.calls import Call
from streamjobs.protocol.crons import Definition, Row
from streamjobs.protocol.keys import QueueKeys

_NOWHERE = Row(0, 0, 0, 0, 0, "", "")


class CronStatus(msgspec.Struct, frozen=True):
    """One cron of one queue. Workers of different versions may schedule it differently: then there are several."""

    name: str
    keys: QueueKeys
    schedule: str
    """An expression and its zone, or `every <seconds>`."""
    definition: Definition | None
    """None where no worker tells any more."""
    row: Row
    paused: bool
    workers: int
    """How many live ones schedule it; with none it does not run."""

    @property
    def queue(self) -> str:
        return self.keys.queue

    @property
    def cron(self) -> Cron:
        """The cron itself.

        Raises:
            NotFound: nothing is known of it but its name.
            InvalidOption: its time zone is not known on this machine.
        """
        told = self.definition
        if told is None:
            raise NotFound(f"cron {self.name}: no worker of queue {self.queue} schedules it any more")
        job = Job(told.kind, bytes(told.body), self.queue, meta=told.meta)
        catch_up: Any = told.catch_up
        return Cron(self.name, job, parse_schedule(self.schedule), catch_up, told.jitter_ms)

    def next_ms(self, now_ms: int) -> int:
        """Return when it runs next; 0 for not at all, or not known here."""
        try:
            return self.cron.turn(now_ms, now_ms).next_ms if self.workers and not self.paused else 0
        except (NotFound, InvalidOption):
            return 0


def look(namespace: str, now_ms: int, queues: Sequence[str] = (), *, every: bool = False) -> Talk[list[CronStatus]]:
    """Read the crons of some queues, by default of all, sorted by name.

    Those that no live worker schedules were removed from the code, and are left out, unless `every` of
    them is asked for or the queue has no live worker at all.
    """
    if not queues:
        [queues] = yield [views.queue_names(namespace)]
    keys = [QueueKeys(namespace, queue) for queue in queues]
    replies = yield [request for one in keys for request in _requests(one)]
    found: list[CronStatus] = []
    for one, at in zip(keys, range(0, len(replies), 4), strict=True):
        workers, code, rows, paused = replies[at : at + 4]
        live = set(live_ones(workers, now_ms))
        here = _statuses(one, live, code, rows, paused)
        found += [status for status in here if every or status.workers or not live]
    return sorted(found, key=lambda status: (status.name, status.queue))


def _requests(keys: QueueKeys) -> list[Any]:
    return [upkeep.workers(keys), crons.code(keys), crons.rows(keys), crons.paused(keys)]


def _statuses(
    keys: QueueKeys, live: set[str], code: dict[str, list[Definition]], rows: dict[str, Row], paused: set[str]
) -> list[CronStatus]:
    known: list[tuple[Definition, int]] = []
    for worker, definitions in sorted(code.items(), key=lambda item: item[0] in live, reverse=True):
        for one in definitions:
            knows = int(worker in live)
            same = next((at for at, (other, _) in enumerate(known) if other == one), None)
            if same is not None:
                known[same] = one, known[same][1] + knows
            elif knows or all(other.name != one.name for other, _ in known):
                known.append((one, knows))
    found = [
        CronStatus(one.name, keys, one.schedule, one, rows.get(one.name, _NOWHERE), one.name in paused, workers)
        for one, workers in known
    ]
    names = {one.name for one in found}
    return found + [
        CronStatus(name, keys, row.schedule, None, row, name in paused, 0)
        for name, row in rows.items()
        if name not in names
    ]


def find(namespace: str, now_ms: int, name: str, queue: str | None = None) -> Talk[CronStatus]:
    """Find a cron by its name; of several versions, the one that most workers schedule.

    Raises:
        NotFound: there is none.
        UsageError: several queues have one, and none was named.
    """
    found = yield from look(namespace, now_ms, [queue] if queue else (), every=True)
    named = [status for status in found if status.name == name]
    if not named:
        known = sorted({status.name for status in found})
        where = f"queue {queue}" if queue else f"namespace {namespace}"
        raise NotFound(f"cron {name:.80}: there is none in {where}{there_are(known)}")
    if len(queues := {status.queue for status in named}) > 1:
        raise UsageError(f"cron {name:.80}: there is one in each of the queues {', '.join(sorted(queues))}: name one")
    return max(named, key=lambda status: status.workers)


def run_now(status: CronStatus) -> Call[str]:
    """Enqueue the job of a cron, beside its slots; the reply is its id. Its headers name the cron, and no slot.

    Its slots get into a full queue; this is an enqueue like any other.

    Raises:
        NotFound: nothing is known of it but its name.
        QueueFull: (from the reply) its queue holds its maximum.
    """
    job = status.cron.job
    headers = {**(job.meta.headers or {}), "cron": status.name}
    job = msgspec.structs.replace(job, meta=msgspec.structs.replace(job.meta, headers=headers))
    call = intake.enqueue(status.keys, [job], intake.Batch(token_hex(8), 1, token_hex(8)))

    def job_id(raw: Any) -> str:
        accepted = call.decode(raw)
        if accepted.full:
            raise intake.queue_full(status.queue, accepted.full[0])
        return status.keys.job_id(accepted.ids(1)[0])

    return Call(call.script, call.keys, call.args, job_id)
