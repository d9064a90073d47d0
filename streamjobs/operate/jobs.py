"""One job: where it is, how it ended, how to wait for that, and how to cancel it or to give it another time."""

from collections.abc import Mapping
from time import monotonic
from typing import Any

import msgspec

from streamjobs.client.talk import Leniently, Pause, Talk
from streamjobs.core import codec, job
from streamjobs.core.errors import (
    JobCancelled,
    JobFailed,
    NotFound,
    OutcomeUnknown,
    Refused,
    ResultTimeout,
    StreamJobsError,
    Unavailable,
)
from streamjobs.core.job import FRESH, Attempt, Meta
from streamjobs.core.names import is_local_id
from streamjobs.core.numbers import milliseconds, whole
from streamjobs.core.states import State
from streamjobs.protocol import settle, upkeep
from streamjobs.protocol.calls import Call
from streamjobs.protocol.keys import PARKED, RELEASED, QueueKeys

SOONEST_S, LATEST_S = 0.02, 0.5
"""How soon it is asked again whether a job has ended: seldom, the longer it takes."""


class JobStatus(msgspec.Struct, frozen=True):
    """What is known of a job. Fields that its state does not have are empty, 0 or None."""

    id: str
    queue: str
    state: State
    kind: str = ""
    attempt: int = 0
    """Of the run under way or of the next one; for a dead job, how many it had."""
    retrying: bool = False
    """Scheduled since its last attempt failed."""
    due_ms: int = 0
    """Server time at which a scheduled job becomes due."""
    worker: str = ""
    """Who runs it."""
    silent_ms: int = 0
    """How long ago that one, while it runs, last said that it does."""
    deliveries: int = 0
    place: str = ""
    """Where it lies: `stream`, `released` (given back, and to be taken first), `parked` (waits for a limit),
    `scheduled`, `retries`, `dead` or `result`.
    """
    entry: str = ""
    """In the stream: its entry, which is not always its id."""
    reason: str = ""
    error: str = ""
    history: tuple[Attempt, ...] = ()
    died_ms: int = 0
    body: bytes = b""
    """Of a job that takes newer arguments: what it runs with, or starts with next."""
    follows: bool = False
    """Running, and newer arguments wait for it to end."""
    newer: int = 0
    """Of a dead job: how many of its starts took newer arguments."""
    meta: Meta = FRESH
    dead_entry: str = ""
    promise: str = ""
    """Of a dead job whose replay as another job is under way, or was interrupted: the queue, and since when in ms."""
    foreign: bool = False
    """A row among the dead that names no job: somebody else wrote it. Its id is that of the row."""
    became: str = ""
    """The job as which it began anew after its death; known for 7 days."""
    result: Any = None

    @property
    def enqueued_ms(self) -> int:
        """Server time at which it was enqueued."""
        return job.enqueued_ms(self.id.partition(":")[2])

    @property
    def unknown(self) -> bool:
        """Whether it waits for a worker that knows its kind: none that had it did."""
        meta = self.meta
        put_off = self.state is State.SCHEDULED and not self.retrying
        # One that a worker knew since has been put off for another cause.
        return put_off and meta.parks > 0 and not meta.failures and not meta.snoozes and not meta.rate_waits

    @property
    def expires_ms(self) -> int:
        """Server time by which its first attempt must have started; 0 for no limit, or where it is not known."""
        return job.expires_ms(self.id.partition(":")[2], self.meta)


class _Kept(msgspec.Struct, frozen=True):
    """How a job ended, as it is kept."""

    state: State
    value: Any = None
    reason: str = ""
    error: str = ""


_history = msgspec.json.Decoder(tuple[Attempt, ...])
_kept = msgspec.json.Decoder(_Kept)


def lookup(keys: QueueKeys, local: str) -> Call[JobStatus]:
    """Find a job. The reply raises NotFound for one that never was."""
    call = upkeep.lookup(keys, local)
    return Call(call.script, call.keys, call.args, lambda raw: status(keys, local, call.decode(raw)))


