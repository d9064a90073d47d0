"""Damages to what flows by rules: keys of every mode, newer arguments, limits, slots, guarded effects."""

from tests.faults import more_damages
from tests.faults.damages import breaks
from tests.faults.history import Signalled
from tests.faults.scene import Scene


@breaks("I12")
def a_window_ends_early(scene: Scene) -> str:
    scene.live_through(scene.enqueue("x", key="early", window_ms=5000), "x")
    job = scene.enqueue("y", key="early", window_ms=5000)
    scene.live_through(job, "y")
    return job


@breaks("I12")
def a_window_never_ends(scene: Scene) -> str:
    job = scene.enqueue("x", key="late", window_ms=500)
    scene.live_through(job, "x")
    scene.wait(1)
    scene.duplicate(job, "y", key="late")
    return job


@breaks("I12")
def a_key_is_free_before_the_start(scene: Scene) -> str:
    first, second = (scene.enqueue(body, key="soon", mode="started") for body in "xy")
    for job, body in ((first, "x"), (second, "y")):
        scene.settle("worker-1", "start", job)
        scene.live_through(job, body)
    return second


@breaks("I12")
def a_key_is_held_after_the_start(scene: Scene) -> str:
    job = scene.enqueue("x", key="held", mode="started")
    run = scene.start("worker-1", job, "x")
    scene.duplicate(job, "y", key="held", mode="started")
    scene.end("worker-1", run)
    scene.settle("worker-1", "complete", job)
    return job


@breaks("I12")
def a_key_is_free_at_the_first_failure(scene: Scene) -> str:
    job = scene.enqueue("x", key="failed")
    scene.live_through(job, "x", outcome="error")
    other = scene.enqueue("y", key="failed")
    scene.live_through(job, "x", scene.new_id(), attempt=2)
    scene.live_through(other, "y")
    return other


@breaks("I1")
def the_newest_arguments_are_lost(scene: Scene) -> str:
    job = scene.enqueue("x", key="n", mode="latest")
    run = scene.start("worker-1", job, "x")
    scene.duplicate(job, "y", key="n", mode="latest")
    scene.end("worker-1", run)
    scene.settle("worker-1", "complete", job)
    return job


@breaks("I1")
def older_arguments_replace_newer_ones(scene: Scene) -> str:
    job = scene.enqueue("x", key="n", mode="latest")
    scene.duplicate(job, "y", key="n", mode="latest")
    scene.live_through(job, "x", claimed=scene.now - 0.02)
    return job


@breaks("I12")
def a_start_has_older_arguments(scene: Scene) -> str:
    job = scene.enqueue("x", key="n", mode="latest")
    scene.duplicate(job, "y", key="n", mode="latest")
    run = scene.start("worker-1", job, "x")
    scene.end("worker-1", run, "error")
    scene.settle("worker-1", "retry", job)
    scene.live_through(job, "y", scene.new_id(), attempt=2)
    return job


@breaks("I12")
def what_was_replaced_follows_too(scene: Scene) -> str:
    job = scene.enqueue("x", key="n", mode="latest")
    run = scene.start("worker-1", job, "x")
    for body in "yz":
        scene.duplicate(job, body, key="n", mode="latest")
    scene.end("worker-1", run)
    scene.settle("worker-1", "complete", job)
    older = scene.follow()
    scene.live_through(older, "y")
    scene.live_through(scene.follow(), "z")
    return older


@breaks("I12")
def what_was_run_follows_again(scene: Scene) -> str:
    job = scene.enqueue("x", key="n", mode="latest")
    scene.duplicate(job, "y", key="n", mode="latest")
    scene.live_through(job, "y")
    again = scene.follow()
    scene.live_through(again, "y")
    return again


@breaks("I2")
def arguments_of_another_key(scene: Scene) -> str:
    job = scene.enqueue("x", key="n", mode="latest")
    scene.live_through(scene.enqueue("y", key="m", mode="latest"), "y")
    scene.live_through(job, "y", outcome="cancelled")
    scene.live_through(job, "x", deliveries=2)
    return job


