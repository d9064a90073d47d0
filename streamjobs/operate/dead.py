"""Dead jobs: select them, group them, put them back, delete them.

They are read page by page, newest first, so neither memory nor a single command grows with their
number. Replay and purge act on what was read and no more: a job that dies meanwhile is not touched,
and one that somebody else has replayed or purged is counted as gone.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from streamjobs.client.sync import SyncExecutor
from streamjobs.core import codec
from streamjobs.core.errors import Refused
from streamjobs.core.failpoints import failpoint
from streamjobs.core.job import FRESH
from streamjobs.core.names import split_job_id
from streamjobs.core.states import State
from streamjobs.operate import jobs
from streamjobs.operate.jobs import JobStatus
from streamjobs.protocol import upkeep, views
from streamjobs.protocol.keys import QueueKeys

PAGE = 200
"""Dead jobs in one reply; their arguments can be 256 KiB each."""
MOST = 500
MOST_BYTES = 1024 * 1024


class Selection(msgspec.Struct, frozen=True):
    """Which dead jobs are meant; empty fields select all."""

    kinds: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    error: str = ""
    """A part of the last error's type or text."""
    since_ms: int = 0
    until_ms: int = 0
    """Both are instants of the server's clock, and included; what counts is when the dead row was written."""

    def other(self, job: JobStatus) -> str:
        """Return in what the job differs from those selected; "" when it is one of them."""
        if self.kinds and job.kind not in self.kinds:
            return "other kind"
        if self.reasons and job.reason not in self.reasons:
            return "other reason"
        if self.error and self.error not in job.error:
            return "other error"
        at_ms = int(job.dead_entry.partition("-")[0])
        if at_ms < self.since_ms or (self.until_ms and at_ms > self.until_ms):
            return "other time"
        return ""


class Dead:
    """The dead jobs of some queues that a selection means."""

    def __init__(self, executor: SyncExecutor, queues: Iterable[QueueKeys], selection: Selection) -> None:
        self._executor = executor
        self._queues = list(queues)
        self._selection = selection
        self.skipped: Counter[str] = Counter()
        """What the last `scan` passed over, by why."""

    def scan(self, limit: int = 0) -> Iterator[JobStatus]:
        """Yield the selected jobs, the newest of all queues first; at most `limit` if it is not 0."""
        self.skipped.clear()
        everything = [self._pages(keys) for keys in self._queues]
        found = 0
        for job in heapq.merge(*everything, key=lambda job: -job.died_ms):
            if other := self._selection.other(job):
                self.skipped[other] += 1
                continue
            yield job
            found += 1
            if found == limit:
                return

    def _pages(self, keys: QueueKeys) -> Iterator[JobStatus]:
        newest = str(self._selection.until_ms) if self._selection.until_ms else "+"
        oldest = str(self._selection.since_ms) if self._selection.since_ms else "-"
        while True:
            rows = self._executor.run(views.dead_rows(keys, newest, oldest, PAGE))
            for entry, fields in rows:
                yield _status(keys, entry, fields)
            if len(rows) < PAGE:
                return
            newest = f"({rows[-1][0]}"

    def find(self, ids: Sequence[str], namespace: str) -> Iterator[JobStatus]:
        """Yield the selected ones of these jobs.

        Raises:
            NotFound: there is no job of that id.
            Refused: it is not dead.
        """
        self.skipped.clear()
        for job_id in ids:
            queue, partition, local = split_job_id(job_id)
            status = self._executor.run(jobs.lookup(QueueKeys(namespace, queue, partition), local))
            if status.state is not State.DEAD or not status.dead_entry:
                raise Refused(f"job {job_id} is not dead but {status.state}; nothing was changed")
            if other := self._selection.other(status):
                self.skipped[other] += 1
            else:
                yield status


def _status(keys: QueueKeys, entry: str, fields: dict[str, bytes]) -> JobStatus:
    """Return a row of the dead stream; a foreign one, without an id, stands under its entry."""
    local = fields.get("id", b"").decode("utf-8", "replace") or entry
    died = entry.partition("-")[0].encode()
    status = JobStatus(
        keys.job_id(local),
        keys.queue,
        State.DEAD,
        kind=fields.get("kind", b"").decode("utf-8", "replace"),
        body=fields.get("body", b""),
        meta=jobs.read_meta(fields.get("meta", b"")),
    )
    return jobs.dead_status(status, {"died_at": died, **fields, "entry": entry.encode()})


class Group(msgspec.Struct):
    """Dead jobs that died alike."""

    queue: str
    kind: str
    reason: str
    error_type: str
    error_class: str
    count: int = 0
    first_ms: int = 0
    last_ms: int = 0


