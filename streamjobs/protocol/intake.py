"""How jobs get in: batches for `enqueue` and `schedule`, and what the server answers."""

from collections.abc import Sequence

import msgspec

from streamjobs.core.codec import encode_meta
from streamjobs.core.errors import QueueFull, Unavailable
from streamjobs.core.job import FRESH, Job, Meta
from streamjobs.core.text import plural
from streamjobs.protocol import scripts
from streamjobs.protocol.calls import Call, Command, Word
from streamjobs.protocol.keys import QueueKeys, queues

DEDUPE_TTL_MS = 7 * 86_400_000
"""A dedupe key lives this long beyond its job's run_after; the server extends it while the job lives."""
MAX_BATCH_JOBS = 500
"""Jobs in one call, whatever it does with them, so that none holds the server for long."""
MAX_BATCH_BYTES = 1024 * 1024
"""Their bytes, likewise."""
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
    held: dict[int, str] = {}
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
    if len(words) == 3:
        return Accepted(prefix, words[0], int(words[1]))
    others = {int(words[i]): words[i + 1] for i in range(3, len(words), 2)}
    full = {index: int(word.removeprefix(_FULL)) for index, word in others.items() if word.startswith(_FULL)}
    held = {index: word for index, word in others.items() if index not in full} if full else others
    return Accepted(prefix, words[0], int(words[1]), held, full)


def queue_full(queue: str, most: int) -> QueueFull:
    """Return the error for a job that found no room in a queue in which so many may wait."""
    why = f"queue {queue} is full, nothing was enqueued: {plural(most, 'job')} may wait there (max_waiting)"
    return QueueFull(why, queue=queue, max_waiting=most)


class Load(msgspec.Struct, frozen=True):
    """Jobs as a call says them, whichever batch they go with: it can be made while another batch is under way."""

    script: str
    before: list[str]
    """The call's keys, but for the producer's, which stands between the two."""
    behind: list[str]
    words: list[Word]
    prefix: str
    """Of the jobs' ids."""

    def call(self, keys: QueueKeys, batch: Batch, clock: str = "") -> Call[Accepted]:
        """Return the call that sends these jobs as a batch."""
        named = [*self.before, keys.producer(batch.producer), *self.behind]
        words = [clock, batch.number, batch.token, *self.words]
        return Call(self.script, named, words, lambda raw: _accepted(raw, self.prefix))


def load(keys: QueueKeys, jobs: Sequence[Job]) -> Load:
    """Return jobs that are due at once as they go on the stream; at most 500 and 1 MiB."""
    behind = [keys.totals, keys.metrics, keys.latest, keys.config]
    words: list[Word] = []
    like, jobs_at, run = ("", "", 0), 0, 0
    for job in jobs:
        meta = job.meta
        if meta is FRESH:
            own = (job.kind, "plain", 0)
        else:
            own = (job.kind, "latest" if meta.dedupe_mode and meta.latest else "full", _key_ttl_ms(meta))
        if own != like:
            if run:
                words[jobs_at] = run
            like, run, jobs_at = own, 0, len(words) + 1
            words += (own[0], 0, own[1], own[2])
        run += 1
        words.append(job.body)
        if meta is not FRESH:
            words.append(encode_meta(meta))
            if meta.dedupe_key:
                behind.append(keys.dedupe(meta.dedupe_key))
    if run:
        words[jobs_at] = run
    return Load("enqueue", [keys.stream], behind, words, "")


def load_later(keys: QueueKeys, jobs: Sequence[Job]) -> Load:
    """Return jobs that run later as they go into the set of scheduled ones; at most 500 and 1 MiB."""
    behind = [keys.totals, keys.metrics, keys.latest]
    words: list[Word] = []
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
            behind.append(keys.dedupe(key))
    before = [keys.ids, keys.scheduled, keys.bodies, keys.retries, keys.bell]
    return Load("schedule", before, behind, words, "d")


def enqueue(keys: QueueKeys, jobs: Sequence[Job], batch: Batch, clock: str = "") -> Call[Accepted]:
    """Put jobs that are due at once on the stream; at most 500 and 1 MiB."""
    return load(keys, jobs).call(keys, batch, clock)


def schedule(keys: QueueKeys, jobs: Sequence[Job], batch: Batch, clock: str = "") -> Call[Accepted]:
    """Put jobs that run later into the set of scheduled ones; at most 500 and 1 MiB."""
    return load_later(keys, jobs).call(keys, batch, clock)


def load_scripts() -> None:
    """Load the scripts that take jobs in; about 1 ms."""
    for name in ("enqueue", "schedule"):
        scripts.load(name)


def _key_ttl_ms(meta: Meta) -> int:
    """Return how long a job's dedupe key lives beyond its run_after; 0 for none."""
    return (meta.dedupe_window_ms or DEDUPE_TTL_MS) if meta.dedupe_key else 0


def announce(namespace: str, names: Sequence[str]) -> Command[int]:
    """Add queue names to the set that `queue list` and `stats` read."""
    return Command(["SADD", queues(namespace), *names], int)
