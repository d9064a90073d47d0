"""The states of a job, and the only moves between them.

The table is the truth: each script in lua/ repeats its row as `Moves:` in its header, and a test
compares the two. `None` stands for a job that is not there: not yet (`new`) or no more (`gone`).
"""

from enum import StrEnum


class State(StrEnum):
    """Where a job is."""

    SCHEDULED = "scheduled"
    """Waiting for its run_after: delayed, snoozed, or failed and waiting for the next attempt."""
    WAITING = "waiting"
    """In the stream, held by no worker."""
    RUNNING = "running"
    """Delivered to a worker and not settled."""
    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"
    FINISHED = "finished"
    """Done or cancelled, nothing more is known: no result was kept, or it has expired."""


Move = tuple[State | None, State | None]

FOLLOWER: frozenset[Move] = frozenset({(None, State.WAITING), (None, State.SCHEDULED)})
"""The job with the newest arguments that takes the place of one that has ended."""

MOVES: dict[str, frozenset[Move]] = {
    "enqueue": frozenset({(None, State.WAITING)}),
    "schedule": frozenset({(None, State.SCHEDULED)}),
    "tick": frozenset({(None, State.WAITING)}),
    "promote": frozenset({(State.SCHEDULED, State.WAITING)}),
    "reschedule": frozenset({(State.SCHEDULED, State.SCHEDULED)}),
    "take": frozenset({(State.WAITING, State.RUNNING)}),
    "reclaim": frozenset({(State.RUNNING, State.RUNNING), (State.WAITING, State.RUNNING)}),
    "join": frozenset(),
    "pause": frozenset(),
    "plan": frozenset(),
    "renew": frozenset(),
    "suspect": frozenset(),
    "start": frozenset(),
    "once": frozenset(),
    "record": frozenset(),
    # The first success wins, also that of a worker whose lease went to somebody who gave it back.
    "complete": frozenset({(State.RUNNING, State.DONE), (State.WAITING, State.DONE)}) | FOLLOWER,
    "retry": frozenset({(State.RUNNING, State.SCHEDULED)}),
    "snooze": frozenset({(State.RUNNING, State.SCHEDULED)}),
    "release": frozenset({(State.RUNNING, State.WAITING)}),
    "admit": frozenset({(State.RUNNING, State.WAITING)}),
    "vacate": frozenset(),
    "measure": frozenset(),
    "limit": frozenset(),
    "bury": frozenset({(State.RUNNING, State.DEAD)}) | FOLLOWER,
    "cancel": frozenset(
        {
            (State.SCHEDULED, State.CANCELLED),
            (State.WAITING, State.CANCELLED),
            (State.RUNNING, State.CANCELLED),
        }
    )
    | FOLLOWER,
    "replay": frozenset({(State.DEAD, State.WAITING)}),
    "promise": frozenset(),
    "adopt": frozenset({(None, State.WAITING)}),
    "handover": frozenset({(State.DEAD, None)}),
    "restore": frozenset({(None, State.DEAD)}),
    "trim": frozenset({(State.DEAD, None)}),
    "purge": frozenset({(State.DEAD, None)}),
    "retire": frozenset(),
    "report": frozenset(),
    "order": frozenset(),
    "delete": frozenset(),
    "lookup": frozenset(),
    "probe": frozenset(),
}


class DeadReason(StrEnum):
    """Why a job is dead."""

    EXHAUSTED = "exhausted"
    PERMANENT = "permanent"
    CRASH_LIMIT = "crash_limit"
    UNDECODABLE = "undecodable"
    UNKNOWN_KIND = "unknown_kind"
    EXPIRED = "expired"
