"""The checker believes a clean history, and catches each planted damage by the invariant it breaks."""

from pathlib import Path
from time import process_time

import msgspec
import pytest

from tests.faults import history
from tests.faults.audit import Snapshot
from tests.faults.checker import check
from tests.faults.clean_history import RULES, clean
from tests.faults.damages import Damage, lost, payload_changed
from tests.faults.flow_damages import ALL
from tests.faults.history import Fault, Loss, Settled, Signalled
from tests.faults.scene import Scene


@pytest.fixture
def scene() -> Scene:
    return clean()


def test_a_clean_history_passes_and_duplicates_are_a_number(scene: Scene) -> None:
    report = check(scene.history(), scene.snapshot(), RULES)

    assert report.violations == [], str(report)
    assert (report.jobs, report.dead, report.cancelled, report.unknown) == (26, 1, 1, 1)
    assert (report.duplicated, report.refused, report.crashed, report.reclaimed) == (5, 2, 3, 7)
    assert (report.duplicates_refused, report.limited) == (7, 1)
    assert report.longest_recovery_s == pytest.approx(1.4, abs=0.1)


@pytest.mark.parametrize(("invariant", "damage"), ALL, ids=lambda value: getattr(value, "__name__", value))
def test_a_planted_damage_is_caught_by_its_invariant(scene: Scene, invariant: str, damage: Damage) -> None:
    job = damage(scene)

    report = check(scene.history(), scene.snapshot(), RULES)

    found = [finding for finding in report.violations if finding.invariant == invariant]
    assert found, str(report)
    # Whatever is done behind the back of the counters shows in them as well.
    assert report.caught() - {"I19"} <= {invariant}, str(report)
    assert all(finding.job == job for finding in found), str(report)


def test_findings_name_the_job_and_its_events(scene: Scene) -> None:
    job = payload_changed(scene)

    report = check(scene.history(), scene.snapshot(), RULES)

    told = str(report)
    assert f"I2: {job}: another payload than was enqueued" in told
    assert "producer" in told
    assert "worker-1" in told


def test_what_a_loss_window_touches_is_listed_and_excused(scene: Scene) -> None:
    since = scene.now
    job = lost(scene)
    scene.note("harness", Loss(scene.now, since, "the server lost its memory"))

    report = check(scene.history(), scene.snapshot(), RULES)

    assert report.ok, str(report)
    assert ("I1", job) in {(finding.invariant, finding.job) for finding in report.excused}
    assert report.windows == [(since, scene.now - 0.01, "the server lost its memory")]


def test_what_a_loss_window_does_not_touch_counts(scene: Scene) -> None:
    job = lost(scene)
    scene.wait(1)
    scene.note("harness", Loss(scene.now, scene.now - 0.5, "the server lost its memory"))

    report = check(scene.history(), scene.snapshot(), RULES)

    assert [finding.job for finding in report.violations] == [job]


def test_no_loss_window_excuses_a_changed_payload(scene: Scene) -> None:
    since = scene.now
    job = payload_changed(scene)
    scene.note("harness", Loss(scene.now, since, "the server lost its memory"))

    report = check(scene.history(), scene.snapshot(), RULES)

    assert [(finding.invariant, finding.job) for finding in report.violations] == [("I2", job)]


def test_a_success_whose_reply_was_lost_is_no_loss(scene: Scene) -> None:
    job = scene.enqueue("x")
    run = scene.start("worker-5", job, "x")
    scene.end("worker-5", run)
    scene.settle("worker-5", "complete", job, word="UNSURE")
    scene.settle("worker-5", "complete", job, word="LOST")
    scene.totals["done"] += 1

    report = check(scene.history(), scene.snapshot(), RULES)

    assert report.ok, str(report)
    assert report.unsure == 1


