"""Claims that may have killed their process: marked, then alone, then dead; and nobody else is blamed."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from streamjobs import Context, Retry, StreamJobs
from streamjobs.core.job import Claim
from streamjobs.protocol import leases
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.run import Runner
from streamjobs.worker.settle import Settler
from streamjobs.worker.start import Starter
from streamjobs.worker.station import Station
from tests.worker.support import FAST, Flag, Queue, drain

ROOT = Path(__file__).parents[2]


class Bench:
    """The part of a worker that starts claims, without the loops around it."""

    def __init__(self, app: StreamJobs, queue: Queue, concurrency: int = 10) -> None:
        self._server = queue
        self.queue = WorkerQueue(queue.keys, 60_000)
        options = msgspec.structs.replace(FAST, concurrency=concurrency)
        station = Station(app.connections.aio(), app.namespace, [self.queue], options, "me", Random(1))
        self.settler = Settler(station)
        self.runner = Runner(app.registry.all(), (), self.settler, Random(1))
        self.starter = Starter(station, self.runner, self.settler)

    def take_over(self, most: int = 100) -> list[Claim]:
        """Take over what has been silent, as a sweep does, and hand it to the starter."""
        sweep = leases.reclaim(self.queue.keys, "me", 1000, leases.SWEEP_BEGIN, most, asyncio.get_running_loop().time())
        claims: list[Claim] = self._server.run(sweep).claims
        self.starter.add(self.queue, claims)
        return claims

    def read(self) -> None:
        """Read what is fresh, and hand it to the starter."""
        claims = self._server.read("me")
        for claim in claims:
            claim.claimed_at = asyncio.get_running_loop().time()
        self.starter.add(self.queue, claims)

    async def settled(self) -> None:
        await self.starter.stopped()
        await self.settler.drained()


def crash_marked(queue: Queue, consumer: str) -> None:
    """Let another worker take over what is silent, mark it as started, and die."""
    sweep = leases.reclaim(queue.keys, consumer, 1000, leases.SWEEP_BEGIN, 100, 0.0)
    claims = queue.run(sweep).claims
    queue.run(leases.suspect(queue.keys, consumer, claims))
    queue.silence(consumer=consumer.encode())


class Gate:
    """A kind whose runs wait until they are let go."""

    def __init__(self, app: StreamJobs) -> None:
        self.started, self.go_on = Flag(), asyncio.Event()
        self.names: list[str] = []
        self.attempts: list[int] = []

        async def gate(ctx: Context[Any], name: str = "") -> None:
            self.names.append(name)
            self.attempts.append(ctx.attempt)
            self.started.raise_()
            await self.go_on.wait()

        self.kind = app.job(name="gate", result_ttl=0)(gate)


@pytest.fixture
async def gate(app: StreamJobs, queue: Queue) -> AsyncIterator[Gate]:
    queue.make_group()
    gate = Gate(app)
    yield gate
    gate.go_on.set()


async def test_one_presumed_start_is_marked_and_starts_in_company(app: StreamJobs, queue: Queue, gate: Gate) -> None:
    bench = Bench(app, queue)
    await app.enqueue_many(gate.kind.call(str(n)) for n in range(3))
    queue.crash()

    bench.take_over()
    await gate.started.wait(3)

    marks = queue.command("HVALS", queue.keys.suspects)
    assert [value.split()[0] for value in marks] == [b"1"] * 3
    assert all(b"dead-worker@" in value and b"me@" in value for value in marks)
    gate.go_on.set()
    while bench.runner.running:
        await asyncio.sleep(0)
    await bench.settled()
    assert (queue.length(), queue.command("EXISTS", queue.keys.suspects)) == (0, 0)


async def test_claims_on_their_way_to_a_mark_count_as_taken_slots(app: StreamJobs, queue: Queue, gate: Gate) -> None:
    bench = Bench(app, queue, concurrency=2)
    await app.enqueue_many(gate.kind.call() for _ in range(5))
    queue.crash()

    bench.take_over()

    assert bench.starter.free() == -3
    await gate.started.wait(2)
    assert (bench.runner.running, bench.starter.waiting) == (2, 3)
    gate.go_on.set()
    await gate.started.wait(5)
    while bench.runner.running:
        await asyncio.sleep(0)
    await bench.settled()


async def test_with_two_unsettled_starts_it_runs_alone(app: StreamJobs, queue: Queue, gate: Gate) -> None:
    bench = Bench(app, queue)
    await gate.kind.enqueue("suspect")
    queue.crash()
    crash_marked(queue, "second")
    await gate.kind.enqueue("before")
    bench.read()
    await gate.started.wait(1)

    bench.take_over()
    await gate.kind.enqueue("after")
    bench.read()
    assert bench.starter.free() == 0
    assert gate.names == ["before"]

    gate.go_on.set()
    await gate.started.wait(3)
    await bench.settled()
    assert gate.names == ["before", "suspect", "after"]
    assert gate.attempts == [1, 3, 1]


async def test_a_second_suspect_is_given_back_while_one_is_held(app: StreamJobs, queue: Queue, gate: Gate) -> None:
    bench = Bench(app, queue)
    await app.enqueue_many(gate.kind.call(name) for name in ("first", "other"))
    queue.crash()
    crash_marked(queue, "second")

    bench.take_over(1)
    await gate.started.wait(1)
    bench.take_over(1)
    bench.starter.release_stale(float("inf"))
    await bench.settled()

    assert gate.names == ["first"]
    assert queue.command("SCARD", queue.keys.released) == 1


async def test_after_three_unsettled_starts_it_is_dead_with_each_of_them(
    app: StreamJobs, queue: Queue, gate: Gate
) -> None:
    bench = Bench(app, queue)
    await gate.kind.enqueue("killer")
    queue.crash()
    crash_marked(queue, "second")
    crash_marked(queue, "third")

    bench.take_over()
    await bench.settled()

    [dead] = queue.dead()
    assert (dead["reason"], dead["attempts"], gate.names) == (b"crash_limit", b"3", [])
    history = msgspec.json.decode(dead["history"])
    assert [(row["w"], row["k"]) for row in history] == [
        ("dead-worker", "crash"), ("second", "crash"), ("third", "crash"),
    ]  # fmt: skip


async def test_a_kind_may_allow_more_crashes(app: StreamJobs, queue: Queue) -> None:
    @app.job(retry=Retry(max_crashes=100))
    async def sturdy(ctx: Context[Any]) -> int:
        return ctx.attempt

    queue.make_group()
    handle = await sturdy.enqueue()
    queue.crash()
    for n in range(20):
        crash_marked(queue, f"worker-{n}")

    await drain(app)

    assert await handle.result() == 22


async def test_a_start_that_is_given_back_is_not_presumed_a_crash(app: StreamJobs, queue: Queue, gate: Gate) -> None:
    """However often a deploy interrupts it."""
    await gate.kind.enqueue()
    for starts in range(1, 6):
        async with app.worker(options=FAST, grace=0):
            await gate.started.wait(starts)

    assert gate.attempts == [1] * 5
    gate.go_on.set()
    await drain(app)
    assert gate.attempts == [1] * 6


async def test_a_retry_keeps_the_count_of_crashes_and_starts_none_of_its_own(app: StreamJobs, queue: Queue) -> None:
    attempts: list[int] = []

    @app.job(retry=Retry(max_attempts=3))
    async def fails(ctx: Context[Any]) -> None:
        attempts.append(ctx.attempt)
        from streamjobs import Temporary

        if len(attempts) < 3:
            raise Temporary(after=0)

    queue.make_group()
    handle = await fails.enqueue()
    queue.crash()

    async with app.worker(options=FAST):
        await handle.result(timeout=10)

    assert attempts == [2, 3, 4]


async def test_stopping_does_not_wait_for_a_suspect_beyond_the_grace_time(
    app: StreamJobs, queue: Queue, gate: Gate
) -> None:
    await gate.kind.enqueue()
    queue.crash()
    crash_marked(queue, "second")

    async with app.worker(options=FAST, grace=0.1):
        await gate.started.wait()

    assert queue.command("SCARD", queue.keys.released) == 1
    assert gate.attempts == [3]


async def test_a_suspect_that_is_abandoned_does_not_hold_the_others(app: StreamJobs, queue: Queue) -> None:
    go_on = asyncio.Event()

    @app.job(timeout=0.05, retry=Retry(max_attempts=1))
    async def hangs() -> None:
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue

    @app.job
    async def other() -> str:
        return "ran"

    queue.make_group()
    await hangs.enqueue()
    queue.crash()
    crash_marked(queue, "second")

    async with app.worker(options=FAST, grace=0.1):
        handle = await other.enqueue()
        assert await handle.result(timeout=10) == "ran"
        go_on.set()


def test_case_C1_a_job_that_kills_its_process_is_dead_after_three_starts(
    server_url: str, namespace: str, queue: Queue, tmp_path: Path
) -> None:
    """Its neighbours are not blamed: they are done, whatever process they died with."""
    starts = tmp_path / "starts"
    codes = []
    for _ in range(6):
        ran = subprocess.run(
            [sys.executable, "-m", "tests.worker.killer", server_url, namespace, str(starts)],
            cwd=ROOT, capture_output=True, timeout=60, env={**os.environ, "PYTHONDEVMODE": ""},
        )  # fmt: skip
        codes.append(ran.returncode)
        if ran.returncode == 0:
            break

    [dead] = queue.dead()
    assert codes == [137, 137, 137, 0]
    assert starts.read_text().split().count("killer") == 3
    assert (dead["reason"], dead["attempts"]) == (b"crash_limit", b"3")
    history = msgspec.json.decode(dead["history"])
    assert ([row["k"] for row in history], len({row["w"] for row in history})) == (["crash"] * 3, 3)
    assert queue.length() == 0
    assert queue.totals()["done"] == 5