def status(keys: QueueKeys, local: str, fields: Mapping[str, bytes]) -> JobStatus:
    """Return what a reply to `upkeep.lookup` says.

    Raises:
        NotFound: there is no such job.
    """
    job_id = keys.job_id(local)
    found = fields["state"].decode()
    if found == "unknown":
        raise NotFound(f"job {job_id}: there is no such job in namespace {keys.namespace}")
    if found == "ended":
        return _ended(job_id, keys.queue, fields["result"], text(fields, "became"))
    if found == "finished":
        return JobStatus(job_id, keys.queue, State.FINISHED, became=text(fields, "became"))
    if found == "dead":
        return dead_status(keys, local, fields)
    meta = read_meta(fields.get("meta", b""))
    deliveries = int(fields.get("deliveries", b"0"))
    return JobStatus(
        job_id,
        keys.queue,
        State(found),
        kind=text(fields, "kind"),
        attempt=1 + meta.starts + _crashes(found, deliveries, int(fields.get("marks", b"0"))),
        retrying=fields.get("retrying") == b"1",
        due_ms=milliseconds(fields.get("due_ms", b"0")),
        worker=text(fields, "consumer") if found == "running" else "",
        silent_ms=int(fields.get("idle_ms", b"0")) if found == "running" else 0,
        deliveries=deliveries,
        place=_place(found, fields),
        entry=text(fields, "entry") if found in ("waiting", "running") else "",
        body=fields.get("body", b""),
        follows=fields.get("follows") == b"1",
        meta=meta,
        history=meta.history,
    )


def _place(found: str, fields: Mapping[str, bytes]) -> str:
    if found == "scheduled":
        return "retries" if fields.get("retrying") == b"1" else "scheduled"
    if found == "waiting" and (consumer := text(fields, "consumer")) in (RELEASED, PARKED):
        return consumer
    return "dead" if found == "dead" else "stream"


def _crashes(state: str, deliveries: int, marks: int) -> int:
    """Return the starts of an entry that never ended, without the one under way."""
    if deliveries == 0 or (state == "running" and deliveries == 1):
        return 0
    return max(0, marks if state == "running" else 1 + marks)


def dead_status(keys: QueueKeys, local: str, fields: Mapping[str, bytes]) -> JobStatus:
    """Return what a row of the dead stream says; one that is not ours must not hide the others."""
    return JobStatus(
        keys.job_id(local),
        keys.queue,
        State.DEAD,
        kind=text(fields, "kind"),
        attempt=number(fields, "attempts"),
        reason=text(fields, "reason"),
        error=text(fields, "error"),
        history=attempts(fields.get("history", b"")),
        died_ms=number(fields, "died_at"),
        body=fields.get("body", b""),
        newer=number(fields, "newer"),
        meta=read_meta(fields.get("meta", b"")),
        dead_entry=text(fields, "entry"),
        promise=text(fields, "promise"),
        foreign=not local_id(fields),
    )


def local_id(row: Mapping[str, bytes]) -> str:
    """Return the local id that a row of the dead stream names; "" for one that names none: somebody else's."""
    found = text(row, "id")
    return found if is_local_id(found) else ""


def text(fields: Mapping[str, bytes], name: str) -> str:
    """Return a field as text, whatever its bytes are."""
    return fields.get(name, b"").decode("utf-8", "replace")


def number(fields: Mapping[str, bytes], name: str) -> int:
    """Return a field as a number; 0 for one that is none."""
    return max(0, whole(fields.get(name, b"")))


def attempts(raw: bytes) -> tuple[Attempt, ...]:
    """Return a history; empty for one that cannot be read."""
    try:
        return _history.decode(raw)
    except (ValueError, RecursionError):
        return ()


def read_meta(raw: bytes) -> Meta:
    """Return the meta of a job; FRESH for one that cannot be read."""
    try:
        return codec.decode_meta(raw)
    except codec.DecodeFailed:
        return FRESH


