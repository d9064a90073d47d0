"""Claims that may have killed their process: marked, then alone, then dead; and nobody else is blamed."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streamjobs import Context, Retry, StreamJobs
from streamjobs.worker import start
from tests.worker.bench import Bench, Gate, crash_marked
from tests.worker.support import FAST, Flag, Queue, codes_of, drain


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


def waited_in_vain(queue: Queue) -> None:
    """Let every suspect look as if no process had been free for it, as often as it has to."""
    flat = queue.command("HGETALL", queue.keys.suspects)
    for entry, value in zip(flat[::2], flat[1::2], strict=True):
        marks, _, starts = value.split(b" ", 2)
        queue.command("HSET", queue.keys.suspects, entry, b"%s %d %s" % (marks, start.ENOUGH_RELEASES, starts))


async def test_one_that_waited_in_vain_often_enough_still_counts_where_it_runs_alone(
    app: StreamJobs, queue: Queue, gate: Gate
) -> None:
    """Or a job that kills its process would do so for ever."""
    bench = Bench(app, queue)
    await gate.kind.enqueue("suspect")
    queue.crash()
    crash_marked(queue, "second")
    waited_in_vain(queue)

    bench.take_over()
    await gate.started.wait(1)

    assert [value.split()[0] for value in queue.command("HVALS", queue.keys.suspects)] == [b"2"]
    gate.go_on.set()
    await bench.settled()


async def test_one_that_waited_in_vain_often_enough_waits_for_all_that_has_a_deadline(
    app: StreamJobs, queue: Queue, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "EMPTY_WITHIN_S", 0.01)
    bench = Bench(app, queue)
    await gate.kind.enqueue("suspect")
    queue.crash()
    crash_marked(queue, "second")
    waited_in_vain(queue)
    await gate.kind.enqueue("before")
    bench.read()
    await gate.started.wait(1)

    bench.take_over()
    await asyncio.wait([asyncio.ensure_future(gate.started.wait(2))], timeout=0.2)
    assert (gate.names, bench.starter.free()) == (["before"], 0)

    gate.go_on.set()
    await gate.started.wait(2)
    await bench.settled()
    assert (gate.names, gate.attempts) == (["before", "suspect"], [1, 3])


async def test_beside_what_may_never_end_it_starts_in_company_and_uncounted(
    app: StreamJobs, queue: Queue, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted, it would be blamed for the crash of another."""
    monkeypatch.setattr(start, "EMPTY_WITHIN_S", 0.01)
    endless, go_on = Flag(), asyncio.Event()

    @app.job(timeout=None, result_ttl=0)
    async def never_ends() -> None:
        endless.raise_()
        await go_on.wait()

    bench = Bench(app, queue)
    await gate.kind.enqueue("suspect")
    queue.crash()
    crash_marked(queue, "second")
    waited_in_vain(queue)
    await never_ends.enqueue()
    bench.read()
    await endless.wait()

    bench.take_over()
    await gate.started.wait(1)

    assert [value.split()[0] for value in queue.command("HVALS", queue.keys.suspects)] == [b"1"]
    gate.go_on.set()
    go_on.set()
    while bench.runner.running:
        await asyncio.sleep(0)
    await bench.settled()


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
    assert [(row["n"], row["w"], row["k"]) for row in history] == [
        (1, "dead-worker", "crash"), (2, "second", "crash"), (3, "third", "crash"),
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
    codes = codes_of("tests.worker.killer", server_url, namespace, str(starts))

    [dead] = queue.dead()
    assert codes == [137, 137, 137, 0]
    assert starts.read_text().split().count("killer") == 3
    assert (dead["reason"], dead["attempts"]) == (b"crash_limit", b"3")
    history = msgspec.json.decode(dead["history"])
    assert [(row["n"], row["k"]) for row in history] == [(1, "crash"), (2, "crash"), (3, "crash")]
    assert len({row["w"] for row in history}) == 3
    assert queue.length() == 0
    assert queue.totals()["done"] == 5


@pytest.mark.parametrize(
    "value", ["", "x", "1", "1 x", "nan 0", "9" * 400 + " 0", "1 0 \x00", b"\xff\xfe 1", "0 0 a@/b"]
)
@pytest.mark.parametrize("given_back", [False, True])
async def test_what_others_wrote_of_an_entry_ends_no_worker(
    app: StreamJobs, queue: Queue, gate: Gate, value: Any, given_back: bool
) -> None:
    bench = Bench(app, queue)
    await gate.kind.enqueue("it")
    [claim] = queue.crash()
    queue.command("HSET", queue.keys.suspects, claim.entry, value)

    bench.take_over()
    if given_back:
        bench.starter.stop()
    else:
        await gate.started.wait(1)
        gate.go_on.set()
    await bench.settled()
    while bench.runner.running:
        await asyncio.sleep(0)
    await bench.settled()

    assert not bench.settler.broken.done()
    assert queue.length() == (1 if given_back else 0)
