"""More ways to damage a history: endings, keys, batches, times and counters, which break I10 to I22."""

from tests.faults.damages import DAMAGES, Damage, breaks
from tests.faults.history import Died, Fault, Signalled, Stopping
from tests.faults.scene import Scene


@breaks("I10")
def promoted_twice(scene: Scene) -> str:
    scene.totals["promoted"] += 1
    return ""


@breaks("I11")
def ended_twice(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.live_through(job, "x")
    scene.settle("worker-1", "complete", job)
    return job


@breaks("I11")
def started_after_the_end(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.live_through(job, "x")
    scene.wait(1)
    scene.start("worker-1", job, "x", deliveries=2)
    return job


@breaks("I11")
def ran_after_it_was_cancelled(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.operate("cancel", job, "WAITING")
    scene.start("worker-1", job, "x")
    return job


@breaks("I11")
def dead_after_success(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.live_through(job, "x")
    scene.bury(job, "x")
    return job


@breaks("I12")
def duplicate_of_an_unknown_job(scene: Scene) -> str:
    scene.answer(scene.call("x", key="new"), "ok", "mail:7-7", duplicate=True)
    return "mail:7-7"


@breaks("I12")
def a_key_is_held_twice(scene: Scene) -> str:
    first, second = scene.enqueue("x", key="two"), scene.enqueue("y", key="two")
    scene.live_through(first, "x")
    scene.live_through(second, "y")
    return second


@breaks("I12")
def a_key_outlives_its_job(scene: Scene) -> str:
    job = scene.enqueue("x", key="kept")
    scene.live_through(job, "x")
    scene.answer(scene.call("y", key="kept"), "ok", job, duplicate=True)
    return job


@breaks("I12")
def a_key_is_left(scene: Scene) -> str:
    job = scene.enqueue("x", key="left")
    scene.live_through(job, "x")
    scene.holders["mail:left"] = job
    return job


@breaks("I13")
def an_item_without_outcome(scene: Scene) -> str:
    scene.call("x", batch=1)
    scene.live_through(scene.enqueue("y", batch=1), "y")
    return ""


@breaks("I13")
def a_batch_out_of_order(scene: Scene) -> str:
    calls = [scene.call("x", batch=2), scene.call("y", batch=2)]
    jobs = ["mail:900002-0", "mail:900001-0"]
    for call, job, body in zip(calls, jobs, "xy", strict=True):
        scene.answer(call, "ok", job)
        scene.live_through(job, body)
    return jobs[1]


@breaks("I14")
def started_beside_a_healthy_run(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.wait(3)
    run = scene.start("worker-1", job, "x")
    scene.wait(1.5)
    scene.start("worker-6", job, "x", deliveries=2, attempt=2)
    scene.end("worker-1", run)
    scene.settle("worker-1", "complete", job)
    return job


@breaks("I15")
def reclaimed_too_late(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.start("worker-5", job, "x")
    scene.kill("worker-5")
    scene.wait(2)
    scene.live_through(job, "x", deliveries=2, attempt=2)
    return job


@breaks("I16")
def stuck(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.place(job, "orphaned", "x")
    return job


@breaks("I16")
def slow_to_heal(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.note("harness", Fault(scene.now, scene.now - 1, "cut"))
    scene.wait(6)
    scene.live_through(job, "x")
    return job


@breaks("I17")
def started_after_sigterm(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.note("worker-6", Stopping(scene.now))
    scene.wait(0.2)
    scene.live_through(job, "x", who="worker-6")
    return job


@breaks("I17")
def slow_to_stop(scene: Scene) -> str:
    pid = scene.process("worker-6").pid
    scene.note("harness", Signalled(scene.now, pid, "SIGTERM"))
    scene.wait(3)
    scene.note("harness", Died(scene.now, pid, 0))
    return ""


@breaks("I18")
def keys_are_left(scene: Scene) -> str:
    scene.leftovers.append("sj:{mail}:moved: 1 moved jobs that are not there: 1-0")
    return ""


@breaks("I19")
def a_counter_is_wrong(scene: Scene) -> str:
    scene.totals["done"] += 1
    return ""


@breaks("I20")
def replayed_twice(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.live_through(job, "x", outcome="permanent")
    scene.operate("replay", job)
    scene.operate("replay", job)
    scene.live_through(job, "x", scene.new_id())
    return job


@breaks("I21")
def buried_by_old_code(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.settle("worker-1", "bury", job)
    scene.bury(job, "x", "unknown_kind")
    return job


@breaks("I22")
def more_effects_than_starts(scene: Scene) -> str:
    job = scene.enqueue("x")
    run = scene.start("worker-1", job, "x")
    scene.did("worker-1", run)
    scene.did("worker-1", run)
    scene.end("worker-1", run)
    scene.settle("worker-1", "complete", job)
    return job


ALL: list[tuple[str, Damage]] = DAMAGES
"""Those of the other file as well: each with the invariant that it breaks."""