def _ended(job_id: str, queue: str, raw: bytes, became: str) -> JobStatus:
    try:
        kept = _kept.decode(raw)
    except (ValueError, RecursionError):
        # Somebody else wrote it: that it has ended is known all the same.
        return JobStatus(job_id, queue, State.FINISHED, became=became)
    return JobStatus(
        job_id,
        queue,
        kept.state,
        place="result",
        result=kept.value,
        reason=kept.reason,
        error=kept.error,
        became=became,
    )


def outcome(status: JobStatus) -> Any:
    """Return the result of a job that has ended.

    Raises:
        JobFailed, JobCancelled: it ended otherwise.
        NotFound: its result was not kept, or has expired.
    """
    match status.state:
        case State.DONE:
            return status.result
        case State.DEAD:
            raise JobFailed(
                f"job {status.id} is dead: {status.reason}: {status.error}",
                reason=status.reason,
                error=status.error,
            )
        case State.CANCELLED:
            raise JobCancelled(f"job {status.id} was cancelled: {status.reason}")
    raise NotFound(f"job {status.id} has ended, and no result of it is kept")


def ended(status: JobStatus) -> bool:
    """Say whether nothing more will happen to the job by itself."""
    return status.state in (State.DONE, State.DEAD, State.CANCELLED, State.FINISHED)


def wait(keys: QueueKeys, local: str, timeout_s: float | None) -> Talk[JobStatus]:
    """Wait until a job has ended, whether or not that is kept; None waits for as long as it takes.

    It is asked for, at first often, then twice a second: who keeps no result tells nobody of its end. A server
    that goes away meanwhile is waited for too.

    Raises:
        NotFound: there is no such job.
        ResultTimeout: it has not ended in time; it goes on.
        Unavailable: the server cannot be reached at all.
    """
    begin, pause_s = monotonic(), SOONEST_S
    [reply] = yield [lookup(keys, local)]
    while True:
        if isinstance(reply, JobStatus) and ended(reply):
            return reply
        if isinstance(reply, StreamJobsError) and not isinstance(reply, Unavailable | OutcomeUnknown):
            raise reply
        left_s = LATEST_S if timeout_s is None else begin + timeout_s - monotonic()
        if left_s <= 0:
            raise late(keys.job_id(local), timeout_s)
        yield Pause(min(pause_s, left_s))
        pause_s = min(LATEST_S, pause_s * 1.5)
        [reply] = yield Leniently([lookup(keys, local)])


def late(job_id: str, timeout_s: float | None) -> ResultTimeout:
    """Return the error for a job that did not end in time."""
    return ResultTimeout(f"job {job_id} has not ended within {timeout_s or 0:g} s; it goes on")


def cancel(keys: QueueKeys, local: str, reason: str) -> Talk[bool]:
    """Cancel a job in whatever state it is; return whether it was running.

    Raises:
        NotFound: there is no such job.
        Refused: it has ended already.
    """
    [status] = yield [lookup(keys, local)]
    if not ended(status):
        kept = codec.encode_value({"state": "cancelled", "reason": reason}, "reason")
        meta = status.meta
        item = settle.Ending(b"", 0, local, meta.dedupe_key, meta.result_ttl_ms, kept)
        [[word]] = yield [settle.cancel(keys, "", [item])]
        if word not in ("GONE", "DEAD"):
            return bool(word == "RUNNING")
        # It has just ended.
        [status] = yield [lookup(keys, local)]
    raise Refused(f"job {keys.job_id(local)} has ended already ({status.state}); nothing was changed")


def reschedule(keys: QueueKeys, local: str, delay_ms: int, at_ms: int = 0) -> Talk[None]:
    """Give a scheduled job another time: so many ms from now, or an instant, which wins.

    Raises:
        NotFound: there is no such job.
        Refused: it is not scheduled.
    """
    [status] = yield [lookup(keys, local)]
    if status.state is State.SCHEDULED:
        item = upkeep.Reschedule(local, delay_ms, at_ms, status.meta.dedupe_key)
        [[word]] = yield [upkeep.reschedule(keys, [item])]
        if word == "OK":
            return
        # Its time has just come.
        [status] = yield [lookup(keys, local)]
    raise Refused(f"job {keys.job_id(local)} is {status.state}, not scheduled; nothing was changed")
