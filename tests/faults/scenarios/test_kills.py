"""F6 to F10, F16, F17: a worker's process dies, at each point where that could cost or double a job."""

import random
import signal
import time

import pytest

from streamjobs.core import failpoints
from streamjobs.core.failpoints import EXIT_CODE
from tests.faults.field import FAST, WITHIN_S, Field
from tests.faults.proxy import Act, Proxy, Rule

KILLED = -signal.SIGKILL
RECOVERED_S = FAST["lease"] + FAST["sweep"] + 2.0
"""Within lease + sweep a dead worker's job is started again; the rest is for a busy machine."""


def successor(field: Field, n: int) -> None:
    """Let another worker take over; it starts the job in time."""
    field.serving()
    field.happens("E", n, within_s=RECOVERED_S)


def test_F6_killed_between_claim_and_start_the_job_is_not_charged(field: Field) -> None:
    """Case A2: no failure, that is; but a start is presumed of every claim, and counts as an attempt."""
    field.enqueue("nap", 1)
    assert field.worker(armed="worker.after_claim=kill9@1").ended() == KILLED
    [(_, holder, *_)] = field.queue.pending()
    assert (holder != b"released", field.count("S")) == (True, 0)

    successor(field, 1)
    field.judge()
    assert (field.count("S"), field.totals()["reclaimed"], field.attempts()) == (1, 1, {2})
    assert (field.totals()["retried"], field.totals()["dead"]) == (0, 0)


def test_F7_killed_in_the_handler_the_jobs_run_again_and_are_charged_a_crash(field: Field) -> None:
    field.enqueue("nap", *range(20), args=(0.4,))
    victim = field.serving()
    field.until(lambda: field.count("S") >= 10, "ten run")
    victim.kill9()
    field.serving()

    field.judge()
    again = [entry for entry in field.journal() if entry.detail == "2/2"]
    assert len(again) >= 10
    assert field.totals()["reclaimed"] >= 10


@pytest.mark.parametrize("action", ["kill9", "exit"])
@pytest.mark.parametrize("point", ["worker.after_handler", "settle.before"])
def test_F8_killed_before_the_end_is_written_the_job_runs_again(field: Field, point: str, action: str) -> None:
    field.enqueue("nap", 1)
    assert field.worker(armed=f"{point}={action}@1").ended() == (KILLED if action == "kill9" else EXIT_CODE)
    assert field.count("E", 1) == 1

    field.serving()
    field.happens("E", 1, times=2, within_s=RECOVERED_S)
    field.judge()
    assert (field.totals()["done"], field.totals()["reclaimed"]) == (1, 1)


@pytest.mark.parametrize("how", ["retry", "snooze", "bury", "cancel"])
def test_F8_so_it_does_whatever_the_handler_decided(field: Field, how: str) -> None:
    field.enqueue("ends", 1, args=(how,))
    assert field.worker(armed="settle.before=kill9@1").ended() == KILLED

    successor(field, 1)
    field.judge()
    assert (field.totals()["done"], field.totals()["reclaimed"]) == (1, 1)


@pytest.mark.parametrize("how", ["return", "retry", "snooze", "bury", "cancel"])
def test_F9_killed_before_it_learns_that_the_end_was_written_nothing_is_undone(field: Field, how: str) -> None:
    field.enqueue("ends", 1, args=(how,))
    assert field.worker(armed="settle.after=kill9@1").ended() == KILLED

    field.serving()
    again = how in ("retry", "snooze")
    if not again:
        field.jobs.clear()
    field.until(lambda: field.count("S") == 1 + again, "what was decided happens")
    field.drained()
    totals = field.totals()
    word = {"bury": "dead", "cancel": "cancelled"}.get(how, "done")
    assert (totals[word], totals["reclaimed"], field.count("S")) == (1, 0, 1 + again)


@pytest.mark.parametrize("move", ["complete", "retry", "snooze", "bury"])
def test_F9_a_lost_reply_to_the_end_of_a_job_changes_nothing(field: Field, proxy: Proxy, move: str) -> None:
    lost = proxy.add(Rule(Act.DROP, move, times=2))
    field.enqueue("ends", 1, args=("return" if move == "complete" else move,))
    field.serving(proxy.url)
    field.until(lambda: lost.hits == 2, "replies are lost")

    field.drained()
    totals = field.totals()
    assert totals["done"] + totals["dead"] == 1
    assert (field.count("S", 1), totals["reclaimed"]) == (2 if move in ("retry", "snooze") else 1, 0)
    assert field.warnings("came too late") == 0


