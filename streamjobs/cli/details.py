"""One job in full, as JSON and as text."""

from typing import TYPE_CHECKING, Any

from streamjobs.cli import show
from streamjobs.cli.secrets import shown_body

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamjobs.core.job import Attempt
    from streamjobs.operate.dead import Examined
    from streamjobs.operate.jobs import JobStatus
    from streamjobs.operate.limits import Wait


def dead_fields(job: "JobStatus") -> dict[str, Any]:
    """Return a dead job for a JSON document."""
    return {
        "id": job.id,
        "queue": job.queue,
        "kind": job.kind,
        **show.arguments(shown_body(job)),
        "reason": job.reason,
        "error": job.error,
        "attempts": job.attempt,
        "died": show.time_of(job.died_ms),
        **_lineage(job),
        "dedupe_key": job.meta.dedupe_key or None,
        "headers": job.meta.headers or {},
        "history": [attempt_fields(attempt) for attempt in job.history],
    }


def _lineage(job: "JobStatus") -> dict[str, Any]:
    """Return how often a job was replayed, and what it was before."""
    return {
        "generation": job.meta.generation,
        "replayed_from": job.meta.origin or None,
        "idempotency_key": job.meta.idempotency_key or None,
    }


def attempt_fields(attempt: "Attempt") -> dict[str, Any]:
    """Return one entry of a history for a JSON document."""
    return {
        "at": show.time_of(attempt.at_ms),
        "attempt": attempt.number or None,
        "error": attempt.error,
        "error_class": attempt.error_class,
        "worker": attempt.worker,
    }


def listed_fields(job: "JobStatus") -> dict[str, Any]:
    """Return a live job for a JSON document that has many."""
    return {
        "id": job.id,
        "queue": job.queue,
        "state": str(job.state),
        "kind": job.kind or None,
        **(show.arguments(shown_body(job)) if job.kind else {"args": None}),
        "attempt": job.attempt or None,
        "retrying": job.retrying,
        "place": job.place or None,
        "enqueued": show.time_of(job.enqueued_ms),
        "due": show.time_of(job.due_ms),
        "worker": job.worker or None,
        "error": _last_error(job),
    }


def _last_error(job: "JobStatus") -> str | None:
    return job.error or (job.history[-1].error if job.history else None)


def job_fields(job: "JobStatus", *, holds: bool, waits: "Sequence[Wait]", began_ms: int) -> dict[str, Any]:
    """Return a job in any state for a JSON document; what its state does not have is null.

    Args:
        job: what is known of it.
        holds: whether its dedupe key is its own at the moment.
        waits: the limits for which it waits.
        began_ms: when its run began; 0 where that is not known.
    """
    import msgspec

    from streamjobs.core.dedupe import mode_name

    known = bool(job.kind)
    nothing = {"args": None}
    return {
        "id": job.id,
        "queue": job.queue,
        "state": str(job.state),
        "place": job.place or None,
        "entry": job.entry or None,
        "kind": job.kind or None,
        **(show.arguments(shown_body(job)) if known else nothing),
        "enqueued": show.time_of(job.enqueued_ms),
        "attempt": job.attempt or None,
        "retrying": job.retrying,
        "due": show.time_of(job.due_ms),
        "expires": show.time_of(job.expires_ms),
        "worker": job.worker or None,
        "started": show.time_of(began_ms),
        "silent_s": job.silent_ms / 1000 if job.worker else None,
        "deliveries": job.deliveries,
        "waits_for": [msgspec.structs.asdict(one) for one in waits],
        "result": job.result,
        "reason": job.reason or None,
        "error": job.error or None,
        "died": show.time_of(job.died_ms),
        **_lineage(job),
        "replayed_as": job.became or None,
        "dedupe_key": job.meta.dedupe_key or None,
        "dedupe": mode_name(job.meta) or None,
        "holds_key": holds if job.meta.dedupe_key else None,
        "newer_arguments_follow": job.follows,
        "traceparent": job.meta.traceparent or None,
        "headers": job.meta.headers or {},
        "history": [attempt_fields(attempt) for attempt in job.history],
    }


