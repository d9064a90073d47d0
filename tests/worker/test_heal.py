"""The server forgets scripts, groups, everything, or goes away: workers go on without a restart."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamjobs import Context, Fixed, Rejected, Retry, StreamJobs
from tests.servers import Server
from tests.worker.support import FAST, Arm, Flag, Queue, make_app, messages, within


@pytest.fixture
def own(server_binary: Path) -> Iterator[Server]:
    """A server that this test may flush, stop and restart."""
    with Server(server_binary, args=("--appendonly", "yes")) as server:
        yield server


@pytest.fixture
async def lone(own: Server) -> AsyncIterator[StreamJobs]:
    """An app on that server."""
    app = make_app(own.url, "ns")
    yield app
    await app.aclose()


@pytest.fixture
def lone_queue(own: Server) -> Iterator[Queue]:
    queue = Queue(own.url, "ns")
    yield queue
    queue.close()


async def test_case_F13_flushed_scripts_are_loaded_again_unnoticed(
    lone: StreamJobs, lone_queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    @lone.job(retry=Retry(max_attempts=2, backoff=Fixed(0.001)))
    async def echo(ctx: Context[Any], n: int) -> int:
        if n % 2 and ctx.attempt == 1:
            raise ValueError("once")
        return n

    async with lone.worker(options=FAST):
        for n in range(10):
            handle = await echo.enqueue(n)
            lone_queue.command("SCRIPT", "FLUSH")
            assert await handle.result(timeout=10) == n

    assert not [text for text in messages(caplog) if "NOSCRIPT" in text]


async def test_a_destroyed_group_is_made_again_and_nothing_is_passed_over(lone: StreamJobs, lone_queue: Queue) -> None:
    started, go_on = Flag(), asyncio.Event()

    @lone.job
    async def waits(n: int) -> int:
        started.raise_()
        await go_on.wait()
        return n

    async with lone.worker(options=FAST, concurrency=2):
        running = [await waits.enqueue(n) for n in range(2)]
        await started.wait(2)
        waiting = [await waits.enqueue(n) for n in range(2, 5)]
        lone_queue.command("XGROUP", "DESTROY", lone_queue.keys.stream, "workers")
        go_on.set()

        results = [await handle.result(timeout=15) for handle in [*running, *waiting]]

    assert results == list(range(5))
    assert lone_queue.length() == 0


async def test_case_F6_after_FLUSHALL_new_jobs_run(
    lone: StreamJobs, lone_queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    @lone.job
    async def echo(n: int) -> int:
        return n

    loop = asyncio.get_running_loop()
    began = loop.time()
    async with lone.worker(options=FAST):
        assert await (await echo.enqueue(1)).result(timeout=10) == 1
        for n in range(3):
            lone_queue.command("FLUSHALL")
            # It is there before the group is: at 0, not at its end.
            handle = await echo.enqueue(n)
            assert await handle.result(timeout=10) == n
    seconds = loop.time() - began

    assert max(Counter(messages(caplog)).values(), default=0) <= 1 + seconds
    assert messages(caplog, "ERROR") == []
    assert lone_queue.totals()["regrouped"] == 1


@pytest.mark.parametrize("how", ["restart", "kill"])
async def test_case_F1_a_server_that_comes_back_is_served_within_seconds(
    own: Server, lone: StreamJobs, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    @lone.job
    async def echo(n: int) -> int:
        return n

    async with lone.worker(options=FAST):
        assert await (await echo.enqueue(1)).result(timeout=10) == 1
        await asyncio.to_thread(own.kill9 if how == "kill" else own.terminate)
        enqueuing = asyncio.create_task(echo.enqueue(2))
        await asyncio.wait([enqueuing], timeout=1)
        await asyncio.to_thread(own.start)

        assert await (await enqueuing).result(timeout=10) == 2

    assert not [text for text in messages(caplog, "ERROR") if "Traceback" in text]


async def test_case_C10_what_ended_while_the_server_was_away_is_settled_when_it_is_back(
    own: Server, lone: StreamJobs, lone_queue: Queue
) -> None:
    started, go_on, ended = Flag(), asyncio.Event(), Flag()

    @lone.job(retry=Retry(max_attempts=1))
    async def waits(n: int) -> int:
        started.raise_()
        await go_on.wait()
        ended.raise_()
        if n:
            raise ValueError("no")
        return n

    async with lone.worker(options=FAST, lease=30):
        handles = [await waits.enqueue(n) for n in range(2)]
        await started.wait(2)
        await asyncio.to_thread(own.kill9)
        go_on.set()
        await ended.wait(2)
        await asyncio.to_thread(own.start)
        results: list[Any] = [
            await asyncio.wait_for(asyncio.gather(handle.result(timeout=15), return_exceptions=True), 20)
            for handle in handles
        ]

    assert (results[0], started.count) == ([0], 2)
    assert "ValueError: no" in str(results[1][0])
    assert lone_queue.counts()["dead"] == 1


async def test_case_F2_cut_connections_lose_nothing(lone: StreamJobs, lone_queue: Queue) -> None:
    @lone.job
    async def echo(n: int) -> int:
        await asyncio.sleep(0)
        return n

    async with lone.worker(options=FAST):
        handles = []
        for n in range(200):
            handles.append(await echo.enqueue(n))
            if n % 40 == 20:
                lone_queue.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        results = await asyncio.gather(*(handle.result(timeout=15) for handle in handles))

    assert results == list(range(200))


async def test_a_worker_started_before_its_server_serves_when_it_is_there(server_binary: Path) -> None:
    server = Server(server_binary)
    app = make_app(server.url, "ns")

    @app.job
    async def echo(n: int) -> int:
        return n

    worker = app.make_worker(options=FAST)
    running = asyncio.create_task(worker.run())
    await asyncio.wait([running], timeout=0.3)
    assert not worker.ready.is_set()
    with server.start():
        await within(worker.ready)
        assert await (await echo.enqueue(1)).result(timeout=10) == 1
        worker.stop()
        assert await running is True
        await app.aclose()


async def test_a_worker_without_a_server_can_be_stopped(server_binary: Path) -> None:
    server = Server(server_binary)
    app = make_app(server.url, "ns")
    app.job(name="none")(lambda: None)
    worker = app.make_worker(options=FAST)
    running = asyncio.create_task(worker.run())
    await asyncio.wait([running], timeout=0.1)

    worker.stop()

    async with asyncio.timeout(5):
        await running
    server.close()


async def test_what_the_server_refuses_for_good_ends_the_worker(app: StreamJobs, queue: Queue) -> None:
    app.job(name="none")(lambda: None)
    queue.command("SET", queue.keys.stream, "not a stream")

    with pytest.raises(Rejected, match="WRONGTYPE"):
        await app.make_worker(options=FAST).run()
    queue.command("DEL", queue.keys.stream)


async def test_a_handlers_success_is_not_lost_to_an_error_of_its_settling(
    app: StreamJobs, queue: Queue, failpoint: Arm
) -> None:
    """An error that nobody foresaw ends the worker; what it had claimed falls to the next one."""

    @app.job
    async def echo(n: int) -> int:
        return n

    def break_once() -> None:
        failpoint("settle.before", lambda: None)
        raise ZeroDivisionError("unforeseen")

    failpoint("settle.before", break_once)
    handle = await echo.enqueue(1)
    with pytest.raises(ZeroDivisionError):
        await app.make_worker(options=FAST).run()

    async with app.worker(options=FAST):
        assert await handle.result(timeout=10) == 1
