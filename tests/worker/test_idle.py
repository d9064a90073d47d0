"""What a worker and a waiting caller cost the server while nothing happens, and how soon they notice something."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from streamjobs import Context, ResultTimeout, State, StreamJobs, WorkerOptions
from tests.worker.support import FAST, Flag, Queue, pause, within


def total(calls: dict[str, int]) -> int:
    return sum(calls.values())


def since(earlier: dict[str, int], later: dict[str, int]) -> dict[str, int]:
    """Return how often each command was run in between; commands inside scripts are counted too."""
    return {name: later[name] - earlier.get(name, 0) for name in later if later[name] != earlier.get(name, 0)}


async def test_an_idle_worker_sends_each_of_its_requests_every_four_seconds_at_most(
    real: StreamJobs, queue: Queue
) -> None:
    """At the default options: a read with a look at the limits, a sweep, a promotion, a wait for the bell, a report."""
    real.job(name="none")(lambda: None)
    async with real.worker(["q"], WorkerOptions()):
        await pause(0.3)
        with queue.monitored() as seen:
            await pause(5.0)

    # What scripts run is shown with "lua" for its sender.
    requests = [line for line in seen if b" lua]" not in line and real.namespace.encode() in line]
    kinds = Counter(b" ".join(line.split(b'"')[1:4:2]) for line in requests)
    assert len(kinds) <= 6, requests
    assert max(kinds.values()) <= 2, requests


async def test_waiting_for_a_result_sends_nothing(real: StreamJobs, queue: Queue) -> None:
    started, go_on = Flag(), asyncio.Event()

    @real.job
    async def waits() -> str:
        started.raise_()
        await go_on.wait()
        return "done"

    async with real.worker(options=FAST, lease=60, sweep=60, block=30):
        handle = await waits.enqueue()
        await started.wait()
        waiting = [asyncio.create_task(handle.result(timeout=20)) for _ in range(50)]
        await pause(0.3)
        before = queue.calls()
        await pause(1.0)
        spent = since(before, queue.calls())
        go_on.set()

        assert await asyncio.gather(*waiting) == ["done"] * 50
    spent.pop("info", None)
    assert total(spent) < 10, spent


async def test_a_result_that_does_not_come_in_time_is_said_so_and_the_job_goes_on(app: StreamJobs) -> None:
    started, go_on = Flag(), asyncio.Event()

    @app.job
    async def waits() -> str:
        started.raise_()
        await go_on.wait()
        return "done"

    async with app.worker(options=FAST):
        handle = await waits.enqueue()
        await started.wait()
        with pytest.raises(ResultTimeout, match=r"has not ended within 0.1 s; it goes on"):
            await handle.result(timeout=0.1)
        with pytest.raises(ResultTimeout):
            await asyncio.to_thread(handle.result_sync, 0.1)
        assert (await handle.status()).state == State.RUNNING
        go_on.set()

        assert await asyncio.to_thread(handle.result_sync, 10) == "done"
        assert await handle.result(timeout=10) == "done"


async def test_a_job_starts_at_once_on_an_idle_worker(app: StreamJobs) -> None:
    loop = asyncio.get_running_loop()
    started_at: list[float] = []

    @app.job
    async def note() -> None:
        started_at.append(loop.time())

    late = []
    async with app.worker(options=FAST, sweep=60, block=30):
        for _ in range(5):
            await pause(0.05)
            enqueued_at = loop.time()
            await (await note.enqueue()).result(timeout=10)
            late.append(started_at[-1] - enqueued_at)

    assert sorted(late)[2] < 0.1


@pytest.mark.parametrize("workers", [1, 3])
async def test_a_delayed_job_starts_when_it_is_due_and_not_before(app: StreamJobs, workers: int) -> None:
    """Also when it was scheduled a moment ago, while everybody slept."""
    started = Flag()
    late: list[float] = []

    @app.job
    async def note(ctx: Context[Any], delay: float) -> None:
        late.append(await asyncio.to_thread(lambda: clock() - ctx.enqueued_at) - delay)
        started.raise_()

    def clock() -> float:
        seconds, micros = probe.command("TIME")
        return int(seconds) + int(micros) / 1_000_000

    probe = Queue(app.connections.target.text, app.namespace)
    running = [app.worker(options=FAST, block=30, sweep=60) for _ in range(workers)]
    for one in running:
        await one.__aenter__()
    try:
        await pause(0.2)
        for n in range(1, 9):
            await note.options(delay=0.1 * n).enqueue(0.1 * n)
        await started.wait(8)
    finally:
        for one in running:
            await one.__aexit__(None, None, None)
        probe.close()

    # The id is taken a moment after the script has looked at the clock, and both have whole milliseconds.
    assert min(late) >= -0.005
    assert sorted(late)[4] < 0.1


async def test_a_queue_is_announced_to_those_who_list_them(app: StreamJobs, queue: Queue) -> None:
    app.job(name="none")(lambda: None)
    async with app.worker(["q", "other"], FAST) as worker:
        await within(worker.ready)
        await (await app.kind("none").enqueue()).result(timeout=10)

    assert queue.command("SMEMBERS", f"{app.namespace}:queues") is not None
    members = {bytes(one) for one in queue.command("SMEMBERS", f"{app.namespace}:queues")}
    assert members == {b"q", b"other"}


async def test_queues_share_the_slots_and_none_starves(app: StreamJobs) -> None:
    order: list[str] = []

    @app.job
    async def note(ctx: Context[Any]) -> None:
        order.append(ctx.queue)

    await app.enqueue_many(note.options(queue="a", result_ttl=0).call() for _ in range(500))
    handle = await note.options(queue="b").enqueue()
    async with app.worker(["a", "b"], FAST, concurrency=2):
        await handle.result(timeout=10)

    assert order.index("b") < 100