def print_dead(found: "Examined", now_ms: int) -> None:
    """Print a dead job."""
    answer = "yes" if found.replayable else "no"
    show.pairs([*_about(found.job, now_ms), ("replayable", f"{answer}: {found.why}" if found.why else answer)])
    _print_history(found.job, now_ms)


def print_job(job: "JobStatus", now_ms: int, *, holds: bool, waits: "Sequence[Wait]", began_ms: int) -> None:
    """Print a job in any state."""
    held = f"{'' if holds else 'not '}by this job" if job.meta.dedupe_key else ""
    follow = "when it has ended" if job.follows else ""
    rest = [
        ("started", _since(began_ms, now_ms)),
        ("heard of", show.ago(job.silent_ms) if job.worker else ""),
        ("key held", held),
        ("newer follow", follow),
        ("parked", f"no worker knows kind {job.kind}" if job.unknown else ""),
        *(("waits for", _waiting(one)) for one in waits),
    ]
    show.pairs([*_about(job, now_ms), ("where", _where(job)), *rest, ("trace", job.meta.traceparent)])
    _print_history(job, now_ms)


def _since(at_ms: int, now_ms: int) -> str:
    return f"{show.time_of(at_ms)} ({show.ago(now_ms - at_ms)})" if at_ms else ""


def _where(job: "JobStatus") -> str:
    match job.place:
        case "stream" if job.worker:
            return f"entry {job.entry}, delivered {show.plural(job.deliveries, 'time')}"
        case "stream":
            return f"entry {job.entry}, not delivered yet"
        case "released":
            return f"entry {job.entry}, given back by a worker: it is taken before what is fresh"
        case "parked":
            return f"entry {job.entry}, waits for a limit"
    return ""


def _waiting(one: "Wait") -> str:
    of = f"{one.kind} by {one.key}={one.value}" if one.key else one.kind or "the queue"
    return f"the {one.limits} of {of}; {show.plural(one.before, 'job')} before it"


def _about(job: "JobStatus", now_ms: int) -> list[tuple[str, str]]:
    from streamjobs.core.dedupe import mode_name

    due = f"{show.time_of(job.due_ms)} (in {show.age(job.due_ms - now_ms)})" if job.due_ms else ""
    died = _since(job.died_ms, now_ms)
    return [
        ("id", job.id),
        ("queue", job.queue),
        ("state", f"{job.state}{_STATES.get(job.state, ', retrying' if job.retrying else '')}"),
        ("kind", job.kind),
        ("enqueued", _since(job.enqueued_ms, now_ms)),
        ("arguments", shown_body(job).decode("utf-8", "backslashreplace")),
        ("attempts" if job.died_ms else "attempt", str(job.attempt or "")),
        ("due", due),
        ("expires", show.time_of(job.expires_ms) or ""),
        ("worker", job.worker),
        ("result", show.compact(job.result) if job.result is not None else ""),
        ("reason", job.reason),
        ("error", job.error),
        ("died", died),
        ("replayed", _times(job.meta.generation)),
        ("replayed from", job.meta.origin),
        ("replayed as", job.became),
        ("key for others", job.meta.idempotency_key),
        ("dedupe key", job.meta.dedupe_key),
        ("dedupe", mode_name(job.meta)),
        ("headers", show.compact(job.meta.headers) if job.meta.headers else ""),
    ]


_STATES = {"finished": " (done or cancelled: no result of it is kept)"}


def _times(count: int) -> str:
    return "" if count == 0 else "once" if count == 1 else f"{count} times"


def _print_history(job: "JobStatus", now_ms: int) -> None:
    if not job.history:
        return
    show.line()
    table = show.Table(">ATTEMPT", "WHEN", "CLASS", "~WORKER", "~ERROR")
    table.print(
        (
            str(attempt.number or "?"),
            show.ago(now_ms - attempt.at_ms) if attempt.at_ms else "?",
            attempt.error_class,
            attempt.worker,
            attempt.error,
        )
        for attempt in job.history
    )
