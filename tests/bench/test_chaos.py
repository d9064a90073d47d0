"""The soak: what is drawn is drawn again, what is too easy is void, and a short run shows what a long one does."""

import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import redis

from benchmarks.chaos import soak, verdict
from benchmarks.chaos.faults import Blow
from benchmarks.chaos.plan import INTERVAL_S, NEEDED, WAYS, make_plan
from benchmarks.chaos.recovery import recoveries
from benchmarks.chaos.verdict import Part, Span
from benchmarks.document import Document, Soak
from tests.faults.history import Fault, Signalled
from tests.faults.rules import Evidence, Rules
from tests.faults.scene import QUEUE, Scene
from tests.faults.server_faults import DURABLE
from tests.faults.stories import Stories
from tests.servers import Server

ROOT = Path(__file__).resolve().parents[2]
SEEDS = range(20)


# What is drawn.


def test_the_same_seed_gives_the_same_plan_and_a_longer_run_begins_with_it() -> None:
    plan = make_plan(7, 300)

    assert make_plan(7, 300) == plan
    assert make_plan(7, 120) == plan[:30]
    assert make_plan(8, 300) != plan


@pytest.mark.parametrize("seed", SEEDS)
def test_five_minutes_have_enough_of_everything(seed: int) -> None:
    count = Counter(fault.kind for fault in make_plan(seed, 300))

    assert count == {"kill": 30, "pause": 15, "cut": 15, "flush": 5, "restart": 5, "stop": 5}


@pytest.mark.parametrize("seed", SEEDS)
def test_each_minute_begins_with_what_a_run_must_not_lack(seed: int) -> None:
    plan = make_plan(seed, 300)

    for minute in range(5):
        first = [(fault.kind, fault.how) for fault in plan[15 * minute : 15 * minute + len(NEEDED)]]
        assert sorted(first) == sorted((card.kind, card.how) for card in NEEDED)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_fault_is_over_when_the_next_one_begins(seed: int) -> None:
    for slot, fault in enumerate(make_plan(seed, 300)):
        assert slot * INTERVAL_S <= fault.at_s
        assert fault.at_s + fault.seconds <= (slot + 1) * INTERVAL_S
        assert (fault.way in WAYS) == (fault.kind == "cut")
        assert 0 <= fault.draw < 1


def test_a_server_of_others_keeps_its_scripts_and_its_process() -> None:
    kinds = {fault.kind for fault in make_plan(7, 300, own_server=False)}

    assert kinds == {"kill", "pause", "cut", "stop"}


# What is void.


def enough() -> Part:
    least = 60 * verdict.LEAST_JOBS_PER_S
    return Part(accepted=least, refused=1, unknown=1, reclaimed=1, duplicates=1, limited=1, slots=1, skipped=1)


def test_a_run_that_had_enough_in_every_minute_is_not_void() -> None:
    assert verdict.why_void([enough(), enough()], Span(1000.0, 1120.0)) is None


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("accepted", 60 * verdict.LEAST_JOBS_PER_S - 31, "part 2 of 2: 199 jobs/s came in, 200 are needed"),
        ("refused", 0, "part 2 of 2: no refusal"),
        ("unknown", 0, "part 2 of 2: no unknown enqueue"),
        ("reclaimed", 0, "part 2 of 2: no reclaim"),
        ("duplicates", 0, "part 2 of 2: no duplicate"),
        ("limited", 0, "part 2 of 2: no wait for a limit"),
        ("slots", 0, "part 2 of 2: no slot of a cron"),
        ("skipped", 0, "part 2 of 2: no skipped effect"),
    ],
)
def test_a_run_is_void_if_one_minute_lacked_something(field: str, value: int, said: str) -> None:
    poor = enough()
    setattr(poor, field, value)

    assert verdict.why_void([enough(), poor], Span(1000.0, 1120.0)) == said


@pytest.mark.parametrize(("seconds", "parts"), [(0.0, 1), (6.0, 1), (119.0, 1), (120.5, 2), (300.0, 5)])
def test_a_run_is_judged_minute_by_minute(seconds: float, parts: int) -> None:
    span = Span(1000.0, 1000.0 + seconds)

    assert span.parts == parts
    assert (span.part(900.0), span.part(2000.0)) == (0, parts - 1)


def evidence_of(scene: Scene) -> Evidence:
    return Evidence(Stories(scene.history()), scene.snapshot(), Rules(lease_s=1.0))


def test_each_thing_counts_in_the_minute_in_which_it_was() -> None:
    scene = Scene()
    begin = scene.now
    job = scene.enqueue("x")
    run = scene.start("worker-1", job, "x")
    scene.wait(70)
    scene.start("worker-2", job, "x", deliveries=2)
    scene.end("worker-1", run, "error")
    scene.settle("worker-1", "retry", job, word="LOST")
    scene.answer(scene.call("y"), "unknown")
    scene.duplicate(job, "z", key="k")
    scene.settle("worker-1", "admit", job, word="PARKED")
    scene.live_through(scene.follow(), "{}", cron="beat", slot_ms=1000)
    other = scene.start("worker-1", job, "x")
    scene.guard("worker-1", other, "letter", "asks")
    scene.end("worker-1", other)

    found = verdict.parts(evidence_of(scene), Span(begin, begin + 120))

    second = Part(refused=1, unknown=1, reclaimed=1, duplicates=1, limited=1, slots=1, skipped=1)
    assert found == [Part(accepted=1), second]


