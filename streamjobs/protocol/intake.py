"""How jobs get in: batches for `enqueue` and `schedule`, and what the server answers."""

from collections.abc import Sequence

import msgspec

from streamjobs.core.codec import encode_meta
from streamjobs.core.errors import Unavailable
from streamjobs.core.job import FRESH, Job, Meta
from streamjobs.protocol.calls import Call, Command, Word
from streamjobs.protocol.keys import QueueKeys, queues

DEDUPE_TTL_MS = 7 * 86_400_000
"""A dedupe key lives this long beyond its job's run_after; the server extends it while the job lives."""
MAX_BATCH_JOBS = 500
MAX_BATCH_BYTES = 1024 * 1024
_FULL = "full:"


class BatchRefused(Unavailable):
    """The server has seen a later batch, or another batch of this number, from this producer.

    Nothing was done. `word` is STALEBATCH or TWOPRODUCERS.
    """


class Batch(msgspec.Struct, frozen=True):
    """Who sends, which batch of its, and a token that tells two senders of one name apart."""

    producer: str
    number: int
    token: str


class Accepted(msgspec.Struct, frozen=True):
    """The ids of one batch: consecutive from `<prefix><ms>-<seq>`, but for jobs that were left out."""

    prefix: str
    ms: str
    seq: int
    held: dict[int, str]
    """By index, whose dedupe key another job holds: the id of that one."""
    full: dict[int, int] = {}
    """By index, what found the queue full: how many may wait in it."""

    def ids(self, jobs: int) -> list[str]:
        """Return the local id of each of the batch's jobs, in order; "" for one that found the queue full."""
        head, seq = f"{self.prefix}{self.ms}-", self.seq
        if not self.held and not self.full:
            return [f"{head}{n}" for n in range(seq, seq + jobs)]
        result = []
        for index in range(jobs):
            if (holder := self.held.get(index)) is not None:
                result.append(holder)
            elif index in self.full:
                result.append("")
            else:
                result.append(f"{head}{seq}")
                seq += 1
        return result


def _accepted(raw: bytes, prefix: str) -> Accepted:
    words = raw.decode().split(" ")
    if len(words) < 3:
        raise BatchRefused(f"the server refuses the batch: {words[0]}", word=words[0])
    others = {int(words[i]): words[i + 1] for i in range(3, len(words), 2)}
    full = {index: int(word.removeprefix(_FULL)) for index, word in others.items() if word.startswith(_FULL)}
    held = {index: word for index, word in others.items() if index not in full} if full else others
    return Accepted(prefix, words[0], int(words[1]), held, full)


def enqueue(keys: QueueKeys, jobs: Sequence[Job], batch: Batch, clock: str = "") -> Call[Accepted]:
    """Put jobs that are due at once on the stream; at most 500 and 1 MiB."""
    named = [keys.stream, keys.producer(batch.producer), keys.totals, keys.metrics, keys.latest]
    named += [keys.config, keys.released]
    words: list[Word] = [clock, batch.number, batch.token]
    kind, form, jobs_at, run = "", "", 0, 0
    for job in jobs:
        meta = job.meta
        own_form = "plain" if meta is FRESH else "latest" if meta.dedupe_mode and meta.latest else "full"
        if job.kind != kind or own_form != form:
            if run:
                words[jobs_at] = run
            kind, form, run = job.kind, own_form, 0
            words += (kind, 0, form)
            jobs_at = len(words) - 2
        run += 1
        words.append(job.body)
        if form != "plain":
            words += (encode_meta(meta), _key_ttl_ms(meta))
            if meta.dedupe_key:
                named.append(keys.dedupe(meta.dedupe_key))
    if run:
        words[jobs_at] = run
    return Call("enqueue", named, words, lambda raw: _accepted(raw, ""))


def schedule(keys: QueueKeys, jobs: Sequence[Job], batch: Batch, clock: str = "") -> Call[Accepted]:
    """Put jobs that run later into the set of scheduled ones; at most 500 and 1 MiB."""
    named = [keys.ids, keys.scheduled, keys.bodies, keys.retries, keys.bell]
    named += [keys.producer(batch.producer), keys.totals, keys.metrics, keys.latest]
    words: list[Word] = [clock, batch.number, batch.token]
    for job in jobs:
        key = job.meta.dedupe_key
        words += (
            job.kind,
            job.body,
            encode_meta(job.meta),
            job.delay_ms,
            job.at_ms,
            _key_ttl_ms(job.meta),
            int(job.meta.latest),
        )
        if key:
            named.append(keys.dedupe(key))
    return Call("schedule", named, words, lambda raw: _accepted(raw, "d"))


def _key_ttl_ms(meta: Meta) -> int:
    """Return how long a job's dedupe key lives beyond its run_after; 0 for none."""
    return (meta.dedupe_window_ms or DEDUPE_TTL_MS) if meta.dedupe_key else 0


def announce(namespace: str, names: Sequence[str]) -> Command[int]:
    """Add queue names to the set that `queue list` and `stats` read."""
    return Command(["SADD", queues(namespace), *names], int)
