"""Batch handlers: many jobs in one call, gathered for a moment, and each of them settled on its own."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

import msgspec
import pytest

from streamjobs import (
    Batch,
    BatchContext,
    Cancel,
    Concurrency,
    Fixed,
    JobCancelled,
    JobFailed,
    Permanent,
    RateLimited,
    Retry,
    Snooze,
    State,
    StreamJobs,
    Temporary,
    UntilDone,
    UntilStarted,
    UsageError,
    current_job,
)
from tests.worker.batches import FOR_EVER, ONCE, Doc, Index, claimed
from tests.worker.bench import Bench
from tests.worker.support import FAST, WITHIN_S, Queue, drain, make_app


async def test_a_full_batch_starts_at_once_and_each_job_has_its_own_result(app: StreamJobs, queue: Queue) -> None:
    index = Index(app, Batch(3, FOR_EVER))
    index.answer = lambda ctx, docs: [[doc.n, job.id] for job, doc in zip(ctx.jobs, docs, strict=True)]
    handles = await index.enqueue(app, 6)

    async with app.worker(options=FAST):
        results = [await handle.result(timeout=10) for handle in handles]

    assert results == [[n, handle.id] for n, handle in enumerate(handles)]
    assert index.calls == [[0, 1, 2], [3, 4, 5]]
    assert (queue.totals()["done"], queue.length()) == (6, 0)


async def test_the_first_waits_no_longer_than_max_wait_for_others(app: StreamJobs, queue: Queue) -> None:
    index = Index(app, Batch(100, 1.0))

    async with app.worker(options=FAST):
        began = monotonic()
        first = await index.kind.enqueue(Doc(1))
        await claimed(queue, 1)
        second = await index.kind.enqueue(Doc(2))
        assert [await first.result(timeout=10), await second.result(timeout=10)] == [None, None]

    assert monotonic() - began >= 1.0
    assert index.calls == [[1, 2]]


async def test_no_job_waits_for_others_that_find_no_slot(app: StreamJobs) -> None:
    index = Index(app, Batch(100, FOR_EVER))
    handles = await index.enqueue(app, 4)

    async with app.worker(options=FAST, concurrency=2, read_ahead=0):
        for handle in handles:
            await handle.result(timeout=10)

    assert index.calls == [[0, 1], [2, 3]]


async def test_each_job_ends_as_its_own_result_says(app: StreamJobs, queue: Queue) -> None:
    index = Index(app, Batch(8, FOR_EVER))
    index.answer = [
        "done", ValueError("odd"), Permanent("no"), Snooze(60), RateLimited(after=60), Cancel("why"), None,
        Temporary(after=60),
    ]  # fmt: skip
    handles = await index.enqueue(app, 8)

    async with app.worker(options=FAST):
        assert await handles[0].result(timeout=10) == "done"
        with pytest.raises(JobFailed, match="no"):
            await handles[2].result(timeout=10)
        with pytest.raises(JobCancelled, match="why"):
            await handles[5].result(timeout=10)
        assert await handles[6].result(timeout=10) is None

    [odd, later, slower, again] = [await handles[n].status() for n in (1, 3, 4, 7)]
    assert (odd.meta.failures, odd.meta.history[-1].error) == (1, "ValueError: odd")
    assert (later.state, later.meta.snoozes, later.meta.failures) == (State.SCHEDULED, 1, 0)
    assert (slower.meta.rate_waits, slower.meta.failures) == (1, 0)
    assert again.meta.failures == 1
    assert queue.counts() == {"waiting": 0, "scheduled": 2, "retries": 2, "dead": 1}


async def test_one_that_raises_fails_all_of_them_and_each_is_retried_on_its_own(app: StreamJobs, queue: Queue) -> None:
    index = Index(app, Batch(3, 0.2), retry=Retry(max_attempts=3, backoff=Fixed(0)))

    def answer(ctx: BatchContext[Any], docs: list[Doc]) -> None:
        if len(index.calls) == 1:
            raise ConnectionError("the index is away")

    index.answer = answer
    handles = await index.enqueue(app, 3)

    async with app.worker(options=FAST):
        assert [await handle.result(timeout=10) for handle in handles] == [None] * 3

    assert [(attempt, len(calls)) for attempts, calls in zip(index.attempts[:1], index.calls[:1], strict=True)
            for attempt in attempts] == [(1, 3)] * 3  # fmt: skip
    assert [attempt for attempts in index.attempts[1:] for attempt in attempts] == [2] * 3
    assert (queue.totals()["retried"], queue.totals()["done"]) == (3, 3)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([1], "one result per item: 2, not a list of 1"),
        ([Cancel, ValueError], "give an instance"),
        ("two", "not str"),
        ((1, 2), "not tuple"),
        ({}, "not dict"),
    ],
)
async def test_an_answer_that_fits_no_item_fails_all_as_a_bug(
    app: StreamJobs, queue: Queue, answer: Any, said: str
) -> None:
    index = Index(app, Batch(2, FOR_EVER), retry=ONCE)
    index.answer = answer
    await index.enqueue(app, 2)

    await drain(app)

    assert [said in dead["error"].decode() for dead in queue.dead()] == [True, True]
    assert [msgspec.json.decode(dead["history"])[-1]["k"] for dead in queue.dead()] == ["bug", "bug"]


async def test_a_dedupe_key_is_free_when_its_own_job_is_done(app: StreamJobs) -> None:
    index = Index(app, Batch(2, 0.2), dedupe=UntilDone(key="n"))
    index.answer = lambda ctx, docs: ["done", Temporary(after=60)][: len(docs)]
    [first, second] = await index.enqueue(app, 2)
    again = await index.kind.enqueue(Doc(0))
    assert (again.duplicate, again.id) == (True, first.id)

    async with app.worker(options=FAST):
        assert await first.result(timeout=10) == "done"

    assert index.calls == [[0, 1]]
    assert not (await index.kind.enqueue(Doc(0))).duplicate
    assert (await index.kind.enqueue(Doc(1))).id == second.id


async def test_a_key_held_until_the_start_is_free_before_the_handler_runs(app: StreamJobs) -> None:
    index = Index(app, Batch(2, FOR_EVER), dedupe=UntilStarted(key="n"))
    duplicates: list[bool] = []

    async def answer(ctx: BatchContext[Any], docs: list[Doc]) -> None:
        if not duplicates:
            duplicates.extend([(await index.kind.enqueue(doc)).duplicate for doc in docs])

    index.answer = answer
    await index.enqueue(app, 2)
    await drain(app)

    assert (index.calls, duplicates) == ([[0, 1], [0, 1]], [False, False])


async def test_what_does_not_decode_is_dead_alone(app: StreamJobs, queue: Queue) -> None:
    index = Index(app, Batch(2, FOR_EVER))
    queue.make_group()
    queue.add("kind", "index", "body", b'{"n":1}')
    queue.add("kind", "index", "body", b'{"n":"one"}')
    await app.send("index", {"n": 2, "title": "by name"})
    with pytest.raises(UsageError, match="unknown field"):
        await app.send("index", {"n": 2, "name": ""})

    await drain(app)

    assert index.calls == [[1, 2]]
    assert [dead["reason"] for dead in queue.dead()] == [b"undecodable"]


async def test_a_limit_over_all_workers_holds_for_the_jobs_of_a_batch(app: StreamJobs, queue: Queue) -> None:
    index = Index(app, Batch(10, 0.05), concurrency=2)
    await index.enqueue(app, 5)
    await drain(app)
    assert [len(call) for call in index.calls] == [2, 2, 1]
    assert queue.totals()["done"] == 5


@pytest.mark.parametrize("batch", [False, True], ids=["plain", "batch"])
async def test_a_limit_counts_the_jobs_of_plain_functions_and_of_batches_alike(app: StreamJobs, batch: bool) -> None:
    lock, running, most, ended = threading.Lock(), 0, 0, 0

    def work(count: int) -> None:
        nonlocal running, most, ended
        with lock:
            running += count
            most = max(most, running)
        threading.Event().wait(0.01)
        with lock:
            running -= count
            ended += count

    if batch:

        @app.job(name="work", concurrency=3, batch=Batch(10, 0.02))
        def several(docs: list[Doc]) -> None:
            work(len(docs))

        calls = [several.call(Doc(n)) for n in range(20)]
    else:

        @app.job(name="work", concurrency=3)
        def one(n: int) -> None:
            work(1)

        calls = [one.call(n) for n in range(20)]

    async with app.worker(options=FAST), app.worker(options=FAST):
        for handle in await app.enqueue_many(calls):
            assert not isinstance(handle, Exception)
            await handle.result(timeout=WITHIN_S)

    assert (most, ended) == (3, 20)


async def test_a_limit_by_an_argument_goes_by_the_items_field(app: StreamJobs) -> None:
    index = Index(app, Batch(10, 0.05), concurrency=Concurrency(1, key="title"))
    await app.enqueue_many(index.kind.call(Doc(n, "same")) for n in range(2))
    await index.kind.enqueue(Doc(2, "other"))
    await drain(app)
    assert sorted(index.calls[0]) == [0, 2]
    assert index.calls[1:] == [[1]]


async def test_a_plain_function_takes_a_list_in_its_thread(app: StreamJobs) -> None:
    threads: list[str] = []

    @app.job(batch=Batch(2, FOR_EVER), result_ttl=60)
    def plain(docs: list[Doc]) -> list[int]:
        threads.append(threading.current_thread().name)
        return [doc.n * 2 for doc in docs]

    handles = [await plain.enqueue(Doc(n)) for n in (1, 2)]
    async with app.worker(options=FAST):
        assert [await handle.result(timeout=10) for handle in handles] == [2, 4]
    assert threads == ["streamjobs-handler"]


async def test_a_batch_has_the_apps_state_and_is_no_single_job(url: str, namespace: str) -> None:
    @asynccontextmanager
    async def lifespan(app: StreamJobs) -> AsyncIterator[str]:
        yield "state"

    app = make_app(url, namespace, lifespan=lifespan)

    @app.job(batch=Batch(1))
    async def seen(ctx: BatchContext[str], docs: list[Doc]) -> list[Any]:
        with pytest.raises(UsageError, match="no job runs here"):
            current_job()
        return [[ctx.state, job.state, job.kind.rpartition(".")[2]] for job in ctx.jobs]

    async with app.worker(options=FAST):
        handle = await seen.enqueue(Doc(1))
        assert await handle.result(timeout=10) == ["state", "state", "seen"]
    await app.aclose()


async def test_a_batch_is_no_part_of_the_job_whose_end_made_room_for_it(app: StreamJobs, queue: Queue) -> None:
    found: list[str] = []

    @app.job(name="single")
    async def single() -> None:
        found.append(current_job().kind)

    @app.job(name="batch", batch=Batch(2, FOR_EVER))
    async def batch(docs: list[Doc]) -> None:
        with pytest.raises(UsageError):
            current_job()
        found.append("none")

    bench = Bench(app, queue, concurrency=1)
    queue.make_group()
    await single.enqueue()
    await batch.enqueue(Doc(1))
    bench.read()
    async with asyncio.timeout(WITHIN_S):
        while len(found) < 2 or bench.runner.running:
            await asyncio.sleep(0)
    await bench.settled()

    assert found == ["single", "none"]
    assert queue.totals()["done"] == 2