@breaks("I2")
def a_duplicate_has_a_job_of_its_own(scene: Scene) -> str:
    """Only newer arguments may come back as a job."""
    job = scene.enqueue("x", key="n")
    scene.duplicate(job, "y", key="n")
    scene.live_through(job, "x")
    other = scene.follow()
    scene.live_through(other, "y")
    return other


@breaks("I23")
def two_at_once(scene: Scene) -> str:
    first, second = scene.enqueue("x"), scene.enqueue("y")
    run = scene.start("worker-1", first, "x", lanes=("turn 1",))
    scene.live_through(second, "y", lanes=("turn 1",))
    scene.end("worker-1", run)
    scene.settle("worker-1", "complete", first)
    return second


@breaks("I23")
def a_frozen_holders_place_is_given_away(scene: Scene) -> str:
    first, second = scene.enqueue("x"), scene.enqueue("y")
    run = scene.start("worker-5", first, "x", lanes=("turn 1",))
    scene.note("harness", Signalled(scene.now, scene.process("worker-5").pid, "SIGSTOP"))
    scene.wait(0.3)
    scene.live_through(second, "y", lanes=("turn 1",))
    scene.end("worker-5", run)
    scene.settle("worker-5", "complete", first)
    return second


@breaks("I24")
def too_many_in_a_time(scene: Scene) -> str:
    jobs = {body: scene.enqueue(body) for body in ("1", "2", "3", "4")}
    scene.wait(3)
    for body, job in jobs.items():
        scene.live_through(job, body, lanes=("pace 1",))
        scene.wait(0.2)
    return jobs["3"]


@breaks("I24")
def a_little_too_fast_for_long(scene: Scene) -> str:
    jobs = []
    for n in range(13):
        jobs.append(scene.enqueue(str(n)))
        scene.settle("worker-1", "admit", jobs[n])
        scene.live_through(jobs[n], str(n), lanes=("pace 1",))
        scene.wait(0.83)
    return jobs[-1]


@breaks("I25")
def a_slot_has_two_jobs(scene: Scene) -> str:
    slot_ms = round(scene.now * 1000)
    jobs = [scene.follow()]
    scene.live_through(jobs[0], "{}", cron="minute", slot_ms=slot_ms)
    jobs.append(scene.follow())
    scene.live_through(jobs[1], "{}", cron="minute", slot_ms=slot_ms)
    return jobs[1]


@breaks("I25")
def a_slot_comes_early(scene: Scene) -> str:
    job = scene.follow()
    scene.live_through(job, "{}", cron="minute", slot_ms=round(scene.now * 1000) + 40)
    return job


@breaks("I25")
def a_slot_is_left_out(scene: Scene) -> str:
    slot_ms = round(scene.now) * 1000
    for _ in range(2):
        slot_ms += 4000
        scene.now = slot_ms / 1000
        scene.live_through(scene.follow(), "{}", cron="tock", slot_ms=slot_ms)
    return ""


@breaks("I1")
def a_crons_job_is_lost(scene: Scene) -> str:
    job = scene.follow()
    scene.start("worker-5", job, "{}", cron="minute", slot_ms=round(scene.now * 1000) - 5)
    scene.kill("worker-5")
    return job


@breaks("I26")
def an_effect_is_had_after_its_record(scene: Scene) -> str:
    first, second = scene.enqueue("x"), scene.enqueue("y")
    for job, body in ((first, "x"), (second, "y")):
        run = scene.start("worker-1", job, body)
        scene.guard("worker-1", run, "letter", "asks", "has", "kept")
        scene.end("worker-1", run)
        scene.settle("worker-1", "complete", job)
    return second


@breaks("I26")
def an_effect_that_is_recorded_first_is_had_twice(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.guard("worker-5", scene.start("worker-5", job, "x"), "payment", "asks", "has", first=True)
    scene.kill("worker-5")
    scene.wait(1.2)
    run = scene.start("worker-1", job, "x", deliveries=2, attempt=2)
    scene.guard("worker-1", run, "payment", "asks", "has", first=True)
    scene.end("worker-1", run)
    scene.settle("worker-1", "complete", job, deliveries=2)
    return job


ALL = more_damages.ALL
"""Those of the other files as well."""
