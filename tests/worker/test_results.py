"""Handles: waiting for a result, cancelling, and handlers that are not what they look like."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from uuid import UUID

import pytest

from streamjobs import JobCancelled, ResultTimeout, State, StreamJobs, UsageError
from tests.worker.support import FAST, Queue, drain, make_app


def plainly(function: Callable[[], Awaitable[int]]) -> Callable[[], Awaitable[int]]:
    """Decorate as people do who forget that it may be async."""

    @functools.wraps(function)
    def wrapper() -> Awaitable[int]:
        return function()

    return wrapper


async def test_an_async_handler_behind_a_plain_decorator_runs(app: StreamJobs) -> None:
    @app.job(name="wrapped")
    @plainly
    async def wrapped() -> int:
        await asyncio.sleep(0)
        return 7

    handle = await wrapped.enqueue()
    await drain(app)

    assert await handle.result(5) == 7


async def test_a_plain_function_that_returns_a_coroutine_is_awaited(app: StreamJobs) -> None:
    async def work() -> int:
        return 8

    @app.job(name="returns")
    def returns() -> Awaitable[int]:
        return work()

    handle = await returns.enqueue()
    await drain(app)

    assert await handle.result(5) == 8


async def test_a_result_is_heard_although_the_listening_connection_was_cut(real: StreamJobs, queue: Queue) -> None:
    go = asyncio.Event()

    @real.job(name="slow")
    async def slow() -> int:
        await go.wait()
        return 9

    handle = await slow.enqueue()
    async with real.worker(options=FAST):
        waiting = asyncio.create_task(handle.result(20))
        while queue.command("PUBSUB", "NUMSUB", queue.keys.done)[1] == 0:
            await asyncio.sleep(0)
        assert queue.command("CLIENT", "KILL", "TYPE", "pubsub") >= 1
        go.set()

        assert await waiting == 9


async def test_both_twins_look_once_where_no_time_is_given(app: StreamJobs) -> None:
    @app.job(name="never")
    async def never() -> None: ...

    handle = await never.enqueue()

    with pytest.raises(ResultTimeout):
        await handle.result(0)
    with pytest.raises(ResultTimeout):
        await asyncio.to_thread(handle.result_sync, 0)
    await drain(app)
    assert await handle.result(0) is None
    assert await asyncio.to_thread(handle.result_sync, None) is None


def test_cancel_in_plain_code(app: StreamJobs) -> None:
    @app.job(name="never")
    async def never() -> None: ...

    handle = never.enqueue_sync()

    assert handle.cancel_sync("not wanted") is False

    assert handle.status_sync().state is State.CANCELLED
    with pytest.raises(JobCancelled, match="not wanted"):
        handle.result_sync(1)
    app.close()


async def test_a_result_that_is_not_kept_is_refused_at_once(app: StreamJobs) -> None:
    @app.job(name="forgets", result_ttl=0)
    async def forgets() -> None: ...

    handle = await forgets.enqueue()

    with pytest.raises(UsageError, match="keeps no result"):
        await handle.result()


async def test_a_result_has_the_type_that_the_handler_is_annotated_with(app: StreamJobs) -> None:
    @app.job(name="typed")
    async def typed() -> dict[int, tuple[datetime, UUID]]:
        return {7: (datetime(2026, 1, 2, tzinfo=UTC), UUID(int=5))}

    handle = await typed.enqueue()
    await drain(app)

    assert await handle.result(5) == {7: (datetime(2026, 1, 2, tzinfo=UTC), UUID(int=5))}
    assert await app.handle(handle.id).result(5) == {"7": ["2026-01-02T00:00:00Z", str(UUID(int=5))]}


async def test_a_result_of_another_version_of_the_handler_is_told(app: StreamJobs, url: str, namespace: str) -> None:
    @app.job(name="changes")
    async def changes() -> str:
        return "text"

    other = make_app(url, namespace)

    @other.job(name="changes")
    async def changed() -> int:
        return 1

    handle = await changed.enqueue()
    await drain(app)

    with pytest.raises(UsageError, match="changes: the result is not what it is annotated to return"):
        await handle.result(5)
    await other.aclose()
