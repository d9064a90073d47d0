"""Put dead jobs back: as they were, with other arguments, at a rate, or as new jobs, of this or another queue."""

from collections.abc import Callable, Sequence
from time import monotonic

import msgspec

from streamjobs.client.talk import Pause, Talk
from streamjobs.core import codec
from streamjobs.core.errors import UsageError
from streamjobs.core.failpoints import failpoint
from streamjobs.core.job import FRESH, Meta
from streamjobs.core.names import split_job_id
from streamjobs.operate.batches import FOREIGN, Done, Tell, batches, keys_of
from streamjobs.operate.jobs import JobStatus
from streamjobs.operate.queues import known
from streamjobs.operate.scan import Source
from streamjobs.protocol import letters, views
from streamjobs.protocol.intake import MAX_BATCH_JOBS
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.letters import Promised

PACE_S = 0.25
"""At a rate, what comes in this time is put back at once."""


class How(msgspec.Struct, frozen=True):
    """How dead jobs are put back."""

    to: str = ""
    """The queue; "" for each one's own."""
    new_key: bool = False
    """As new jobs, whose downstream calls have another idempotency key."""
    edit: Callable[[JobStatus], bytes | None] | None = None
    """Returns the arguments to begin with, or None for those that a job has; raises UsageError for a job that is
    to be left dead."""
    per_s: float = 0.0
    """At most so many a second; 0 for as fast as can be."""

    def arguments(self, job: JobStatus) -> bytes | None:
        """Return what a job is to begin with, None for what it has.

        Raises:
            UsageError: it is to be left dead.
        """
        if job.foreign:
            raise UsageError(FOREIGN)
        return self.edit(job) if self.edit else None

    @property
    def most(self) -> int:
        """Jobs in one batch; 0 for as many as can be."""
        return max(1, min(MAX_BATCH_JOBS, int(self.per_s * PACE_S))) if self.per_s else 0


AS_IT_WAS = How()


def replay(namespace: str, source: Source, how: How = AS_IT_WAS, tell: Tell = lambda whole: None) -> Talk[Done]:
    """Put dead jobs back, in bounded batches.

    A job keeps its id and its history, begins with attempt 1, and is one generation older. One that goes to
    another queue, or has a new key, has a new id there, and names the old one.

    Raises:
        NotFound: there is no such other queue.
    """
    if how.to:
        yield from known(namespace, how.to)
    work, whole = Replaying(namespace, how, tell), Done()
    while page := (yield from source.page()):
        yield from work.put_back(page, whole)
    return whole