def groups(found: Iterable[JobStatus]) -> list[Group]:
    """Group dead jobs by queue, kind, reason and the type and class of the last error; largest first."""
    table: dict[tuple[str, ...], Group] = {}
    for job in found:
        key = (job.queue, job.kind, job.reason, *error_of(job))
        group = table.get(key)
        if group is None:
            group = table[key] = Group(*key, first_ms=job.died_ms)
        group.count += 1
        group.first_ms = min(group.first_ms, job.died_ms)
        group.last_ms = max(group.last_ms, job.died_ms)
    return sorted(table.values(), key=lambda group: -group.count)


def error_of(job: JobStatus) -> tuple[str, str]:
    """Return the type and the class of a job's last error; "" for what is not known."""
    head = job.error.partition(":")[0]
    error_type = head if head.isidentifier() else ""
    last = job.history[-1] if job.history else None
    return error_type, last.error_class if last is not None else ""


class Replayed(msgspec.Struct):
    """What came of a replay or a purge."""

    done: int = 0
    gone: int = 0
    """Replayed or purged by somebody else meanwhile."""
    conflicts: dict[str, str] = {}
    """Jobs left dead, each with the job that holds its dedupe key."""

    def add(self, part: "Replayed") -> None:
        """Add what came of one more batch."""
        self.done += part.done
        self.gone += part.gone
        self.conflicts = self.conflicts | part.conflicts


def replay(executor: SyncExecutor, namespace: str, found: Iterable[JobStatus]) -> Iterator[Replayed]:
    """Put dead jobs back, in bounded batches; yield what came of each.

    A job keeps its id and its history, begins with attempt 1, and is one generation older.
    """
    for keys, batch in _batches(namespace, found):
        failpoint("operate.before_replay")
        words = executor.run(upkeep.replay(keys, [_replay(job) for job in batch]))
        failpoint("operate.after_replay")
        done = Replayed()
        for job, word in zip(batch, words, strict=True):
            if word == "OK":
                done.done += 1
            elif word == "GONE":
                done.gone += 1
            else:
                done.conflicts[job.id] = keys.job_id(word)
        yield done


def _replay(job: JobStatus) -> upkeep.Replay:
    local = split_job_id(job.id)[2]
    meta = msgspec.structs.replace(
        FRESH,
        id=local,
        generation=job.meta.generation + 1,
        dedupe_key=job.meta.dedupe_key,
        dedupe_mode=job.meta.dedupe_mode,
        dedupe_window_ms=job.meta.dedupe_window_ms,
        result_ttl_ms=job.meta.result_ttl_ms,
        traceparent=job.meta.traceparent,
        headers=job.meta.headers,
        history=job.history,
    )
    return upkeep.Replay(
        job.dead_entry,
        local,
        codec.encode_meta(meta),
        meta.dedupe_key,
        window_ms=meta.dedupe_window_ms,
        newer=job.newer if meta.latest else None,
    )


def purge(executor: SyncExecutor, namespace: str, found: Iterable[JobStatus]) -> Iterator[Replayed]:
    """Delete dead jobs for good, in bounded batches; yield what came of each."""
    for keys, batch in _batches(namespace, found):
        items = [upkeep.Purge(job.dead_entry, split_job_id(job.id)[2], job.meta.dedupe_key) for job in batch]
        words = executor.run(upkeep.purge(keys, items))
        yield Replayed(done=words.count("OK"), gone=words.count("GONE"))


def _batches(namespace: str, found: Iterable[JobStatus]) -> Iterator[tuple[QueueKeys, list[JobStatus]]]:
    """Cut jobs into batches of one queue, at most 500 jobs and 1 MiB each."""
    piles: dict[str, list[JobStatus]] = {}
    sizes: Counter[str] = Counter()
    for job in found:
        tag = job.id.partition(":")[0]
        pile = piles.setdefault(tag, [])
        if pile and (len(pile) >= MOST or sizes[tag] + len(job.body) > MOST_BYTES):
            yield _keys(namespace, tag), pile
            pile = piles[tag] = []
            sizes[tag] = 0
        pile.append(job)
        sizes[tag] += len(job.body)
    for tag, pile in piles.items():
        yield _keys(namespace, tag), pile


def _keys(namespace: str, tag: str) -> QueueKeys:
    queue, _, partition = tag.partition("/")
    return QueueKeys(namespace, queue, int(partition or 0))


def examine(executor: SyncExecutor, namespace: str, job_id: str) -> tuple[JobStatus, str]:
    """Return a dead job, and the job that holds its dedupe key by now; "" for none.

    Raises:
        NotFound: there is no such job.
        Refused: it is not dead.
    """
    queue, partition, _ = split_job_id(job_id)
    keys = QueueKeys(namespace, queue, partition)
    [job] = Dead(executor, [keys], Selection()).find([job_id], namespace)
    if not job.meta.dedupe_key:
        return job, ""
    local = executor.run(views.holder(keys, job.meta.dedupe_key))
    holder = keys.job_id(local) if local else ""
    return job, "" if holder == job.id else holder