def test_a_start_that_crossed_with_a_success_is_counted_and_no_breach(scene: Scene) -> None:
    """Claimed before another worker's success came: its worker could not know."""
    job = scene.enqueue("x")
    run = scene.start("worker-5", job, "x")
    scene.note("harness", Signalled(scene.now, scene.process("worker-5").pid, "SIGSTOP"))
    scene.wait(1.2)
    claimed = scene.now
    scene.end("worker-5", run)
    scene.settle("worker-5", "complete", job)
    second = scene.start("worker-1", job, "x", deliveries=2, attempt=2, claimed=claimed)
    scene.end("worker-1", second)
    scene.settle("worker-1", "complete", job, deliveries=2, word="LOST")

    report = check(scene.history(), scene.snapshot(), RULES)

    assert report.ok, str(report)
    assert report.late_starts == 1


def test_a_worker_that_was_frozen_may_take_in_its_claim_after_the_end(scene: Scene) -> None:
    job = scene.enqueue("x")
    scene.note("harness", Signalled(scene.now, scene.process("worker-5").pid, "SIGSTOP"))
    scene.wait(1.2)
    scene.live_through(job, "x", deliveries=2, attempt=2)
    scene.note("harness", Signalled(scene.now, scene.process("worker-5").pid, "SIGCONT"))
    run = scene.start("worker-5", job, "x")
    scene.end("worker-5", run)
    scene.settle("worker-5", "complete", job, word="LOST")

    report = check(scene.history(), scene.snapshot(), RULES)

    assert report.ok, str(report)
    assert report.late_starts == 1


def test_a_claim_may_be_held_up_on_its_way_until_its_entry_is_gone(scene: Scene) -> None:
    job = scene.enqueue("x")
    since = scene.now
    scene.wait(1.2)
    scene.live_through(job, "x", deliveries=2, attempt=2, outcome="snooze")
    scene.note("harness", Fault(scene.now, since, "cut hold", scene.process("worker-5").pid))
    run = scene.start("worker-5", job, "x")
    scene.end("worker-5", run, "snooze")
    scene.settle("worker-5", "snooze", job, word="LOST")
    scene.live_through(job, "x", scene.new_id(), attempt=2)

    report = check(scene.history(), scene.snapshot(), RULES)

    assert report.ok, str(report)


def test_a_retry_whose_reply_came_after_the_next_start_is_a_failure_all_the_same(scene: Scene) -> None:
    job = scene.enqueue("x")
    run = scene.start("worker-5", job, "x")
    scene.end("worker-5", run, "error")
    sent, entry = scene.now, scene.new_id()
    scene.wait(0.1)
    scene.live_through(job, "x", entry, attempt=2)
    scene.note("worker-5", Settled(scene.now, sent, "retry", job, job, 1))
    scene.totals["retried"] += 1

    report = check(scene.history(), scene.snapshot(), RULES)

    assert report.ok, str(report)


def test_a_worker_may_give_back_what_it_ran_before_and_claimed_again(scene: Scene) -> None:
    job = scene.enqueue("x")
    run = scene.start("worker-5", job, "x")
    scene.note("harness", Signalled(scene.now, scene.process("worker-5").pid, "SIGSTOP"))
    scene.wait(1.2)
    scene.start("worker-2", job, "x", deliveries=2, attempt=2)
    scene.end("worker-5", run, "snooze")
    scene.settle("worker-5", "snooze", job, word="LOST")
    scene.wait(1.2)
    scene.settle("worker-5", "release", "", job, deliveries=3)
    scene.live_through(job, "x", deliveries=4, attempt=3)

    report = check(scene.history(), scene.snapshot(), RULES)

    assert report.ok, str(report)


def test_starts_that_were_marked_and_never_seen_count_as_crashes(scene: Scene) -> None:
    """Killed between the mark and the handler, three times."""
    job = scene.enqueue("x")
    for n in (2, 3):
        scene.settle(f"marked-{n}", "suspect", "", job, deliveries=n)
        scene.kill(f"marked-{n}")
    scene.settle("worker-1", "bury", job, deliveries=4)
    scene.bury(job, "x", "crash_limit")

    report = check(scene.history(), scene.snapshot(), RULES)

    assert report.ok, str(report)