class Replaying:
    """One replay under way."""

    def __init__(self, namespace: str, how: How = AS_IT_WAS, tell: Tell = lambda whole: None) -> None:
        self._namespace = namespace
        self._how = how
        self._tell = tell
        self._began = monotonic()

    def put_back(self, found: Sequence[JobStatus], whole: Done) -> Talk[None]:
        """Put these back; what came of them is added to the whole."""
        for keys, batch in batches(self._namespace, found, self._how.most):
            if self._how.per_s:
                early_s = (whole.done / self._how.per_s) - (monotonic() - self._began)
                if early_s > 0:
                    yield Pause(early_s)
            edited = self._edited(batch, whole)
            if self._how.new_key or self._how.to not in ("", keys.tag):
                yield from self._promise(keys, edited, whole)
            else:
                yield from self._replay(keys, edited, whole)
            self._tell(whole)

    def _edited(self, batch: Sequence[JobStatus], whole: Done) -> "list[_Letter]":
        """Return the jobs with their new arguments, without those that are to be left dead."""
        fit = []
        for job in batch:
            try:
                fit.append(_Letter(job, self._how.arguments(job)))
            except UsageError as error:
                whole.left[job.id] = str(error)
        return fit

    def _replay(self, keys: QueueKeys, found: "list[_Letter]", whole: Done) -> Talk[None]:
        if not found:
            return
        failpoint("operate.before_replay")
        [words] = yield [letters.replay(keys, [one.replay() for one in found])]
        failpoint("operate.after_replay")
        gone, under_way = [], []
        for one, word in zip(found, words, strict=True):
            if word == "OK":
                whole.done += 1
            elif word == "GONE":
                gone.append(one)
            elif promised := letters.promised(word):
                # A replay to another queue was interrupted: what it began is brought to its end.
                under_way.append((one, promised))
            else:
                whole.conflicts[one.job.id] = keys.job_id(word)
        yield from self._gone(keys, gone, whole)
        yield from self._keep(keys, under_way, whole)

    def _promise(self, keys: QueueKeys, found: "list[_Letter]", whole: Done) -> Talk[None]:
        if not found:
            return
        failpoint("operate.before_promise")
        rows = [(one.job.dead_entry, one.local) for one in found]
        [words] = yield [letters.promise(keys, self._how.to or keys.tag, rows)]
        failpoint("operate.after_promise")
        kept = [(one, promised) for one, word in zip(found, words, strict=True) if (promised := letters.promised(word))]
        yield from self._gone(keys, [one for one, word in zip(found, words, strict=True) if word == "GONE"], whole)
        yield from self._keep(keys, kept, whole)

    def _gone(self, keys: QueueKeys, found: "list[_Letter]", whole: Done) -> Talk[None]:
        """Tell those that somebody else has replayed or purged from rows to which no job leads: those stay."""
        if not found:
            return
        there = yield [views.dead_rows(keys, one.job.dead_entry, one.job.dead_entry, 1) for one in found]
        for one, rows in zip(found, there, strict=True):
            if rows:
                whole.left[one.job.id] = FOREIGN
            else:
                whole.gone += 1

    def _keep(self, keys: QueueKeys, kept: "list[tuple[_Letter, Promised]]", whole: Done) -> Talk[None]:
        """Let promised jobs begin anew where they were promised to, and let go of them here."""
        for tag in dict.fromkeys(promised.queue for _, promised in kept):
            there = keys_of(self._namespace, tag)
            group = [(one, promised) for one, promised in kept if promised.queue == tag]
            adoptions = [one.adoption(keys, there, promised, self._how.new_key) for one, promised in group]
            [words] = yield [letters.adopt(there, adoptions)]
            failpoint("operate.after_adopt")
            ended = []
            for (one, promised), word in zip(group, words, strict=True):
                if word == "UNSURE":
                    whole.left[one.job.id] = (
                        f"its replay to {tag} was interrupted so long ago that nobody knows what became of it: "
                        "look there, and purge it here"
                    )
                    continue
                if word.startswith("!"):
                    whole.conflicts[one.job.id] = there.job_id(word[1:])
                    became = ""
                else:
                    whole.done += 1
                    became = there.job_id(word)
                ended.append(letters.Handover(one.job.dead_entry, one.local, promised, became, one.job.meta.dedupe_key))
            if ended:
                yield [letters.handover(keys, ended)]
            failpoint("operate.after_handover")


class _Letter(msgspec.Struct, frozen=True):
    """A dead job, and the arguments that it is to begin with; None for its own."""

    job: JobStatus
    body: bytes | None

    @property
    def local(self) -> str:
        return split_job_id(self.job.id)[2]

    def replay(self) -> letters.Replay:
        """Return what puts it back as it was."""
        meta = msgspec.structs.replace(
            _carried(self.job), id=self.local, origin=self.job.meta.origin,
            idempotency_key=self.job.meta.idempotency_key,
        )  # fmt: skip
        return letters.Replay(
            self.job.dead_entry,
            self.local,
            codec.encode_meta(meta),
            meta.dedupe_key,
            self.body,
            meta.dedupe_window_ms,
            self.job.newer if meta.latest else None,
        )

    def adoption(self, here: QueueKeys, there: QueueKeys, promised: Promised, new_key: bool) -> letters.Adoption:
        """Return what lets it begin anew as another job."""
        job = self.job
        # In its own queue it gets a new id for the sake of a new key alone.
        own_key = "" if new_key or here.tag == there.tag else job.meta.idempotency_key or job.id
        meta = msgspec.structs.replace(_carried(job), origin=job.id, idempotency_key=own_key)
        return letters.Adoption(
            job.id,
            job.dead_entry,
            promised,
            job.kind.encode(),
            job.body if self.body is None else self.body,
            codec.encode_meta(meta),
            meta.dedupe_key,
            meta.dedupe_window_ms,
            self.local if here.tag == there.tag else "",
            (job.newer if own_key else 0) if meta.latest else None,
        )


def _carried(job: JobStatus) -> Meta:
    """Return what a job carries on into its next generation."""
    meta = job.meta
    return msgspec.structs.replace(
        FRESH,
        generation=meta.generation + 1,
        dedupe_key=meta.dedupe_key,
        dedupe_mode=meta.dedupe_mode,
        dedupe_window_ms=meta.dedupe_window_ms,
        result_ttl_ms=meta.result_ttl_ms,
        traceparent=meta.traceparent,
        headers=meta.headers,
        history=job.history,
    )
