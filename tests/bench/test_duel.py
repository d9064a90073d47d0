"""A cycle whose jobs do not all end as they should makes a result void; the others give medians."""

import os
import select
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import redis

from benchmarks import drain, enqueue
from benchmarks.duel import Cycle, Duel, Round, Size, Void, fight, judge, run_cycle
from benchmarks.jobs import KIND, QUEUE, body
from benchmarks.lab import Lab, SideFailed
from benchmarks.measure import Order, Sample, Spread
from streamjobs.protocol.keys import QueueKeys

pytestmark = pytest.mark.bench

ROOT = Path(__file__).resolve().parents[2]
JOBS = 1200
BARE = Cycle("bare_enqueue", "bare_drain")


def duel(ours: Cycle, bare: Cycle, limit_us: float = 1e9) -> Duel:
    return Duel(scenario="drain", variant="test", ours=ours, bare=bare, measured="drained", bare_limit_us=limit_us)


def test_bodies_are_100_bytes() -> None:
    assert {len(body(number)) for number in (0, 1, 199_999, 899_999)} == {100}


@pytest.mark.parametrize("adds", sorted(enqueue.SIDES))
@pytest.mark.parametrize("drains", sorted(drain.SIDES))
def test_each_side_drains_what_each_side_adds(lab: Lab, adds: str, drains: str) -> None:
    order = lab.order(JOBS)

    done = run_cycle(lab, Cycle(adds, drains), order)

    assert done.drained is not None
    assert done.enqueued.jobs == done.drained.jobs == JOBS
    assert done.bytes_per_job > 100
    with redis.Redis.from_url(lab.url) as client:
        assert list(client.scan_iter(match=f"{order.namespace}:*")) == []


def test_two_processes_drain_together_and_each_sees_all_done(lab: Lab) -> None:
    for side in ("worker_shared", "bare_drain"):
        done = run_cycle(lab, Cycle("bare_enqueue", side, workers=2), lab.order(JOBS))

        assert done.drained is not None
        assert done.drained.jobs == JOBS


def test_jobs_are_drained_while_others_add_them(lab: Lab) -> None:
    for cycle in (Cycle("enqueue_many", "worker", at_once=True), Cycle("bare_enqueue", "bare_drain", at_once=True)):
        done = run_cycle(lab, cycle, lab.order(JOBS))

        assert done.drained is not None
        assert done.enqueued.jobs == done.drained.jobs == JOBS


@pytest.mark.parametrize("adds", sorted(enqueue.SINGLE_SIDES))
@pytest.mark.parametrize("callers", [1, 7, 2 * JOBS])
def test_every_caller_adds_its_share(lab: Lab, adds: str, callers: int) -> None:
    done = run_cycle(lab, Cycle(adds), lab.order(JOBS, callers=callers))

    assert done.drained is None
    assert done.enqueued.jobs == JOBS


@pytest.mark.parametrize("drains", sorted(drain.MORE_SIDES))
def test_each_other_drain_ends_what_was_added(lab: Lab, drains: str) -> None:
    done = run_cycle(lab, Cycle("enqueue_many", drains), lab.order(JOBS))

    assert done.drained is not None
    assert done.drained.jobs == JOBS


def test_jobs_that_are_never_drained_are_counted(lab: Lab) -> None:
    order = lab.order(JOBS)
    with redis.Redis.from_url(lab.url) as client:
        client.xadd(QueueKeys(order.namespace, QUEUE).stream, {"kind": KIND, "body": "{}", "meta": ""})

    with pytest.raises(Void, match=r"jobs waiting after bare_one: 1201, expected 1200"):
        run_cycle(lab, Cycle("bare_one"), order)


def test_jobs_that_stay_make_it_void(lab: Lab) -> None:
    with pytest.raises(Void, match=r"entries left by bare_enqueue: 2400, expected 0"):
        run_cycle(lab, Cycle("bare_enqueue", "bare_enqueue"), lab.order(JOBS))


def test_jobs_too_many_make_it_void(lab: Lab) -> None:
    order = lab.order(JOBS)
    with redis.Redis.from_url(lab.url) as client:
        client.xadd(QueueKeys(order.namespace, QUEUE).stream, {"kind": KIND, "body": "{}", "meta": ""})

    with pytest.raises(Void, match=r"jobs waiting after bare_enqueue: 1201, expected 1200"):
        run_cycle(lab, BARE, order)


def test_a_done_counter_that_differs_makes_it_void(lab: Lab) -> None:
    order = lab.order(JOBS)
    with redis.Redis.from_url(lab.url) as client:
        client.hset(QueueKeys(order.namespace, QUEUE).totals, "done", -1)

    with pytest.raises(Void, match=r"jobs counted done by worker: 1199, expected 1200"):
        run_cycle(lab, Cycle("bare_enqueue", "worker"), order)


