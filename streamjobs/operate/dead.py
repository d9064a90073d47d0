"""Dead jobs: group them, look at one, delete them.

What is replayed and purged is what was read and no more: a job that dies meanwhile is not touched, and one
that somebody else has replayed or purged is counted as gone. Interrupted, they have done some batches and not the
others; done again, they do the rest.
"""

from collections.abc import Sequence

import msgspec

from streamjobs.client.talk import Talk
from streamjobs.core.likeness import likeness
from streamjobs.core.names import split_job_id
from streamjobs.operate import jobs
from streamjobs.operate.batches import FOREIGN, Done, Tell, batches, keys_of
from streamjobs.operate.jobs import JobStatus
from streamjobs.operate.scan import Named, Source, dead_job
from streamjobs.operate.selection import Selection, error_class
from streamjobs.protocol import letters, views


class Alike(msgspec.Struct):
    """Dead jobs that died alike."""

    queue: str
    kind: str
    reason: str
    error: str
    """Type and text of the last error, its changing parts replaced."""
    error_class: str
    count: int = 0
    first_ms: int = 0
    last_ms: int = 0
    newest: str = ""
    """The id of one of them."""

    @property
    def error_type(self) -> str:
        """The type of the error; "" where it is not known."""
        return type_of(self.error)


def groups(source: Source) -> Talk[list[Alike]]:
    """Group dead jobs by queue, kind, reason and likeness and class of the last error; largest first."""
    table: dict[tuple[str, ...], Alike] = {}
    while rows := (yield from source.rows()):
        # Of hundreds of thousands a whole job each would take twice the time.
        for keys, entry, row in rows:
            error = likeness(jobs.text(row, "error"))
            key = keys.queue, jobs.text(row, "kind"), jobs.text(row, "reason"), error, error_class(row)
            died_ms = jobs.number(row, "died_at") or int(entry.partition("-")[0])
            group = table.get(key)
            if group is None:
                group = table[key] = Alike(*key, first_ms=died_ms, newest=dead_job(keys, entry, row).id)
            group.count += 1
            group.first_ms = min(group.first_ms, died_ms)
            group.last_ms = max(group.last_ms, died_ms)
    return sorted(table.values(), key=lambda group: -group.count)


def type_of(error: str) -> str:
    """Return the type that an error's text begins with; "" for none."""
    head = error.partition(":")[0]
    return head if head.isidentifier() else ""


def purge(namespace: str, source: Source, tell: Tell = lambda whole: None) -> Talk[Done]:
    """Delete dead jobs for good, in bounded batches."""
    whole = Done()
    while page := (yield from source.page()):
        yield from purge_these(namespace, page, whole, tell)
    return whole


def purge_these(namespace: str, found: Sequence[JobStatus], whole: Done, tell: Tell = lambda whole: None) -> Talk[None]:
    """Delete these; what came of them is added to the whole."""
    for keys, batch in batches(namespace, found):
        items = [letters.Purge(job.dead_entry, split_job_id(job.id)[2], job.meta.dedupe_key) for job in batch]
        [words] = yield [letters.purge(keys, items)]
        for job, word in zip(batch, words, strict=True):
            if word == "OK":
                whole.done += 1
            elif promised := letters.promised(word):
                whole.left[job.id] = f"its replay to {promised.queue} was interrupted, and comes to its end by a replay"
            else:
                whole.gone += 1
        tell(whole)


class Examined(msgspec.Struct, frozen=True):
    """A dead job, and whether it can be replayed."""

    job: JobStatus
    holder: str = ""
    """The job that holds its dedupe key by now; "" for none."""

    @property
    def replayable(self) -> bool:
        """Whether a replay would put it back as things stand."""
        return not (self.holder or self.job.foreign)

    @property
    def why(self) -> str:
        """Why it cannot be replayed, or what is to be known of its replay; "" for nothing."""
        if self.job.foreign:
            return FOREIGN
        if self.holder:
            return f"{self.holder} holds its dedupe key"
        if self.job.promise:
            queue = self.job.promise.partition(" ")[0]
            return f"its replay to {queue} was interrupted, and comes to its end by any replay"
        return _NOTES.get(self.job.reason, "")


_NOTES = {
    "crash_limit": "mind that each of its runs ended with its process",
    "undecodable": "mind that no worker could read it as it is: see the error",
    "unknown_kind": "mind that a worker must know its kind by then",
    "expired": "it does not expire again",
}


def examine(namespace: str, job_id: str) -> Talk[Examined]:
    """Look at a dead job.

    Raises:
        NotFound: there is no such job.
        Refused: it is not dead.
    """
    [job] = yield from Named(namespace, [job_id], Selection()).page()
    if not job.meta.dedupe_key:
        return Examined(job)
    keys = keys_of(namespace, job_id.partition(":")[0])
    [local] = yield [views.holder(keys, job.meta.dedupe_key)]
    holder = keys.job_id(local) if local else ""
    return Examined(job, "" if holder == job.id else holder)
