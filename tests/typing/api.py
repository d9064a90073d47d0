"""The public API as users type it: checked by mypy and pyright, never run.

`assert_type` holds what must be inferred; a line with an ignore is one that must not pass (mypy
complains about an ignore that is not needed).
"""

import logging
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from prometheus_client import REGISTRY

from streamjobs import (
    Batch,
    BatchContext,
    Concurrency,
    Context,
    DeadLetters,
    Effect,
    Exponential,
    Fixed,
    Handle,
    Job,
    JobOptions,
    JobStatus,
    JsonFormatter,
    Latest,
    Metrics,
    OutcomeUnknown,
    Producer,
    Rate,
    Retry,
    StreamJobs,
    StreamJobsError,
    Thresholds,
    UntilDone,
    UntilStarted,
    Window,
    Worker,
    WorkerOptions,
    current_job,
)


class State:
    count: int = 0


@asynccontextmanager
async def lifespan(app: StreamJobs) -> AsyncIterator[State]:
    yield State()


app = StreamJobs("memory://", namespace="sj", lifespan=lifespan, defaults=JobOptions(queue="web"))


@app.job
async def greet(name: str, *, loud: bool = False) -> str:
    return name


@app.job(rate=[Rate(5), Rate(1, per=timedelta(minutes=1), key="n")], concurrency=4)
async def slow(n: int) -> None: ...


@app.job(rate=Rate(5, burst=10), concurrency=Concurrency(1, key="n"))
async def slower(n: int) -> None: ...


async def dead_letters() -> None:
    letters = app.queue("web", keep_dead=timedelta(days=30)).dead
    assert_type(letters, DeadLetters)
    page = await letters.page(kind="slow", where={"n": 1}, since=timedelta(hours=4), limit=10)
    assert_type(page.jobs, list[JobStatus])
    assert_type((await letters.groups(reason=["exhausted"]))[0].count, int)
    assert_type(letters.replay_sync(arguments={"n": 2}, to="slow", rate=Rate(20), error="Timeout").left, dict[str, str])
    assert_type((await letters.purge(ids=["web:1-0"])).done, int)
    assert_type([line async for line in letters.export()], list[bytes])
    await letters.purge(kinds="slow")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def limit() -> None:
    queue = app.queue("web", rate=Rate(100), concurrency=50, max_waiting=10_000, when_full="wait")
    app.queue("web", thresholds=Thresholds(oldest=(30, timedelta(minutes=2)), dead=None, waiting=10_000))
    app.queue("web", when_full="drop")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await queue.limit(rate=Rate(50, key="n"), concurrency="off", kind="slow")
    await queue.limit(max_waiting="off")
    queue.limit_sync(kind="slow", reset=True)


@app.job
def count(words: list[str]) -> int:
    return len(words)


@app.job(
    name="pages.fetch",
    queue="web",
    timeout=timedelta(seconds=20),
    retry=Retry(max_attempts=8, backoff=Exponential(base=1, cap=64, jitter="equal"), permanent=(ValueError,)),
    result_ttl=3600,
)
async def fetch(ctx: Context[State], url: str, depth: int = 0) -> bytes:
    assert_type(ctx.state, State)
    assert_type(ctx.attempt, int)
    assert_type(ctx.idempotency_key, str)
    assert_type(ctx.enqueued_at, float)
    async with ctx.once() as effect:
        assert_type(effect, Effect[Any])
    async with ctx.once("k", type=int, first=True, if_unsure="skip", keep=timedelta(days=1)) as counted:
        assert_type(counted.value, int)
        counted.value = "no"  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
    ctx.once("k", if_unsure="perhaps")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ctx.log.info("fetching %s", url)
    ctx.extend(timedelta(minutes=5))
    await ctx.lost.wait()
    assert_type(current_job(), Context[Any])
    return b""


@app.job(timeout=None, retry=Retry(backoff=Fixed(5)))
def render(ctx: Context[State], page: int) -> None:
    with ctx.once(f"page:{page}", type=bytes) as effect:
        assert_type(effect.value, bytes)
        assert_type((effect.needed, effect.unsure), tuple[bool, bool])


@app.cron("30 2 * * *", tz="Europe/Berlin", catch_up="none", jitter=60, name="count.nightly", args={"words": []})
@app.every(timedelta(minutes=5), catch_up="all", args={"words": ["a"]})
@app.job(name="count.often")
def often(words: list[str]) -> int:
    return len(words)


@app.every(30)
async def tidy(ctx: Context[State], depth: int = 0) -> str:
    return ""


async def crons_keep_the_types() -> None:
    assert_type(await often.enqueue(["a"]), Handle[int])
    assert_type(await tidy.enqueue(depth=1), Handle[str])
    await tidy.enqueue("a")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    app.every(30, catch_up="twice")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@app.job(dedupe=UntilDone(key="page"))
def index(page: int) -> None: ...


