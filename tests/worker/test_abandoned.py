"""Handlers that do not end, whatever else has become of their job: their slot goes to others."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from streamjobs import Concurrency, Fixed, JobCancelled, Retry, StreamJobs
from streamjobs.worker.deadlines import Deadlines
from streamjobs.worker.execution import Ending, Execution
from streamjobs.worker.winddown import WindDown, end_run
from tests.worker.bench import Bench
from tests.worker.support import FAST, WITHIN_S, Flag, Queue, messages


class Stubborn:
    """A kind that ends for nobody, as a plain function or an async one."""

    def __init__(self, app: StreamJobs, plain: bool, **options: Any) -> None:
        self.go_on, self._ends = threading.Event(), asyncio.Event()
        self.started = Flag()
        self._loop = asyncio.get_running_loop()
        options.setdefault("timeout", 0.1)
        self.kind = app.job(name="stubborn", **options)(self._in_a_thread if plain else self._in_the_loop)

    def _in_a_thread(self) -> None:
        self._loop.call_soon_threadsafe(self.started.raise_)
        self.go_on.wait(WITHIN_S)

    async def _in_the_loop(self) -> None:
        self.started.raise_()
        while not self._ends.is_set():
            try:
                await self._ends.wait()
            except asyncio.CancelledError:
                # The worst that a handler can do.
                continue

    def end(self) -> None:
        self.go_on.set()
        self._ends.set()


class Late(Bench):
    """One run of a stubborn kind, long past its deadline."""

    def __init__(self, app: StreamJobs, queue: Queue) -> None:
        super().__init__(app, queue)
        self._deadlines = Deadlines(self.station, self.runner, self.starter)

    async def begin(self, stubborn: Stubborn) -> Execution:
        await stubborn.kind.enqueue()
        self.read()
        await stubborn.started.wait()
        [execution] = self.queue.held.values()
        return execution

    async def overtake(self, execution: Execution, ending: Ending) -> None:
        """Let it be ended, and be past its deadline by more than the grace time."""
        end_run(execution, ending)
        assert execution.deadline is not None
        execution.deadline -= 2 * FAST.ms("grace") / 1000
        await self._deadlines.tick()


Make = Callable[..., Stubborn]


@pytest.fixture(params=[True, False], ids=["plain", "async"])
async def make(app: StreamJobs, request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    made: list[Stubborn] = []

    def one(**options: Any) -> Stubborn:
        made.append(Stubborn(app, request.param, **options))
        return made[-1]

    yield one
    for stubborn in made:
        stubborn.end()


async def test_one_that_was_cancelled_gives_its_slot_back(
    app: StreamJobs, queue: Queue, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    stubborn = make(timeout=0.5)

    @app.job
    async def next_one() -> str:
        return "ran"

    async with app.worker(options=FAST, concurrency=1, grace=0.1, lease=0.3):
        handle = await stubborn.kind.enqueue()
        await stubborn.started.wait()
        assert await handle.cancel()
        following = await next_one.enqueue()
        assert await following.result(timeout=10) == "ran"
        with pytest.raises(JobCancelled):
            await handle.result(timeout=10)
        stubborn.end()

    assert queue.totals() == {"enqueued": 2, "cancelled": 1, "done": 1}
    assert any("does not end" in text for text in messages(caplog, "ERROR"))


async def test_of_one_that_is_lost_nothing_is_written(app: StreamJobs, queue: Queue, make: Make) -> None:
    queue.make_group()
    stubborn, bench = make(concurrency=1), Late(app, queue)
    execution = await bench.begin(stubborn)
    queue.steal()
    before = queue.pending()

    await bench.overtake(execution, Ending.LOST)
    await bench.settled()

    assert [row[:2] + row[3:] for row in queue.pending()] == [row[:2] + row[3:] for row in before]
    assert (bench.runner.running, bench.runner.stuck, bench.runner.dropped) == (0, 1, 1)
    assert (bench.starter.free(), bench.queue.held, bench.settler.lost) == (10, {}, 0)
    assert (queue.totals(), queue.counts()["retries"]) == ({"enqueued": 1, "reclaimed": 1}, 0)
    await ended(bench, stubborn)


async def test_one_whose_lease_had_expired_is_retried_a_lease_later(app: StreamJobs, queue: Queue, make: Make) -> None:
    queue.make_group()
    stubborn, bench = make(retry=Retry(max_attempts=2, backoff=Fixed(0))), Late(app, queue)
    execution = await bench.begin(stubborn)

    await bench.overtake(execution, Ending.STOP)
    await bench.settled()

    assert (bench.runner.running, bench.runner.stuck, bench.starter.free()) == (0, 1, 10)
    assert (queue.totals()["retried"], queue.counts()["retries"], queue.pending()) == (1, 1, [])
    await ended(bench, stubborn)


@pytest.mark.parametrize("ending", [Ending.DEADLINE, Ending.LOST, Ending.STOP])
async def test_its_slot_of_a_limit_is_kept_until_it_ends(
    app: StreamJobs, queue: Queue, make: Make, ending: Ending
) -> None:
    queue.make_group()
    stubborn, bench = make(concurrency=Concurrency(1)), Late(app, queue)
    execution = await bench.begin(stubborn)
    if ending is Ending.LOST:
        assert await app.handle(execution.job_id).cancel()

    await bench.overtake(execution, ending)
    await bench.settled()
    assert queue.command("ZCARD", queue.keys.slots) == 1

    await ended(bench, stubborn)
    assert queue.command("ZCARD", queue.keys.slots) == 0


async def test_one_that_outlives_its_worker_is_given_back_and_does_not_count_as_stuck(
    app: StreamJobs, queue: Queue, make: Make
) -> None:
    queue.make_group()
    stubborn, bench = make(timeout=None), Late(app, queue)
    await bench.begin(stubborn)
    aborting, read = asyncio.Event(), asyncio.ensure_future(bench.settled())
    aborting.set()

    assert not await WindDown(bench.station, aborting, bench.settler, bench.runner, bench.starter).run(
        bench.fetcher, read
    )

    assert [holder for _, holder, *_ in queue.pending()] == [b"released"]
    assert (bench.runner.running, bench.runner.stuck) == (1, 0)
    stubborn.end()
    async with asyncio.timeout(WITHIN_S):
        while bench.runner.running:
            await asyncio.sleep(0)
    await bench.runner.close()
    assert (bench.runner.running, bench.runner.stuck, bench.settler.idle) == (0, 0, True)


async def ended(bench: Bench, stubborn: Stubborn) -> None:
    """Let it end, and see that it leaves nothing behind."""
    stubborn.end()
    async with asyncio.timeout(WITHIN_S):
        while bench.runner.stuck:
            await asyncio.sleep(0)
    await bench.settled()
    await bench.runner.close()
    assert (bench.runner.running, bench.runner.stuck, bench.starter.free()) == (0, 0, 10)
