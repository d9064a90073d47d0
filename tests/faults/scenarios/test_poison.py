"""F16: jobs that take their process along, whatever is beside them: dead after three starts, and nobody else is."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest

from streamjobs import StreamJobs
from streamjobs.worker.duty import Duty
from streamjobs.worker.start import ENOUGH_RELEASES
from tests.faults.field import NAMESPACE, Field
from tests.faults.simulated import Process, World, live
from tests.servers import Server
from tests.worker.support import make_app

INNOCENT_S = 599.0
INNOCENTS = 60
"""One a minute, for two hours."""
BUSY_H, MOST_H = 2, 24


def crashing(field: Field, **options: Any) -> int:
    """Start workers one after the other until a job is dead; return how many there were."""
    starts = 0
    while field.queue.counts()["dead"] == 0 and starts < 6:
        starts += 1
        worker = field.serving(lease=0.5, **options)
        field.until(lambda: not worker.running() or field.queue.counts()["dead"], "it crashes, or the job is dead")  # noqa: B023
    return starts


def test_case_C2_a_job_that_dies_for_want_of_memory_is_dead_after_three_starts(field: Field) -> None:
    """As case C1, by RLIMIT_AS."""
    field.enqueue("poison", 1000, args=("starved",))
    field.enqueue("nap", *range(10), args=(0.02,))

    assert crashing(field) == 4
    field.judge(dead={1000})
    [row] = field.queue.dead()
    history = msgspec.json.decode(row["history"])
    assert (row["reason"], row["attempts"], field.count("S", 1000)) == (b"crash_limit", b"3", 3)
    assert [attempt["k"] for attempt in history] == ["crash"] * 3
    assert len({attempt["w"] for attempt in history}) == 3


def test_F16_a_poison_job_beside_500_prefetched_jobs_is_dead_after_three_crashes_and_blames_none(field: Field) -> None:
    field.enqueue("ambush", 9999, args=(560,))
    field.enqueue("nap", *range(6000), args=(0.05,))

    # Full, a worker holds 600: what runs in its slots, and 500 behind them.
    assert crashing(field, concurrency=100, read_ahead=60.0) == 4
    field.judge(dead={9999})
    [row] = field.queue.dead()
    beside = [int(entry.detail) for entry in field.journal() if entry.word == "B"]
    assert (row["reason"], field.count("S", 9999)) == (b"crash_limit", 3)
    # The third time it is alone: so nobody can be blamed.
    assert [held >= 560 for held in beside] == [True, True, False]
    assert field.totals()["reclaimed"] >= 1000


class Ward:
    """Long innocent jobs, and some that kill their process: simulated, on several processes of the product."""

    def __init__(self, server: Server, duties: Sequence[Duty]) -> None:
        self._server, self._duties = server, duties
        self.starts: Counter[int] = Counter()
        """Of each poison job."""
        self.ended: Counter[int] = Counter()
        """Innocent jobs whose handler came to its end."""
        self.dead: Counter[tuple[str, str]] = Counter()
        """How many of each kind are dead at the end, and why."""

    def register(self, app: StreamJobs, process: Process | None) -> None:
        @app.job(name="innocent", result_ttl=0)
        async def innocent(n: int) -> None:
            await asyncio.sleep(INNOCENT_S)
            self.ended[n] += 1

        @app.job(name="poison", result_ttl=0)
        async def poison(n: int) -> None:
            self.starts[n] += 1
            await asyncio.sleep(1)
            assert process is not None
            process.crash()
            await asyncio.Event().wait()

    async def play(self, scene: Callable[[StreamJobs, World], Awaitable[None]]) -> None:
        """Let jobs come, and wait until none is left."""
        world = World(self._server.url, NAMESPACE, self.register, self._duties)
        sender = make_app(world.url, NAMESPACE)
        self.register(sender, None)
        await scene(sender, world)
        while world.queue.length() and hours() < MOST_H:
            await asyncio.sleep(60)
        sender.close()
        self.dead.update((row["kind"].decode(), row["reason"].decode()) for row in world.queue.dead())
        await world.close()


def hours() -> float:
    """Return how many have passed in this loop."""
    return asyncio.get_running_loop().time() / 3600


@pytest.mark.parametrize(
    ("duties", "poisons"),
    # Children pass a suspect on until the one for suspects meets it: each of theirs takes long to play.
    [([Duty.ALL], 120), ([Duty.ALL] * 3, 120), ([Duty.ORDINARY] * 2, 30)],
    ids=["one process", "three processes", "supervised"],
)
def test_F16_a_new_poison_job_every_minute_beside_60_long_innocent_ones(
    server: Server, monkeypatch: pytest.MonkeyPatch, duties: list[Duty], poisons: int
) -> None:
    async def scene(sender: StreamJobs, _: World) -> None:
        sender.enqueue_many_sync(sender.kind("innocent").call(n) for n in range(INNOCENTS))
        for n in range(poisons):
            await asyncio.sleep(60)
            sender.kind("poison").enqueue_sync(n)

    ward = Ward(server, duties)
    live(lambda: ward.play(scene), monkeypatch)

    assert ward.dead == {("poison", "crash_limit"): poisons}
    # A start is presumed of one that was claimed beside another and had not come to its turn.
    assert (max(ward.starts.values()), len(ward.starts)) == (3, poisons)
    assert len(ward.ended) == INNOCENTS


def test_F16_a_poison_job_that_found_no_process_empty(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long jobs come faster than they end, and it has waited in vain as often as it has to: it is dead all the same."""
    sent = itertools.count()

    async def scene(sender: StreamJobs, world: World) -> None:
        poison = sender.kind("poison").enqueue_sync(0).id.partition(":")[2]
        suspects = world.queue.keys.suspects
        while hours() < BUSY_H and not world.queue.dead():
            sender.kind("innocent").enqueue_sync(next(sent))
            marks, _, *starts = (world.queue.command("HGET", suspects, poison) or b"0 0").decode().split(" ")
            if marks == "1":
                world.queue.command("HSET", suspects, poison, " ".join([marks, str(ENOUGH_RELEASES), *starts]))
            await asyncio.sleep(20)

    ward = Ward(server, [Duty.ALL] * 2)
    live(lambda: ward.play(scene), monkeypatch)

    assert ward.dead == {("poison", "crash_limit"): 1}
    assert ward.starts[0] == 3
    assert len(ward.ended) == next(sent)