def test_the_wait_for_a_start_begins_anew_with_each_fault(scene: Scene) -> None:
    job = scene.enqueue("x")
    scene.start("worker-5", job, "x")
    scene.kill("worker-5")
    scene.wait(4)
    scene.note("harness", Fault(scene.now, scene.now - 3.9, "cut"))
    scene.wait(1.3)
    scene.live_through(job, "x", deliveries=2, attempt=2)

    report = check(scene.history(), scene.snapshot(), RULES)

    assert report.ok, str(report)


def test_a_key_that_a_started_job_still_holds_is_found(scene: Scene) -> None:
    job = scene.enqueue("x", key="begun", mode="started")
    scene.live_through(job, "x", outcome="error")
    scene.place(job, "retries", "x")
    scene.holders["mail:begun"] = job

    report = check(scene.history(), scene.snapshot(), msgspec.structs.replace(RULES, drained=False))

    assert [(finding.invariant, finding.job) for finding in report.violations] == [("I12", job)]


def test_who_died_may_have_said_that_it_starts(scene: Scene) -> None:
    first, second = (scene.enqueue(body, key="soon", mode="started") for body in "xy")
    scene.kill("worker-5")
    scene.wait(1.2)
    for job, body, deliveries in ((first, "x", 2), (second, "y", 1)):
        scene.settle("worker-1", "start", job, deliveries=deliveries)
        scene.live_through(job, body, deliveries=deliveries, attempt=deliveries)

    report = check(scene.history(), scene.snapshot(), RULES)

    assert report.ok, str(report)


def test_newer_arguments_whose_call_never_learnt_its_outcome_may_have_come_or_not(scene: Scene) -> None:
    job = scene.enqueue("x", key="n", mode="latest")
    for body in "yz":
        scene.answer(scene.call(body, key="n", mode="latest"), "unknown")
    scene.live_through(job, "y")
    scene.live_through(scene.enqueue("other", key="n", mode="latest"), "other")

    report = check(scene.history(), scene.snapshot(), RULES)

    assert report.ok, str(report)


def test_a_job_whose_arguments_are_replaced_before_its_start_is_known_by_its_key(scene: Scene) -> None:
    """One that nobody was told of, and then one that follows it: each is first seen with newer arguments."""
    scene.answer(scene.call("x", key="n", mode="latest"), "unknown")
    job = scene.follow()
    scene.duplicate(job, "y", key="n", mode="latest")
    run = scene.start("worker-1", job, "y")
    scene.duplicate(job, "z", key="n", mode="latest")
    scene.end("worker-1", run)
    scene.settle("worker-1", "complete", job)
    follower = scene.follow()
    scene.duplicate(follower, "w", key="n", mode="latest")
    scene.live_through(follower, "w")

    report = check(scene.history(), scene.snapshot(), RULES)

    assert report.ok, str(report)


def test_limits_are_not_kept_over_a_loss_of_all_that_was_known(scene: Scene) -> None:
    jobs = {body: scene.enqueue(body) for body in "wxyz"}
    scene.live_through(jobs["w"], "w", lanes=("pace 1",))
    run = scene.start("worker-1", jobs["x"], "x", lanes=("turn 1", "pace 1"))
    scene.note("harness", Loss(scene.now, scene.now - 0.005, "the server lost its memory"))
    for body in "yz":
        scene.live_through(jobs[body], body, lanes=("turn 1", "pace 1"))
    scene.end("worker-1", run)
    scene.settle("worker-1", "complete", jobs["x"])

    report = check(scene.history(), scene.snapshot(), RULES)

    assert report.ok, str(report)


