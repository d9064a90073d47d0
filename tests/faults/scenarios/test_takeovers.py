"""Jobs that change hands: after a kill, after a freeze, and out of a kill in the midst of an operator's work."""

import os
import re
import signal
import subprocess
import sys

import pytest

from streamjobs.core import failpoints
from streamjobs.worker.promote import LONGEST_S
from tests.faults import kills
from tests.faults.field import FAST, NAMESPACE, ROOT, Actor, Field

KILLED = -signal.SIGKILL
LEASE_S: float = FAST["lease"]
RECOVERED_S = LEASE_S + FAST["sweep"] + 2.0


def holder(field: Field, n: int) -> tuple[Actor, Actor]:
    """Start two workers; return the one that has started job `n`, and the other."""
    workers = field.serving(), field.serving()
    field.happens("S", n)
    return (workers[0], workers[1]) if field.count("S", n, workers[0].pid) else (workers[1], workers[0])


@pytest.mark.parametrize("kind", ["fast", "slow"])
def test_case_A1_a_killed_workers_job_is_taken_over_a_lease_later_whatever_its_timeout(field: Field, kind: str) -> None:
    """The timeouts are 4 s and an hour; a lease does not follow from them."""
    field.enqueue(kind, 1)
    victim, other = holder(field, 1)
    victim.kill9()
    field.happens("S", 1, times=2, within_s=RECOVERED_S)

    field.judge()
    first, second = (entry for entry in field.journal() if entry.word == "S")
    assert (first.detail, second.detail, second.pid) == ("1/1", "2/2", other.pid)
    # One crash and no failure.
    assert (field.totals()["reclaimed"], field.totals()["retried"]) == (1, 0)


def test_case_A3_a_kill_every_half_second_for_30_s_loses_nothing() -> None:
    verdict = kills.run(30.0, seed=11, kill_every_s=0.5)

    print(verdict.report.numbers)
    assert verdict.problems(30.0) == []
    assert verdict.kills >= 40


def test_case_A4_the_place_of_a_killed_promoter_frees_itself(field: Field) -> None:
    """It is the only thing that a worker holds for all; a sweep needs nothing of the kind."""
    leader = field.serving()
    field.until(lambda: field.queue.command("GET", field.queue.keys.promoter), "it has the place")
    field.serving()
    field.enqueue("nap", 1, delay=1.0)
    leader.kill9()
    assert f"-{leader.pid}-".encode() in field.queue.command("GET", field.queue.keys.promoter)
    field.happens("S", 1, within_s=1.0 + 2 * LONGEST_S)

    field.judge()


def test_case_B1_the_result_of_the_second_run_stays_when_the_first_wakes_up(field: Field) -> None:
    [handle] = field.enqueue("tells", 1)
    zombie = field.worker(armed="settle.before=stop@1")
    field.until(zombie.stopped, "it freezes with a result that is not written")
    field.serving()
    assert handle.result_sync(10) == 2
    zombie.send(signal.SIGCONT)
    field.until(lambda: "came too late" in zombie.said(), "the zombie is refused")

    field.judge()
    assert handle.result_sync(1) == 2
    assert (field.totals()["done"], field.totals()["lost"]) == (1, 1)
    assert f"complete of job {handle.id}" in zombie.said()


def test_case_B10_a_job_of_fifty_leases_starts_exactly_once(field: Field) -> None:
    """Also case A9, longer: plain and async, while another worker sweeps and no lease is seen to end."""
    field.enqueue("nap", 1, args=(50 * LEASE_S,))
    field.enqueue("plain", 2, args=(50 * LEASE_S,))
    worker = field.serving()
    field.until(lambda: field.count("S") == 2, "both run")
    field.serving()
    silent_ms = [0]

    def ended() -> bool:
        silent_ms.extend(row[2] for row in field.queue.pending())
        return field.count("E") == 2

    field.until(ended, "both have ended", within_s=60 * LEASE_S)
    field.judge()
    worker.send(signal.SIGTERM)
    worker.ended()
    renewed = re.search(r"(\d+) leases? renewed", worker.said())
    assert (field.count("S"), field.totals()["reclaimed"]) == (2, 0)
    assert max(silent_ms) < LEASE_S * 1000
    assert renewed
    assert int(renewed[1]) >= 2 * 40


@pytest.mark.parametrize("point", ["operate.before_replay", "operate.after_replay"])
def test_case_J4_a_replay_that_is_killed_leaves_each_job_in_one_place(field: Field, point: str) -> None:
    field.enqueue("ends", *range(1200), args=("bury",))
    worker = field.serving(concurrency=100)
    field.until(lambda: field.queue.counts()["dead"] == 1200, "all are dead")
    worker.kill9()
    assert replay(field, f"{point}=kill9@2") == KILLED
    keys = field.queue.keys
    dead = {row["id"] for row in field.queue.dead()}
    queued = set(field.queue.command("HKEYS", keys.moved))

    assert len(dead) + len(queued) == len(dead | queued) == 1200
    assert field.queue.length() == len(queued) == field.totals()["replayed"]
    assert queued
    assert dead
    assert replay(field) == 0
    field.serving(concurrency=100)
    field.drained()
    assert (field.totals()["done"], field.queue.counts()["dead"], field.count("E")) == (1200, 0, 1200)


def replay(field: Field, armed: str = "") -> int:
    """Replay all dead jobs from the command line; return the exit code."""
    words = ["-m", "streamjobs", "dead", "replay", "--yes", "--url", field.server.url, "--namespace", NAMESPACE]
    environment = {**os.environ, failpoints.VARIABLE: armed}
    return subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, check=False, timeout=60).returncode