def test_a_side_that_fails_makes_it_void(lab: Lab, capfd: pytest.CaptureFixture[str]) -> None:
    # A lab of its own: its processes write where this test's output goes.
    with closing(Lab(lab.url)) as own, pytest.raises(SideFailed, match="no_such_side ended without a sample"):
        own.run("no_such_side", own.order(1))
    assert "no_such_side" in capfd.readouterr().err


def test_a_side_that_does_not_end_makes_it_void_and_is_ended(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    with lab.ready("worker") as [side]:
        with monkeypatch.context() as soon:
            soon.setattr("benchmarks.lab.SIDE_S", 0.1)
            side.give(lab.order(1))  # a job that never comes
            with pytest.raises(SideFailed, match="worker did not end within 0 s"):
                side.sample()
        handle = os.pidfd_open(side.pid)
    with open(handle, "rb"):
        assert select.select([handle], [], [], 30)[0]


PARENT = """
import sys
from benchmarks.lab import Lab

lab = Lab(sys.argv[1])
with lab.started("worker", lab.order(1)) as side:  # a job that never comes
    print(side.pid, flush=True)
    sys.stdin.read()
"""


def test_a_side_and_its_template_end_with_their_parent(lab: Lab) -> None:
    words = [sys.executable, "-c", PARENT, lab.url]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        side = int(parent.stdout.readline())
        template = int(Path(f"/proc/{side}/stat").read_text("ascii").split()[3])
        for handle in [os.pidfd_open(pid) for pid in (side, template)]:
            parent.kill()
            with open(handle, "rb"):
                assert select.select([handle], [], [], 30)[0]


def test_each_side_is_a_process_of_its_own(lab: Lab) -> None:
    with lab.ready("worker", "worker") as [one, other], lab.ready("worker") as [third]:
        assert len({one.pid, other.pid, third.pid, os.getpid()}) == 4


LOADED = """
import asyncio, gc, socket, threading
from benchmarks import side

assert threading.active_count() == 1
assert [one for one in gc.get_objects() if isinstance(one, (asyncio.AbstractEventLoop, socket.socket))] == []
"""


def test_what_sides_are_forked_from_has_no_thread_loop_or_connection() -> None:
    subprocess.run([sys.executable, "-c", LOADED], cwd=ROOT, check=True)


def test_a_void_cycle_voids_its_result_and_leaves_no_numbers(lab: Lab) -> None:
    result = fight(lab, duel(Cycle("bare_enqueue", "bare_enqueue"), BARE), Size(2, 500))

    assert result.void is not None
    assert result.jobs_per_s is result.ratio_to_bare is result.bytes_per_waiting_job is None


def test_both_sides_run_in_turn_and_swap_their_order(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    result = fight(lab, duel(Cycle("bare_enqueue_sync", "bare_drain"), BARE), Size(3, 500))

    assert result.void is None
    told = [line.split(":")[0].split()[2:] for line in capsys.readouterr().err.splitlines()]
    turns = ["ours", "bare", "bare", "ours", "ours", "bare"]
    assert told == [[f"{n}/6", side] for n, side in enumerate(turns, 1)]


def test_a_cycle_that_would_be_over_at_once_takes_more_jobs(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    more = Cycle("bare_enqueue", "bare_drain", times=3)
    done: list[tuple[Cycle, int]] = []

    def noted(lab: Lab, cycle: Cycle, order: Order) -> Round:
        done.append((cycle, order.jobs))
        return run_cycle(lab, cycle, order)

    monkeypatch.setattr("benchmarks.duel.run_cycle", noted)
    result = fight(lab, duel(BARE, more), Size(1, 500))

    assert done[-2:] == [(BARE, 500), (more, 1500)]
    assert result.jobs == 500
    assert (result.ratio_to_bare or 0) > 0


def rounds(*seconds: float) -> list[Round]:
    added = Sample(jobs=1000, seconds=9.0, client_s=9.0, server_s=9.0)
    return [Round(added, Sample(1000, at, at / 100, at / 200), 150.0) for at in seconds]


def test_the_ratio_is_taken_within_each_repeat() -> None:
    result = judge(duel(BARE, BARE), Size(3, 1000), ours=rounds(2.0, 8.0, 4.0), bare=rounds(1.0, 2.0, 4.0))

    assert result.jobs_per_s == Spread(250.0, 125.0, 500.0)
    assert result.bare_jobs_per_s == Spread(500.0, 250.0, 1000.0)
    assert result.ratio_spread == Spread(0.5, 0.25, 1.0)
    assert result.ratio_to_bare == 0.5
    assert result.client_us_per_job == 40.0
    assert result.bare_server_us_per_job == 10.0
    assert result.bytes_per_waiting_job == 150.0


@pytest.mark.parametrize(("limit_us", "doubtful"), [(10.1, False), (9.9, True)])
def test_a_slow_bare_loop_is_said_to_be_doubtful(limit_us: float, doubtful: bool) -> None:
    result = judge(duel(BARE, BARE, limit_us), Size(1, 1000), ours=rounds(1.0), bare=rounds(1.0))

    assert result.baseline_doubtful is doubtful
