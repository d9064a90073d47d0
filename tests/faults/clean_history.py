"""A history in which much goes wrong and no promise is broken."""

from tests.faults.history import Signalled
from tests.faults.scene import Scene


def clean() -> Scene:
    """Return a run in which much goes wrong and nothing breaks a promise."""
    scene = Scene()
    scene.live_through(scene.enqueue("plain"), "plain")
    _retried_until_dead(scene, "fails")
    _delayed(scene)
    _crashed(scene)
    _frozen(scene)
    _deployed(scene)
    _unknown(scene)
    _keyed(scene)
    _replayed(scene)
    scene.operate("cancel", scene.enqueue("unwanted"), "WAITING")
    scene.answer(scene.call("refused"), "failed")
    return scene


def _retried_until_dead(scene: Scene, body: str) -> str:
    job = entry = scene.enqueue(body)
    for attempt in (1, 2, 3):
        run = scene.start("worker-1", job, body, entry, attempt=attempt)
        scene.end("worker-1", run, "error")
        scene.settle("worker-1", "retry" if attempt < 3 else "bury", job, entry)
        scene.totals["promoted"] += attempt < 3
        entry = scene.new_id()
    scene.bury(job, body, "exhausted")
    return job


def _delayed(scene: Scene) -> None:
    job = scene.enqueue("delayed", delay_ms=500)
    scene.wait(0.6)
    scene.totals["promoted"] += 1
    scene.live_through(job, "delayed", scene.new_id())


def _crashed(scene: Scene) -> None:
    job = scene.enqueue("crashes")
    scene.start("worker-2", job, "crashes")
    scene.kill("worker-2")
    scene.wait(1.4)
    scene.live_through(job, "crashes", deliveries=2, attempt=2)


def _frozen(scene: Scene) -> None:
    """A success comes from whoever is first; what comes later is refused."""
    job = scene.enqueue("freezes")
    first = scene.start("worker-3", job, "freezes")
    scene.note("harness", Signalled(scene.now, scene.process("worker-3").pid, "SIGSTOP"))
    scene.wait(1.2)
    second = scene.start("worker-1", job, "freezes", deliveries=2, attempt=2)
    scene.end("worker-3", first)
    scene.settle("worker-3", "complete", job)
    scene.end("worker-1", second)
    scene.settle("worker-1", "complete", job, deliveries=2, word="LOST")


def _deployed(scene: Scene) -> None:
    job = scene.enqueue("deployed")
    scene.live_through(job, "deployed", who="worker-4", outcome="cancelled")
    scene.live_through(job, "deployed", deliveries=2, attempt=1)


def _unknown(scene: Scene) -> None:
    call = scene.call("unknown")
    job = scene.new_id()
    scene.answer(call, "unknown")
    scene.totals["enqueued"] += 1
    scene.live_through(job, "unknown")


def _keyed(scene: Scene) -> None:
    job = scene.enqueue("keyed", key="k")
    scene.answer(scene.call("keyed again", key="k"), "ok", job, duplicate=True)
    scene.live_through(job, "keyed")
    scene.live_through(scene.enqueue("keyed later", key="k"), "keyed later")


def _replayed(scene: Scene) -> None:
    job = scene.enqueue("replayed")
    scene.live_through(job, "replayed", outcome="permanent")
    scene.operate("replay", job)
    scene.live_through(job, "replayed", scene.new_id())
