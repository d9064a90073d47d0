"""A history in which much goes wrong and no promise is broken."""

from tests.faults.history import Signalled
from tests.faults.rules import Limits, Pace, Rules
from tests.faults.scene import KIND, Scene

RULES = Rules(
    limits={KIND: Limits(3, 3)},
    places={"turn": 1},
    paces={"pace": Pace(1.0, 2)},
    slots_s={"tick": 1.0, "tock": 2.0},
    lease_s=1.0,
    sweep_s=0.5,
    slack_s=0.2,
    heal_s=5.0,
    start_s=5.0,
    grace_s=2.0,
)


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
    _started(scene)
    _windowed(scene)
    _renewed(scene)
    _in_turn(scene)
    _paced(scene)
    _slots(scene)
    _guarded(scene)
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
    scene.duplicate(job, "keyed again", key="k")
    scene.live_through(job, "keyed")
    scene.live_through(scene.enqueue("keyed later", key="k"), "keyed later")


def _started(scene: Scene) -> None:
    """A key that is free once its job runs, and held by the next one then."""
    job = scene.enqueue("started", key="s", mode="started")
    scene.duplicate(job, "started again", key="s", mode="started")
    scene.settle("worker-1", "start", job)
    run = scene.start("worker-1", job, "started")
    other = scene.enqueue("started beside", key="s", mode="started")
    scene.end("worker-1", run)
    scene.settle("worker-1", "complete", job)
    scene.settle("worker-1", "start", other)
    scene.live_through(other, "started beside")


def _windowed(scene: Scene) -> None:
    """A key that outlives its job, and ends by itself."""
    job = scene.enqueue("window", key="w", window_ms=500)
    scene.live_through(job, "window")
    scene.duplicate(job, "window again", key="w", window_ms=500)
    scene.wait(0.6)
    later = scene.enqueue("window later", key="w", window_ms=500)
    scene.live_through(later, "window later")
    scene.holders["mail:w"] = later


def _renewed(scene: Scene) -> None:
    """Newer arguments come before the start, during the run, and behind a zombie that ends with older ones."""
    job = scene.enqueue("old", key="l", mode="latest")
    scene.duplicate(job, "new", key="l", mode="latest")
    scene.settle("worker-1", "start", job)
    run = scene.start("worker-1", job, "new")
    for body in ("newer", "newest"):
        scene.duplicate(job, body, key="l", mode="latest")
    scene.end("worker-1", run)
    scene.settle("worker-1", "complete", job)
    follower = scene.follow()
    frozen = scene.start("worker-7", follower, "newest")
    scene.note("harness", Signalled(scene.now, scene.process("worker-7").pid, "SIGSTOP"))
    scene.duplicate(follower, "last", key="l", mode="latest")
    scene.wait(1.2)
    second = scene.start("worker-1", follower, "last", deliveries=2, attempt=2)
    scene.end("worker-7", frozen)
    scene.settle("worker-7", "complete", follower)
    last = scene.follow()
    scene.end("worker-1", second, "cancelled")
    scene.live_through(last, "last")


def _in_turn(scene: Scene) -> None:
    """One at a time, over a wait, a crash, and a freeze in which the place goes on."""
    first, second, third = (scene.enqueue(body) for body in ("turn 1", "turn 2", "turn 3"))
    scene.start("worker-8", first, "turn 1", lanes=("turn 7",))
    scene.settle("worker-1", "admit", second, word="PARKED")
    scene.kill("worker-8")
    scene.wait(1.2)
    frozen = scene.start("worker-9", first, "turn 1", deliveries=2, attempt=2, lanes=("turn 7",))
    scene.note("harness", Signalled(scene.now, scene.process("worker-9").pid, "SIGSTOP"))
    scene.wait(1.2)
    scene.live_through(first, "turn 1", deliveries=3, attempt=3, lanes=("turn 7",))
    scene.live_through(second, "turn 2", lanes=("turn 7",))
    run = scene.start("worker-1", third, "turn 3", lanes=("turn 7",))
    scene.end("worker-9", frozen)
    scene.settle("worker-9", "complete", first, deliveries=2, word="LOST")
    scene.end("worker-1", run)
    scene.settle("worker-1", "complete", third)


def _paced(scene: Scene) -> None:
    """Let start in time, and started late, so that two come together."""
    jobs = [scene.enqueue(f"pace {n}") for n in range(3)]
    for n, job in enumerate(jobs):
        scene.settle("worker-1", "admit", job)
        scene.wait((0, 1, 0)[n])
    for n, job in enumerate(jobs):
        scene.live_through(job, f"pace {n}", lanes=("pace",))


def _slots(scene: Scene) -> None:
    begin = round(scene.now) + 1
    for slot in range(begin, begin + 3):
        scene.now = max(scene.now, slot + 0.002)
        scene.live_through(scene.follow(), "{}", cron="tick", slot_ms=slot * 1000)


def _guarded(scene: Scene) -> None:
    """Had again where a run died before its record, and never after it."""
    job, other = scene.enqueue("guarded"), scene.enqueue("guarded too")
    scene.guard("worker-10", scene.start("worker-10", job, "guarded"), "mail", "asks", "has")
    scene.kill("worker-10")
    scene.wait(1.2)
    for one, body, steps in ((job, "guarded", ("asks", "has", "kept")), (other, "guarded too", ("asks",))):
        again = 2 if one is job else 1
        run = scene.start("worker-1", one, body, deliveries=again, attempt=again)
        scene.guard("worker-1", run, "mail", *steps)
        scene.end("worker-1", run)
        scene.settle("worker-1", "complete", one, deliveries=again)


def _replayed(scene: Scene) -> None:
    job = scene.enqueue("replayed")
    scene.live_through(job, "replayed", outcome="permanent")
    scene.operate("replay", job)
    scene.live_through(job, "replayed", scene.new_id())
