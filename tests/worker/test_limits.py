"""Limits hold over all workers: rates, concurrency, keys, order; and nothing that waits is stuck."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from streamjobs import Concurrency, Context, Latest, Rate, Retry, StreamJobs
from tests.worker.bench import Bench
from tests.worker.support import FAST, Flag, Queue, drain, pause


class Log:
    """What runs at each moment, by key, as the handlers themselves see it."""

    def __init__(self) -> None:
        self.running: dict[object, int] = {}
        self.most: dict[object, int] = {}
        self.order: list[int] = []
        self.starts: list[float] = []
        self.ended = Flag()

    async def run(self, key: object, n: int, seconds: float = 0.0) -> None:
        self.order.append(n)
        self.starts.append(asyncio.get_running_loop().time())
        self.running[key] = self.running.get(key, 0) + 1
        self.most[key] = max(self.most.get(key, 0), self.running[key])
        try:
            await pause(seconds)
        finally:
            self.running[key] -= 1
            self.ended.raise_()


async def test_a_kind_runs_no_more_at_once_than_allowed(app: StreamJobs, queue: Queue) -> None:
    log = Log()

    @app.job(concurrency=3)
    async def work(n: int) -> None:
        await log.run("all", n, 0.01)

    async with app.worker(options=FAST), app.worker(options=FAST):
        for n in range(40):
            await work.enqueue(n)
        await log.ended.wait(40)

    assert log.most == {"all": 3}
    assert queue.length() == 0
    assert queue.command("ZCARD", queue.keys.slots) == 0


async def test_jobs_of_one_key_run_one_by_one_in_order(app: StreamJobs, queue: Queue) -> None:
    log = Log()

    @app.job(concurrency=Concurrency(1, key="account"))
    async def work(account: str, n: int) -> None:
        await log.run(account, n, 0.002)

    await app.enqueue_many(work.call("ab"[n % 2], n) for n in range(40))
    async with app.worker(options=FAST):
        await log.ended.wait(40)

    assert log.most == {"a": 1, "b": 1}
    assert [n for n in log.order if n % 2] == list(range(1, 40, 2))
    assert [n for n in log.order if not n % 2] == list(range(0, 40, 2))


async def test_a_rate_is_kept_by_two_workers_together(app: StreamJobs) -> None:
    log = Log()

    @app.job(rate=Rate(100))
    async def work(n: int) -> None:
        await log.run("all", n)

    await app.enqueue_many(work.call(n) for n in range(60))
    async with app.worker(options=FAST), app.worker(options=FAST):
        await log.ended.wait(60)

    taken = log.starts[-1] - log.starts[0]
    assert taken >= 0.35, f"60 jobs at 100/s with a burst of 20 in {taken:.2f} s"


async def test_a_key_at_its_limit_does_not_hold_up_others(app: StreamJobs) -> None:
    log, go_on = Log(), asyncio.Event()

    @app.job(concurrency=Concurrency(1, key="account"))
    async def work(account: str, n: int) -> None:
        if account == "hog":
            await go_on.wait()
        await log.run(account, n)

    await app.enqueue_many(work.call("hog", n) for n in range(200))
    await app.enqueue_many(work.call("fair", n) for n in range(3))
    async with app.worker(options=FAST):
        await log.ended.wait(3)
        assert log.most == {"fair": 1}
        go_on.set()
        await log.ended.wait(203)


async def test_a_failed_job_gives_up_its_place_and_comes_back(app: StreamJobs) -> None:
    seen: list[tuple[int, int]] = []
    ended = Flag()

    @app.job(concurrency=1, retry=Retry(max_attempts=3, backoff=Retry().backoff))
    async def work(ctx: Context[Any], n: int) -> None:
        seen.append((n, ctx.attempt))
        if n == 0 and ctx.attempt == 1:
            raise ValueError("once")
        ended.raise_()

    await app.enqueue_many(work.call(n) for n in range(3))
    async with app.worker(options=FAST):
        await ended.wait(3)

    assert seen == [(0, 1), (1, 1), (2, 1), (0, 2)]


async def test_a_job_that_waited_has_not_been_charged(app: StreamJobs) -> None:
    attempts: list[tuple[int, int]] = []
    ended = Flag()

    @app.job(concurrency=1)
    async def work(ctx: Context[Any], n: int) -> None:
        attempts.append((ctx.attempt, ctx.deliveries))
        await pause(0.01)
        ended.raise_()

    await app.enqueue_many(work.call(n) for n in range(5))
    async with app.worker(options=FAST):
        await ended.wait(5)

    assert attempts == [(1, 1), *[(1, 2)] * 4]


async def test_a_queues_limit_holds_for_all_its_kinds(app: StreamJobs) -> None:
    log = Log()
    app.queue("q", concurrency=2)

    @app.job(name="one")
    async def one(n: int) -> None:
        await log.run("all", n, 0.01)

    @app.job(name="two")
    async def two(n: int) -> None:
        await log.run("all", n, 0.01)

    await app.enqueue_many((one, two)[n % 2].call(n) for n in range(20))
    async with app.worker(options=FAST):
        await log.ended.wait(20)

    assert log.most == {"all": 2}


async def test_a_workers_end_keeps_the_place_for_who_goes_on(app: StreamJobs, queue: Queue) -> None:
    """A deploy: the job that was interrupted comes first."""
    order: list[int] = []
    started, ended, go_on = Flag(), Flag(), asyncio.Event()

    @app.job(concurrency=1)
    async def work(n: int) -> None:
        order.append(n)
        started.raise_()
        await go_on.wait()
        ended.raise_()

    await app.enqueue_many(work.call(n) for n in range(3))
    async with app.worker(options=FAST, grace=0.0):
        await started.wait()
    go_on.set()
    async with app.worker(options=FAST):
        await ended.wait(3)

    assert order == [0, 0, 1, 2]


async def test_a_cancelled_job_leaves_its_place(app: StreamJobs) -> None:
    started, ended = Flag(), Flag()

    @app.job(concurrency=1)
    async def work(n: int) -> None:
        started.raise_()
        if n == 0:
            await asyncio.Event().wait()
        ended.raise_()

    async with app.worker(options=FAST):
        first = await work.enqueue(0)
        await started.wait()
        second = await work.enqueue(1)
        assert await first.cancel()
        await ended.wait()
        assert (await second.result(timeout=5)) is None


async def test_a_limit_can_be_raised_while_jobs_wait(app: StreamJobs) -> None:
    log, go_on = Log(), asyncio.Event()

    @app.job(name="work", concurrency=1)
    async def work(n: int) -> None:
        log.order.append(n)
        log.ended.raise_()
        await go_on.wait()

    await app.enqueue_many(work.call(n) for n in range(8))
    async with app.worker(options=FAST):
        await log.ended.wait(1)
        await app.queue("q").limit(concurrency=3, kind="work")
        async with asyncio.timeout(1.0):
            await log.ended.wait(3)
        await app.queue("q").limit(concurrency="off", kind="work")
        async with asyncio.timeout(1.0):
            await log.ended.wait(8)
        go_on.set()

    assert sorted(log.order) == list(range(8))


async def test_undecodable_arguments_are_refused_before_any_limit(app: StreamJobs, queue: Queue) -> None:
    @app.job(name="work", concurrency=Concurrency(1, key="n"), rate=Rate(1))
    async def work(n: int) -> None: ...

    queue.make_group()
    queue.add("kind", "work", "body", '{"n":"x"}', "meta", "")
    await drain(app)

    assert [dead["reason"] for dead in queue.dead()] == [b"undecodable"]
    assert queue.command("EXISTS", queue.keys.line, queue.keys.slots, queue.keys.tats) == 0


@pytest.mark.parametrize("jobs", [12])
async def test_starts_of_a_rate_are_apart(app: StreamJobs, jobs: int) -> None:
    log = Log()

    @app.job(rate=Rate(10, burst=1))
    async def work(n: int) -> None:
        await log.run("all", n)

    await app.enqueue_many(work.call(n) for n in range(jobs))
    async with app.worker(options=FAST):
        await log.ended.wait(jobs)

    assert log.order == list(range(jobs))
    gaps = sorted(later - earlier for earlier, later in pairwise(log.starts))
    assert gaps[len(gaps) // 2] > 0.09


async def test_a_limit_of_an_operator_holds_where_the_code_has_none(app: StreamJobs, queue: Queue) -> None:
    log = Log()

    @app.job(name="work")
    async def work(account: str, n: int) -> None:
        await log.run(account, n, 0.002)

    async with app.worker(options=FAST):
        await work.enqueue("a", 0)
        await log.ended.wait(1)
        await app.queue("q").limit(concurrency=1, kind="work", key="account")
        for n in range(20):
            await work.enqueue("ab"[n % 2], n)
        await log.ended.wait(21)
        assert log.most == {"a": 1, "b": 1}

        await app.queue("q").limit(kind="work", key="account", reset=True)
        await app.enqueue_many(work.call("c", n) for n in range(20))
        await log.ended.wait(41)
    assert log.most["c"] > 1
    assert queue.command("ZCARD", queue.keys.slots) == 0


async def test_a_crowded_queue_is_not_read_any_further(real: StreamJobs, queue: Queue) -> None:
    """A million waiting jobs stay where they are, but for as many as are soon to start."""
    log = Log()
    real.queue("q", concurrency=2)

    @real.job
    async def work(n: int) -> None:
        await log.run("all", n)

    await real.enqueue_many(work.call(n) for n in range(3000))
    parked = 0
    async with real.worker(options=FAST, concurrency=100):
        while log.ended.count < 3000:
            parked = max(parked, queue.command("ZCARD", queue.keys.line))
            await log.ended.wait(min(3000, log.ended.count + 100))

    assert log.most == {"all": 2}
    # A crowd, and what the reads until that was known may bring.
    assert 0 < parked <= 1600


async def test_waiting_jobs_are_not_polled(real: StreamJobs, queue: Queue) -> None:
    """An idle worker says the same to the server, however many jobs wait; a promotion is at most 40 commands."""
    go_on, started = asyncio.Event(), Flag()

    @real.job(concurrency=1)
    async def work(n: int) -> None:
        started.raise_()
        await go_on.wait()

    spent = []
    async with real.worker(options=FAST, sweep=60, block=30, lease=60):
        for jobs in (1, 1000):
            await real.enqueue_many(work.call(n) for n in range(jobs))
            await started.wait()
            async with asyncio.timeout(20):
                while queue.command("ZCARD", queue.keys.line) < jobs - 1:
                    await pause(0.02)
            await pause(0.3)
            before = sum(queue.calls().values())
            await pause(1.0)
            spent.append(sum(queue.calls().values()) - before)
        go_on.set()

    assert spent[1] <= spent[0] + 80, spent


async def test_a_limit_that_the_code_has_no_more_is_forgotten(app: StreamJobs, queue: Queue) -> None:
    @app.job(name="work")
    async def work(n: int) -> None: ...

    queue.make_group()
    queue.command("HSET", queue.keys.limits, "c:k:work", "1", "c:k:other", "1", "c:q", "1")
    async with app.worker(options=FAST):
        await (await work.enqueue(1)).result(timeout=10)
        async with asyncio.timeout(10):
            while queue.command("HLEN", queue.keys.limits) != 2:
                await pause(0.01)


async def test_a_full_worker_holds_the_place_of_what_it_has_read(app: StreamJobs, queue: Queue) -> None:
    """Jobs of a key stay in order although the older one waits for a slot, and the other worker has one free."""
    order: list[int] = []
    busy, ended, go_on = Flag(), Flag(), asyncio.Event()

    @app.job(name="long")
    async def long() -> None:
        busy.raise_()
        await go_on.wait()

    @app.job(name="work", concurrency=Concurrency(1, key="key"))
    async def work(key: str, n: int) -> None:
        order.append(n)
        ended.raise_()

    queue.make_group()
    bench = Bench(app, queue, concurrency=1)
    await long.enqueue()
    bench.read()
    await busy.wait()
    await work.enqueue("a", 1)
    bench.read()
    await bench.starter.stopped()
    async with app.worker(options=FAST):
        await work.enqueue("a", 2)
        await work.enqueue("b", 3)
        await ended.wait(1)
        go_on.set()
        await ended.wait(3)
    await bench.settled()

    assert order == [3, 1, 2]


@pytest.mark.parametrize("way", ["limited", "announced", "suspected"])
async def test_who_asks_for_a_start_heals_a_lost_group(app: StreamJobs, queue: Queue, way: str) -> None:
    """They may have all slots, and then nobody reads."""
    options: dict[str, Any] = {"limited": {"concurrency": 1}, "announced": {"dedupe": Latest()}}.get(way, {})

    @app.job(name="work", **options)
    async def work(n: int) -> None: ...

    queue.make_group()
    await work.enqueue(1)
    bench = Bench(app, queue)
    claims = queue.read("me") if way != "suspected" else []
    if way == "suspected":
        queue.crash()
        claims = queue.steal("me")
    queue.command("XGROUP", "DESTROY", queue.keys.stream, "workers")
    for claim in claims:
        claim.claimed_at = asyncio.get_running_loop().time()
    bench.starter.add(bench.queue, claims)

    async with asyncio.timeout(10):
        await bench.starter.stopped()

    assert bench.starter.idle
    assert len(queue.read("me")) == 1


async def test_a_worker_says_how_many_jobs_may_wait(app: StreamJobs, queue: Queue) -> None:
    app.queue("q", max_waiting=7)

    async with asyncio.timeout(10), app.worker(queues=["q"], options=FAST):
        while queue.command("HGET", queue.keys.config, "max_waiting:code") != b"7":
            await pause(0.01)