async def dedupe() -> None:
    assert_type(await index.options(dedupe=Latest(key=("page",))).enqueue(1), Handle[None])
    assert_type(await index.options(dedupe=Window(timedelta(minutes=5)), dedupe_key="k").enqueue(1), Handle[None])
    assert_type(await index.options(dedupe=None).enqueue(1), Handle[None])
    UntilStarted(key=lambda page, **_: f"{page}")
    JobOptions(dedupe=Window(5.0))


@dataclass
class Doc:
    page: int
    title: str = ""


@app.job(batch=Batch(100, max_wait=0.2), result_ttl=60)
async def add(docs: list[Doc]) -> list[str | Exception]:
    return [doc.title or ValueError(doc.page) for doc in docs]


@app.job(name="remove", batch=Batch(100), timeout=None)
def remove(ctx: BatchContext[State], docs: list[Doc]) -> None:
    assert_type(ctx.state, State)
    assert_type(ctx.jobs, list[Context[State]])
    ctx.extend(60)


@app.job(batch=Batch(5))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
async def alone(doc: Doc) -> None: ...


@app.job(batch=Batch(5))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
async def text(docs: list[Doc]) -> str:
    return ""


async def batches() -> None:
    assert_type(await add.enqueue(Doc(5)), Handle[Any])
    assert_type(await add.options(delay=1).enqueue(Doc(5, "five")), Handle[Any])
    assert_type(remove.call(Doc(5)), Job)
    remove.enqueue_sync(Doc(5))
    await add.enqueue(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await add.enqueue([Doc(5)])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    remove.enqueue_sync()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Batch(5, max_wait="1s")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    app.job(batch=5)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]


async def enqueue() -> None:
    assert_type(await greet.enqueue("Ada"), Handle[str])
    assert_type(await greet.enqueue(name="Ada", loud=True), Handle[str])
    assert_type(await count.enqueue(["a"]), Handle[int])
    assert_type(await fetch.enqueue("https://example.org", depth=1), Handle[bytes])
    assert_type(fetch.enqueue_sync("https://example.org"), Handle[bytes])
    assert_type(render.enqueue_sync(1), Handle[None])
    with app.producer(max_waiting=100, enqueue_timeout=timedelta(seconds=5)) as producer:
        assert_type(producer, Producer[Handle[Any]])
        assert_type(producer.submit(fetch.call("https://example.org"), block=False), Future[Handle[Any]])
        assert_type(producer.flush(1.5), bool)
        producer.submit("fetch")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    fetch.options(durability="replicas:2")
    assert_type(fetch.call("https://example.org"), Job)
    assert_type(await app.send("pages.fetch", {"url": "x"}, queue="web", delay=1.5), Handle[Any])
    assert_type(app.send_sync("pages.fetch"), Handle[Any])


async def options_keep_the_types() -> None:
    later = fetch.options(delay=timedelta(minutes=5), dedupe_key="k", queue="web", headers={"a": "b"}, result_ttl=0)
    assert_type(await later.enqueue("https://example.org"), Handle[bytes])
    soon = fetch.options(expires=timedelta(minutes=5), when_expired="drop")
    assert_type(await soon.enqueue("https://example.org"), Handle[bytes])
    assert_type(await count.options(at=datetime(2026, 1, 1, tzinfo=UTC)).enqueue(["a"]), Handle[int])
    await later.enqueue(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def wrong_arguments_are_errors() -> None:
    await greet.enqueue(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await greet.enqueue()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await greet.enqueue("Ada", True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await greet.enqueue("Ada", soft=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    greet.enqueue_sync(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    greet.call(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    # The context is the worker's to give.
    await fetch.enqueue(None, "https://example.org")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]


async def many() -> None:
    results = await app.enqueue_many(greet.call(name) for name in ("Ada", "Grace"))
    assert_type(results, list[Handle[Any] | StreamJobsError])
    assert_type(app.enqueue_many_sync([count.call([])]), list[Handle[Any] | StreamJobsError])
    await app.enqueue_many(["Ada"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


async def handles(handle: Handle[int]) -> None:
    assert_type(handle.id, str)
    assert_type(handle.duplicate, bool)
    assert_type(await handle.status(), JobStatus)
    assert_type(await handle.result(timeout=5), int)
    assert_type(handle.result_sync(), int)
    assert_type(await handle.cancel("why"), bool)
    await handle.reschedule(delay=timedelta(hours=1))
    handle.reschedule_sync(at=datetime(2030, 1, 1, tzinfo=UTC))
    await handle.run_now()
    handle.run_now_sync()
    assert_type(app.handle("mail:1-0"), Handle[Any])


async def seen_from_outside() -> None:
    async with app.worker(health_port=8080, metrics_port="0.0.0.0:9090") as worker:
        assert_type(worker.trouble, str)
        assert_type(await worker.unready(), str)
    app.run_worker(health_port=80.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    REGISTRY.register(Metrics(app))
    logging.StreamHandler().setFormatter(JsonFormatter())


async def workers() -> None:
    async with app.worker(["web"], WorkerOptions(lease=5), concurrency=10) as worker:
        assert_type(worker, Worker)
        worker.stop()
    assert_type(app.run_worker(["web"], burst=True), int)


def unknown(error: OutcomeUnknown) -> None:
    assert_type(error.retry(), Any)
