"""The table of states: what can become of a job, and what cannot."""

from streamjobs.core.states import FOLLOWER, MOVES, DeadReason, State
from streamjobs.protocol import scripts

ENDED = {State.DONE, State.CANCELLED, State.FINISHED}


def test_every_script_has_its_row_and_every_row_its_script() -> None:
    assert set(MOVES) == set(scripts.names())


def test_an_ended_job_stays_ended() -> None:
    assert not [move for rows in MOVES.values() for move in rows if move[0] in ENDED]


def test_a_dead_job_is_only_replayed_purged_handed_over_or_trimmed() -> None:
    leaving = {name for name, rows in MOVES.items() for before, _ in rows if before is State.DEAD}

    assert leaving == {"replay", "purge", "handover", "trim"}


def test_jobs_begin_by_enqueue_schedule_a_crons_tick_or_follow_one_that_ends_or_was_dead() -> None:
    begins = {name for name, rows in MOVES.items() for before, _ in rows if before is None}
    follow = {name for name, rows in MOVES.items() if rows >= FOLLOWER}

    assert begins - follow == {"enqueue", "schedule", "tick", "adopt", "restore"}
    assert follow == {"complete", "bury", "cancel"}


def test_every_state_that_is_written_can_be_reached() -> None:
    reached = {None}
    while True:
        found = reached | {after for rows in MOVES.values() for before, after in rows if before in reached}
        if found == reached:
            break
        reached = found

    # FINISHED is what is left to say of a job of which nothing was kept.
    assert reached == {None, *State} - {State.FINISHED}


def test_reasons_are_those_of_the_documentation() -> None:
    assert [str(reason) for reason in DeadReason] == [
        "exhausted", "permanent", "crash_limit", "undecodable", "unknown_kind", "expired",
    ]  # fmt: skip
