"""Ways to damage a history: what happens to one job, and breaks I1 to I9."""

from collections.abc import Callable

from tests.faults.history import Signalled
from tests.faults.scene import Scene

Damage = Callable[[Scene], str]
DAMAGES: list[tuple[str, Damage]] = []


def breaks(invariant: str) -> Callable[[Damage], Damage]:
    """Collect a damage; it returns the job that must be named, or ""."""

    def collect(damage: Damage) -> Damage:
        DAMAGES.append((invariant, damage))
        return damage

    return collect


@breaks("I1")
def lost(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.start("worker-5", job, "x")
    scene.kill("worker-5")
    return job


@breaks("I1")
def lost_by_a_success_that_was_refused(scene: Scene) -> str:
    job = scene.enqueue("x")
    run = scene.start("worker-1", job, "x")
    scene.end("worker-1", run)
    scene.settle("worker-1", "complete", job, word="LOST")
    return job


@breaks("I1")
def lost_after_a_replay(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.live_through(job, "x", outcome="permanent")
    scene.operate("replay", job)
    return job


@breaks("I1b")
def dead_and_gone(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.live_through(job, "x", outcome="permanent")
    return job


@breaks("I2")
def invented(scene: Scene) -> str:
    job = scene.new_id()
    scene.live_through(job, "nobody's")
    return job


@breaks("I2")
def payload_changed(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.live_through(job, "y")
    return job


@breaks("I3")
def failed_and_ran(scene: Scene) -> str:
    call = scene.call("x")
    job = scene.new_id()
    scene.answer(call, "failed")
    scene.live_through(job, "x")
    return job


@breaks("I4")
def one_call_two_jobs(scene: Scene) -> str:
    scene.live_through(scene.enqueue("x"), "x")
    again = scene.new_id()
    scene.live_through(again, "x")
    return again


@breaks("I4")
def retry_names_another_job(scene: Scene) -> str:
    call = scene.call("x")
    job = scene.new_id()
    scene.answer(call, "ok", job)
    scene.answer(call, "ok", "mail:1-1")
    scene.live_through(job, "x")
    return job


@breaks("I5")
def stale_retry(scene: Scene) -> str:
    job = scene.enqueue("x")
    run = scene.start("worker-5", job, "x")
    scene.note("harness", Signalled(scene.now, scene.process("worker-5").pid, "SIGSTOP"))
    scene.wait(1.2)
    second = scene.start("worker-1", job, "x", deliveries=2, attempt=2)
    scene.end("worker-5", run, "error")
    scene.settle("worker-5", "retry", job)
    scene.end("worker-1", second, "cancelled")
    scene.live_through(job, "x", scene.new_id(), attempt=3)
    return job


@breaks("I5")
def renewal_steals(scene: Scene) -> str:
    job = scene.enqueue("x")
    run = scene.start("worker-5", job, "x")
    scene.note("harness", Signalled(scene.now, scene.process("worker-5").pid, "SIGSTOP"))
    scene.start("worker-1", job, "x", deliveries=2, attempt=2)
    scene.settle("worker-5", "renew", job)
    scene.end("worker-5", run)
    scene.settle("worker-5", "complete", job)
    return job


@breaks("I6")
def in_two_places(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.live_through(job, "x", outcome="permanent")
    scene.bury(job, "x")
    scene.bury(job, "x")
    return job


@breaks("I6")
def two_live_copies(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.live_through(job, "x", outcome="error")
    for word in ("LOST", "OK"):
        entry = scene.new_id()
        run = scene.start("worker-1", job, "x", entry, attempt=2)
        scene.end("worker-1", run)
        scene.settle("worker-1", "complete", job, entry, word=word)
    return job


@breaks("I6")
def old_entry_lives_on(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.live_through(job, "x", outcome="error")
    run = scene.start("worker-1", job, "x", deliveries=2, attempt=2)
    scene.end("worker-1", run, "cancelled")
    scene.live_through(job, "x", scene.new_id(), attempt=2)
    return job


@breaks("I7")
def an_attempt_too_many(scene: Scene) -> str:
    job = entry = scene.enqueue("x")
    for attempt in (1, 2, 3):
        scene.live_through(job, "x", entry, outcome="error", attempt=attempt)
        entry = scene.new_id()
    scene.live_through(job, "x", entry, attempt=4)
    return job


@breaks("I7")
def attempts_begin_anew(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.live_through(job, "x", outcome="error")
    scene.live_through(job, "x", scene.new_id(), attempt=1)
    return job


@breaks("I7")
def a_deploy_is_charged(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.live_through(job, "x", outcome="cancelled")
    scene.live_through(job, "x", deliveries=2, attempt=2)
    return job


@breaks("I7")
def crash_limit_exceeded(scene: Scene) -> str:
    job = scene.enqueue("x")
    for n in (1, 2, 3, 4):
        scene.start(f"poisoned-{n}", job, "x", deliveries=n, attempt=n)
        scene.kill(f"poisoned-{n}")
        scene.wait(1.2)
    scene.live_through(job, "x", deliveries=5, attempt=5)
    return job


@breaks("I7")
def an_innocent_is_blamed(scene: Scene) -> str:
    job = scene.enqueue("x")
    scene.start("worker-5", job, "x")
    scene.kill("worker-5")
    scene.settle("worker-1", "bury", job, deliveries=2)
    scene.bury(job, "x", "crash_limit")
    return job


@breaks("I7")
def exhausted_too_soon(scene: Scene) -> str:
    job = scene.enqueue("x")
    run = scene.start("worker-1", job, "x")
    scene.end("worker-1", run, "error")
    scene.settle("worker-1", "bury", job)
    scene.bury(job, "x", "exhausted")
    return job


@breaks("I8")
def early_by_the_servers_clock(scene: Scene) -> str:
    job = scene.enqueue("x", due_ms=round(scene.now * 1000) + 5000)
    scene.live_through(job, "x", scene.new_id())
    return job


@breaks("I8")
def retried_early(scene: Scene) -> str:
    job = scene.enqueue("x")
    run = scene.start("worker-1", job, "x")
    scene.end("worker-1", run, "error")
    scene.settle("worker-1", "retry", job, delay_ms=1000)
    scene.live_through(job, "x", scene.new_id(), attempt=2)
    return job


@breaks("I9")
def a_failure_is_acknowledged(scene: Scene) -> str:
    job = scene.enqueue("x")
    run = scene.start("worker-1", job, "x")
    scene.end("worker-1", run, "error")
    scene.settle("worker-1", "complete", job)
    return job


@breaks("I9")
def acknowledged_before_the_end(scene: Scene) -> str:
    job = scene.enqueue("x")
    run = scene.start("worker-1", job, "x")
    scene.settle("worker-1", "complete", job)
    scene.end("worker-1", run)
    return job