def test_what_is_refused_for_its_own_first_try_and_what_was_given_back_do_not_count() -> None:
    scene = Scene()
    begin = scene.now
    job = scene.enqueue("x")
    run = scene.start("worker-1", job, "x")
    scene.end("worker-1", run)
    scene.settle("worker-1", "complete", job, word="UNSURE")
    scene.settle("worker-1", "complete", job, word="LOST")
    scene.settle("worker-1", "renew", job, word="CANCELLED")
    other = scene.enqueue("y")
    scene.live_through(other, "y", outcome="cancelled")
    scene.live_through(other, "y", deliveries=2)

    found = verdict.parts(evidence_of(scene), Span(begin, scene.now))

    assert found == [Part(accepted=2)]


# How long a recovery takes.


def waits(scene: Scene, *blows: Blow) -> list[float]:
    return [round(recovery.seconds, 1) for recovery in recoveries(blows, evidence_of(scene))]


def test_after_a_kill_each_job_is_waited_for_that_was_held() -> None:
    scene = Scene()
    ran, unstarted, done = (scene.enqueue(body) for body in "xyz")
    scene.start("worker-1", ran, "x")
    at = scene.now
    scene.kill("worker-1")
    scene.live_through(done, "z")
    scene.wait(1.2)
    scene.live_through(ran, "x", deliveries=2, attempt=2)
    scene.wait(0.5)
    scene.live_through(unstarted, "y", deliveries=2)

    # A success of the one killed may have been under way: nothing is waited for then.
    held = frozenset({ran, unstarted, f"{QUEUE}:1-1"})
    assert sorted(waits(scene, Blow("kill", at, held))) == [1.2, 1.8]


def test_after_a_pause_the_one_paused_may_end_its_jobs_itself() -> None:
    scene = Scene()
    job = scene.enqueue("x")
    run = scene.start("worker-1", job, "x")
    at = scene.now
    scene.note("harness", Signalled(at, scene.process("worker-1").pid, "SIGSTOP"))
    scene.wait(0.6)
    scene.end("worker-1", run)
    scene.settle("worker-1", "complete", job)

    assert waits(scene, Blow("pause", at, frozenset({job}))) == [0.6]


def test_after_a_cut_the_first_success_from_behind_it_counts() -> None:
    scene = Scene()
    ahead, behind = scene.process("worker-1").pid, scene.process("worker-2").pid
    at = scene.now
    scene.live_through(scene.enqueue("x"), "x", who="worker-1")
    scene.wait(0.8)
    scene.live_through(scene.enqueue("y"), "y", who="worker-2")

    assert waits(scene, Blow("cut", at, way="left", pids=frozenset({behind}))) == [0.9]
    assert waits(scene, Blow("cut", at, way="right", pids=frozenset({ahead}))) == [0.1]
    assert waits(scene, Blow("restart", at)) == [0.1]
    producer = scene.process("producer").pid
    assert waits(scene, Blow("cut", at, way="producers", pids=frozenset({producer}))) == [0.0]


def test_the_wait_begins_anew_with_what_was_broken_meanwhile() -> None:
    scene = Scene()
    at = scene.now
    scene.wait(3.0)
    scene.note("harness", Fault(scene.now, at + 1.0, "restart"))
    scene.wait(0.4)
    scene.live_through(scene.enqueue("x"), "x")

    assert waits(scene, Blow("flush", at)) == [0.5]


# A run.


@pytest.fixture
def durable(server_binary: Path) -> Iterator[Server]:
    with Server(server_binary, args=DURABLE) as server:
        yield server


@pytest.mark.bench
def test_a_short_run_loses_nothing_and_leaves_what_is_others(
    durable: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill, a pause that outlasts the lease, and a cut, beside somebody else's keys and scripts."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with durable.client() as client:
        client.set("chaos-of-others", "x")
        script = client.script_load("return 1")
    terms = soak.Terms(seed=3, seconds=5.4, interval_s=1.8)

    result = soak.run(terms, durable.url, "chaos-test", None)

    assert (result.lost, result.invented, result.stuck, result.findings) == (0, 0, 0, [])
    # Of these few seconds two are cut off, so how many jobs came in says nothing.
    assert all("jobs/s" in lack for lack in (result.void or "jobs/s").split("; ")), result
    assert (result.kills, result.pauses, result.cuts, result.restarts, result.flushes) == (1, 1, 1, 0, 0)
    assert min(result.refused, result.unknown, result.reclaimed, result.dead) > 0
    assert min(result.duplicates_refused, result.limited, result.slots, result.effects_skipped) > 0
    assert result.longest_recovery_s > 0
    with durable.client() as client:
        assert client.script_exists(script) == [True]
        assert [key for key in client.scan_iter() if not key.startswith(b"chaos-test:")] == [b"chaos-of-others"]


@pytest.mark.bench
def test_ctrl_c_ends_a_run_early_and_it_is_judged(server_url: str, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    words = ["-m", "benchmarks", "run", "chaos", "--minutes", "1", "--seed", "5", "--json", "-", "--url", server_url]
    with subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        said = next(line for line in iter(run.stderr.readline, b"") if b" of 60 s: " in line)
        run.send_signal(signal.SIGINT)
        told = run.stderr.read().decode()
        document = msgspec.json.decode(run.stdout.read(), type=Document)

    [result] = document.results
    assert isinstance(result, Soak)
    assert 0 < result.seconds < 60, said
    assert (result.seed, result.lost, result.invented, result.stuck, result.findings) == (5, 0, 0, 0, [])
    assert result.jobs > 0
    # In so short a time there is not one of everything.
    assert run.returncode == 1
    assert f"repeat it with: python -m benchmarks run chaos --minutes 1 --seed 5 --url {server_url}" in told
    assert "benchmarks: chaos soak is void: " in told
    with redis.Redis.from_url(server_url) as client:
        assert not list(client.scan_iter("chaos-*"))