def test_F10_a_promoter_killed_after_its_call_has_promoted_all_or_nothing(field: Field) -> None:
    field.enqueue("nap", *range(20), delay=0.1)
    time.sleep(0.2)
    # With as many slots as that, all fit into one call.
    assert field.worker(armed="worker.after_promote=kill9@1", concurrency=20).ended() == KILLED
    assert field.totals()["promoted"] == 20

    field.serving()
    field.judge()
    assert (field.totals()["promoted"], field.totals()["done"]) == (20, 20)


def test_F10_a_reclaimer_killed_after_its_call_loses_nothing(field: Field) -> None:
    field.enqueue("nap", *range(5), args=(1.0,))
    first = field.serving()
    field.until(lambda: field.count("S") == 5, "all run")
    first.kill9()
    field.queue.silence()
    assert field.worker(armed="worker.after_reclaim=kill9@1").ended() == KILLED
    assert (field.totals()["reclaimed"], field.count("S")) == (5, 5)

    field.serving()
    field.judge()
    assert (field.totals()["reclaimed"], field.count("S")) == (10, 10)


@pytest.mark.parametrize("how", ["exit", "segfault"])
def test_F16_a_poison_job_is_dead_after_three_crashes_and_blames_no_sibling(field: Field, how: str) -> None:
    """Also case C1."""
    [poison] = field.enqueue("poison", 1000, args=(how,))
    field.enqueue("nap", *range(60), args=(0.02,))
    starts = 0
    while field.queue.counts()["dead"] == 0 and starts < 6:
        starts += 1
        worker = field.serving(lease=0.3)
        field.until(lambda: not worker.running() or field.queue.counts()["dead"], "it crashes, or the job is dead")  # noqa: B023
    field.judge(dead={1000})

    [row] = field.queue.dead()
    assert row["reason"] == b"crash_limit"
    assert row["id"].decode() == poison.id.removeprefix("q:")
    assert (starts, field.count("S", 1000)) == (4, 3)
    assert field.totals()["reclaimed"] >= 3


def test_F16_siblings_that_a_poison_job_takes_along_each_time_are_not_blamed(field: Field) -> None:
    [poison] = field.enqueue("poison", 1000, args=("exit",))
    # Longer than the poison job lives: whenever they start beside it, they die with it.
    field.enqueue("nap", *range(4), args=(0.3,))
    starts = 0
    while field.queue.length() and starts < 6:
        starts += 1
        worker = field.serving(lease=0.3)
        field.until(lambda: not worker.running() or not field.queue.length(), "it crashes, or all have ended")  # noqa: B023

    blamed = {row["id"].decode() for row in field.queue.dead()} - {poison.id.removeprefix("q:")}
    assert not blamed, "I7: siblings are dead for the crashes of a poison job"
    field.judge(dead={1000})
    assert field.count("S", 0) == 3


def test_F16_a_job_that_alternates_crash_and_snooze_does_not_escape(field: Field) -> None:
    field.enqueue("crash_or_snooze", 1)
    for _ in range(8):
        worker = field.serving(lease=0.3)
        field.until(lambda: not worker.running() or field.queue.counts()["dead"], "it crashes, or the job is dead")  # noqa: B023
        if field.queue.counts()["dead"]:
            break
    field.judge(dead={1})

    assert field.queue.dead()[0]["reason"] == b"crash_limit"
    # 3 crashes, and 2 snoozes between them.
    assert field.count("S", 1) == 5


@pytest.mark.parametrize("round_", range(4))
def test_two_kills_at_points_taken_at_random_lose_nothing(field: Field, round_: int) -> None:
    chance = random.Random(field.seed + round_)
    passes = {"worker.before_handler": 8, "worker.after_handler": 8, "worker.after_claim": 1, "settle.before": 1}
    # The first is reached for sure, the second perhaps.
    sure, other = chance.choice(sorted(passes)), chance.choice(sorted(failpoints.NAMES))
    armed = [f"{sure}=kill9@{chance.randint(1, passes[sure])}", f"{other}=kill9@{chance.randint(1, 4)}"]
    print("armed:", armed)
    kinds = [chance.choice(["nap", "plain", "flaky"]) for _ in range(40)]
    for n, kind in enumerate(kinds):
        field.enqueue(kind, n, delay=chance.choice([None, 0.2]))
    victims = []
    for one in armed:
        victims.append(field.worker(armed=one))
        field.until(lambda: not victims[-1].running() or field.totals()["done"] == 40, "it dies, or all is done")
    field.serving()

    field.judge()
    assert field.totals()["done"] == 40
    assert victims[0].ended() == KILLED


def test_F17_a_worker_claims_no_more_than_it_can_start(field: Field) -> None:
    field.enqueue("nap", *range(300), args=(60,))
    field.jobs.clear()
    worker = field.serving(concurrency=7)
    field.until(lambda: field.count("S") == 7, "all slots are taken")

    assert len(field.queue.pending()) == 7
    worker.kill9()
    assert worker.ended(WITHIN_S) == KILLED