def test_what_runs_on_after_its_job_is_gone_keeps_its_place_for_a_lease(scene: Scene) -> None:
    jobs = {body: scene.enqueue(body) for body in "xyz"}
    run = scene.start("worker-1", jobs["x"], "x", lanes=("turn 1",))
    scene.operate("cancel", jobs["x"], "RUNNING")
    scene.live_through(jobs["y"], "y", lanes=("turn 1",))
    scene.wait(1.1)
    scene.live_through(jobs["z"], "z", lanes=("turn 1",))
    scene.end("worker-1", run, "cancelled")

    report = check(scene.history(), scene.snapshot(), RULES)

    assert [(finding.invariant, finding.job) for finding in report.violations] == [("I23", jobs["y"])]


def _hurried(scene: Scene, seconds: float, *, set_by: float = 0.0) -> None:
    """Let a delay, a window and a pace come to their ends so much too early by our clock."""
    scene.live_through(scene.enqueue("window", key="hurried", window_ms=2000), "window")
    delayed = scene.enqueue("delayed", delay_ms=2000)
    paced = {str(n): scene.enqueue(str(n)) for n in range(3)}
    for n in "01":
        scene.live_through(paced[n], n, lanes=("pace 1",))
    scene.wait(2 - seconds)
    scene.ahead += set_by
    scene.live_through(scene.enqueue("after", key="hurried", window_ms=2000), "after")
    scene.live_through(delayed, "delayed", scene.new_id())
    scene.live_through(paced["2"], "2", lanes=("pace 1",))
    scene.totals["promoted"] += 1


def test_where_the_servers_clock_is_set_nothing_is_early_for_it(scene: Scene) -> None:
    _hurried(scene, 1.8)
    assert check(scene.history(), scene.snapshot(), RULES).caught() == {"I8", "I12", "I24"}

    scene = clean()
    _hurried(scene, 1.8, set_by=1.8)
    report = check(scene.history(), scene.snapshot(), RULES)

    assert report.ok, str(report)


def test_a_clock_that_is_set_right_little_by_little_keeps_time(scene: Scene) -> None:
    for n in range(40):
        scene.live_through(scene.enqueue(str(n)), str(n))
        scene.wait(0.1)
        scene.ahead += 0.0008
    _hurried(scene, 0.015)

    report = check(scene.history(), scene.snapshot(), RULES)

    assert report.ok, str(report)


def test_a_claim_that_waits_for_a_limit_is_not_late(scene: Scene) -> None:
    job = scene.enqueue("x")
    scene.start("worker-5", job, "x", lanes=("pace 1",))
    scene.kill("worker-5")
    scene.wait(1.2)
    scene.settle("worker-1", "admit", "", job, deliveries=2, word="PARKED")
    scene.wait(3)
    scene.live_through(job, "x", deliveries=3, attempt=2, lanes=("pace 1",))

    report = check(scene.history(), scene.snapshot(), RULES)

    assert report.ok, str(report)


def test_a_line_that_was_cut_off_is_left_out_and_reported(scene: Scene, tmp_path: Path) -> None:
    for process in scene.history():
        (tmp_path / f"{process.name}.jsonl").write_bytes(history.encode(process.events))
    with (tmp_path / "worker-2.jsonl").open("ab") as file:
        file.write(b'{"is":"end","at":17')

    report = check(history.read(tmp_path), scene.snapshot(), RULES)

    assert report.ok, str(report)
    assert report.torn == 1


def test_many_events_are_judged_in_no_time(tmp_path: Path) -> None:
    """1.1 million took 2.6 s of processor time, files read included; here it is a tenth of them."""
    jobs = 20_000
    scene = Scene()
    for number in range(jobs):
        scene.live_through(scene.enqueue(f"job {number}"), f"job {number}")
    for process in scene.history():
        (tmp_path / f"{process.name}.jsonl").write_bytes(history.encode(process.events))
    snapshot = Snapshot(totals={"mail": dict(scene.totals)})

    began = process_time()
    report = check(history.read(tmp_path), snapshot, RULES)

    assert report.ok, str(report)
    assert report.done == jobs
    assert process_time() - began < 3
