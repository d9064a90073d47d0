"""One job in full, as JSON and as text."""

from typing import TYPE_CHECKING, Any

from streamjobs.cli import show
from streamjobs.cli.secrets import shown_body

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamjobs.core.job import Attempt
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
        "generation": job.meta.generation,
        "dedupe_key": job.meta.dedupe_key or None,
        "headers": job.meta.headers or {},
        "history": [attempt_fields(attempt) for attempt in job.history],
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


def job_fields(job: "JobStatus", *, holds: bool, waits: "Sequence[Wait]") -> dict[str, Any]:
    """Return a job in any state for a JSON document; what its state does not have is null.

    Args:
        job: what is known of it.
        holds: whether its dedupe key is its own at the moment.
        waits: the limits for which it waits.
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
        "silent_s": job.silent_ms / 1000 if job.worker else None,
        "deliveries": job.deliveries,
        "waits_for": [msgspec.structs.asdict(one) for one in waits],
        "result": job.result,
        "reason": job.reason or None,
        "error": job.error or None,
        "died": show.time_of(job.died_ms),
        "generation": job.meta.generation,
        "dedupe_key": job.meta.dedupe_key or None,
        "dedupe": mode_name(job.meta) or None,
        "holds_key": holds if job.meta.dedupe_key else None,
        "newer_arguments_follow": job.follows,
        "traceparent": job.meta.traceparent or None,
        "headers": job.meta.headers or {},
        "history": [attempt_fields(attempt) for attempt in job.history],
    }


def print_dead(job: "JobStatus", holder: str, now_ms: int) -> None:
    """Print a dead job."""
    replayable = f"no: {holder} holds its dedupe key" if holder else "yes"
    show.pairs([*_about(job, now_ms), ("replayable", replayable)])
    _print_history(job, now_ms)


def print_job(job: "JobStatus", now_ms: int, *, holds: bool, waits: "Sequence[Wait]") -> None:
    """Print a job in any state."""
    held = f"{'' if holds else 'not '}by this job" if job.meta.dedupe_key else ""
    follow = "when it has ended" if job.follows else ""
    rest = [("key held", held), ("newer follow", follow), *(("waits for", _waiting(one)) for one in waits)]
    show.pairs([*_about(job, now_ms), ("where", _where(job)), *rest, ("trace", job.meta.traceparent)])
    _print_history(job, now_ms)


def _where(job: "JobStatus") -> str:
    match job.place:
        case "stream" if job.worker:
            heard = f"its worker was last heard of {show.ago(job.silent_ms)}"
            return f"entry {job.entry}, delivered {show.plural(job.deliveries, 'time')}; {heard}"
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
    died = f"{show.time_of(job.died_ms)} ({show.ago(now_ms - job.died_ms)})" if job.died_ms else ""
    return [
        ("id", job.id),
        ("queue", job.queue),
        ("state", f"{job.state}{', retrying' if job.retrying else ''}"),
        ("kind", job.kind),
        ("enqueued", f"{show.time_of(job.enqueued_ms)} ({show.ago(now_ms - job.enqueued_ms)})"),
        ("arguments", shown_body(job).decode("utf-8", "backslashreplace")),
        ("attempts" if job.died_ms else "attempt", str(job.attempt or "")),
        ("due", due),
        ("expires", show.time_of(job.expires_ms) or ""),
        ("worker", job.worker),
        ("result", show.compact(job.result) if job.result is not None else ""),
        ("reason", job.reason),
        ("error", job.error),
        ("died", died),
        ("generation", str(job.meta.generation or "")),
        ("dedupe key", job.meta.dedupe_key),
        ("dedupe", mode_name(job.meta)),
        ("headers", show.compact(job.meta.headers) if job.meta.headers else ""),
    ]


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
