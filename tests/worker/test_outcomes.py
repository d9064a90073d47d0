"""What a handler does, and what becomes of its job."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from streamjobs import (
    Cancel,
    Context,
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
    UsageError,
    current_job,
)
from tests.worker.support import FAST, Flag, Queue, drain, make_app, messages

AT_ONCE = Fixed(0.001)


@dataclass
class Report:
    pages: int
    title: str


@pytest.mark.parametrize("value", [None, True, 0, 2**63 - 1, 1.5, "ä\x00\U0001f600", [1, [2]], {"a": {"b": None}}, ""])
async def test_what_a_handler_returns_is_the_result(app: StreamJobs, value: Any) -> None:
    @app.job
    async def echo(given: Any) -> Any:
        return given

    async with app.worker(options=FAST):
        handle = await echo.enqueue(value)

        assert await handle.result(timeout=10) == value
    assert (await handle.status()).state == State.DONE


async def test_typed_results_come_back_as_what_they_were(app: StreamJobs) -> None:
    @app.job
    async def make() -> Report:
        return Report(3, "ä")

    async with app.worker(options=FAST):
        result: Any = await (await make.enqueue()).result(timeout=10)

    assert result == Report(3, "ä")


async def test_a_result_that_cannot_be_kept_makes_the_job_dead(app: StreamJobs) -> None:
    @app.job
    async def make() -> Any:
        return object()

    @app.job
    async def surrogate() -> str:
        return "\ud800"

    async with app.worker(options=FAST):
        for kind in (make, surrogate):
            with pytest.raises(JobFailed, match="the result cannot be kept") as caught:
                await (await kind.enqueue()).result(timeout=10)
            assert caught.value.reason == "permanent"


async def test_without_a_result_wish_any_return_value_will_do(app: StreamJobs, queue: Queue) -> None:
    @app.job
    async def make() -> Any:
        return object()

    handle = await make.options(result_ttl=0).enqueue()
    await drain(app)

    assert queue.counts() == {"waiting": 0, "scheduled": 0, "retries": 0, "dead": 0}
    assert (await handle.status()).state == State.FINISHED
    with pytest.raises(UsageError, match="keeps no result"):
        await handle.result()


async def test_plain_functions_run_in_threads_and_know_their_job(app: StreamJobs) -> None:
    @app.job
    def plain(n: int) -> list[Any]:
        return [n, current_job().id, threading.current_thread() is threading.main_thread()]

    @app.job
    def with_context(ctx: Context[None], n: int) -> list[Any]:
        return [n, ctx.id, ctx.lost.is_set()]

    async with app.worker(options=FAST):
        first, second = await plain.enqueue(1), await with_context.enqueue(2)

        assert await first.result(timeout=10) == [1, first.id, False]
        assert await second.result(timeout=10) == [2, second.id, False]


async def test_threads_are_reused_and_as_many_as_run_at_once(app: StreamJobs) -> None:
    names: set[str] = set()
    inside, most = 0, 0
    lock = threading.Lock()

    @app.job
    def plain(n: int) -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
            names.add(str(threading.get_ident()))
        with lock:
            inside -= 1

    async with app.worker(options=FAST, concurrency=3):
        handles = [await plain.enqueue(n) for n in range(30)]
        for handle in handles:
            await handle.result(timeout=10)

    assert most <= 3
    assert len(names) <= 3


async def test_the_context_knows_its_run(app: StreamJobs) -> None:
    @app.job(name="look", retry=Retry(max_attempts=5))
    async def look(ctx: Context[Any]) -> list[Any]:
        assert current_job().id == ctx.id
        return [ctx.id, ctx.kind, ctx.queue, ctx.attempt, ctx.max_attempts, ctx.deliveries, ctx.headers, ctx.state,
                ctx.enqueued_at, ctx.idempotency_key, ctx.lost.is_set()]  # fmt: skip

    async with app.worker(options=FAST):
        handle = await look.options(headers={"a": "b"}).enqueue()
        seen = await handle.result(timeout=10)

    enqueued_at = int(handle.id.partition(":")[2].partition("-")[0]) / 1000
    assert seen == [handle.id, "look", "q", 1, 5, 1, {"a": "b"}, None, enqueued_at, handle.id, False]
    with pytest.raises(UsageError, match="no job runs here"):
        current_job()


async def test_id_and_key_stay_over_retries_and_the_attempt_grows(app: StreamJobs) -> None:
    seen: list[tuple[str, str, int, float]] = []

    @app.job(retry=Retry(max_attempts=4, backoff=AT_ONCE))
    async def fails(ctx: Context[Any]) -> int:
        seen.append((ctx.id, ctx.idempotency_key, ctx.attempt, ctx.enqueued_at))
        if ctx.attempt < 4:
            raise ValueError("not yet")
        return ctx.attempt

    async with app.worker(options=FAST):
        assert await (await fails.enqueue()).result(timeout=20) == 4

    assert len({(one[0], one[1], one[3]) for one in seen}) == 1
    assert [one[2] for one in seen] == [1, 2, 3, 4]


async def test_the_context_logs_with_the_jobs_name(app: StreamJobs, caplog: pytest.LogCaptureFixture) -> None:
    @app.job(name="talker")
    async def talker(ctx: Context[Any]) -> None:
        ctx.log.warning("hello")

    async with app.worker(options=FAST):
        handle = await talker.enqueue()
        await handle.result(timeout=10)

    [record] = [record for record in caplog.records if record.getMessage() == "hello"]
    assert record.name == "streamjobs.job.talker"
    assert (record.__dict__["job_id"], record.__dict__["attempt"]) == (handle.id, 1)


async def test_the_lifespan_is_around_the_worker_and_its_state_in_reach(url: str, namespace: str) -> None:
    events: list[str] = []

    @asynccontextmanager
    async def lifespan(app: StreamJobs) -> AsyncIterator[dict[str, int]]:
        events.append("open")
        yield {"n": 41}
        events.append("close")

    app = make_app(url, namespace, lifespan=lifespan)

    @app.job
    async def use(ctx: Context[dict[str, int]]) -> int:
        events.append("job")
        return ctx.state["n"] + 1

    async with app.worker(options=FAST):
        assert await (await use.enqueue()).result(timeout=10) == 42
    await app.aclose()
    assert events == ["open", "job", "close"]


async def test_a_permanent_error_makes_the_job_dead_at_once(
    app: StreamJobs, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    @app.job(name="steered")
    async def steered() -> None:
        raise Permanent("no such page")

    @app.job(name="listed", retry=Retry(permanent=(LookupError,)))
    async def listed() -> None:
        raise KeyError("x")

    async with app.worker(options=FAST):
        for kind, error in ((steered, "Permanent: no such page"), (listed, "KeyError: 'x'")):
            with pytest.raises(JobFailed) as caught:
                await (await kind.enqueue()).result(timeout=10)
            assert (caught.value.reason, caught.value.error) == ("permanent", error)

    assert [dead["attempts"] for dead in queue.dead()] == [b"1", b"1"]
    assert any("steered" in text and "no such page" in text and "Traceback" in text for text in messages(caplog))


async def test_a_temporary_error_may_name_its_own_delay(app: StreamJobs, queue: Queue) -> None:
    @app.job
    async def later(ctx: Context[Any]) -> int:
        if ctx.attempt == 1:
            raise Temporary("busy", after=3600)
        return ctx.attempt

    started = Flag()

    @app.job
    async def soon(ctx: Context[Any]) -> int:
        started.raise_()
        if ctx.attempt == 1:
            raise Temporary(after=0) from ConnectionError("refused")
        return ctx.attempt

    async with app.worker(options=FAST):
        waiting = await later.enqueue()
        assert await (await soon.enqueue()).result(timeout=10) == 2
        status = await waiting.status()

    assert (status.state, status.retrying, status.attempt) == (State.SCHEDULED, True, 2)
    assert status.history[0].error == "Temporary: busy"
    assert queue.counts() == {"waiting": 0, "scheduled": 0, "retries": 1, "dead": 0}
    await waiting.cancel()


async def test_case_C9_a_rate_limit_is_not_charged(app: StreamJobs, queue: Queue) -> None:
    runs: list[float] = []

    @app.job(retry=Retry(max_attempts=3))
    async def limited(ctx: Context[Any]) -> int:
        runs.append(asyncio.get_running_loop().time())
        if len(runs) <= 10:
            raise RateLimited(after=0.05)
        return ctx.attempt

    async with app.worker(options=FAST):
        assert await (await limited.enqueue()).result(timeout=20) == 1

    assert len(runs) == 11
    assert all(later - earlier >= 0.05 for earlier, later in pairwise(runs))
    assert queue.counts()["dead"] == 0


async def test_a_snooze_is_not_charged_and_a_cancel_ends_the_job(app: StreamJobs, queue: Queue) -> None:
    runs = 0

    @app.job(retry=Retry(max_attempts=1))
    async def snoozes(ctx: Context[Any]) -> int:
        nonlocal runs
        runs += 1
        if runs < 4:
            raise Snooze(0.01)
        return ctx.attempt

    @app.job
    async def cancels() -> None:
        raise Cancel("not needed any more")

    async with app.worker(options=FAST):
        assert await (await snoozes.enqueue()).result(timeout=10) == 1
        with pytest.raises(JobCancelled, match="not needed any more"):
            await (await cancels.enqueue()).result(timeout=10)

    assert runs == 4
    assert queue.counts() == {"waiting": 0, "scheduled": 0, "retries": 0, "dead": 0}


@pytest.mark.parametrize("most", [1, 3])
async def test_case_C4_a_job_that_always_fails_runs_exactly_so_often(app: StreamJobs, queue: Queue, most: int) -> None:
    runs = 0

    @app.job(retry=Retry(max_attempts=most, backoff=AT_ONCE))
    async def fails() -> None:
        nonlocal runs
        runs += 1
        raise ValueError(f"no {runs}")

    async with app.worker(options=FAST):
        with pytest.raises(JobFailed) as caught:
            await (await fails.enqueue()).result(timeout=20)

    [dead] = queue.dead()
    assert (runs, caught.value.reason, dead["attempts"]) == (most, "exhausted", b"%d" % most)
    assert dead["history"].count(b'"k":"validation"') == most
    assert dead["error"] == b"ValueError: no %d" % most
