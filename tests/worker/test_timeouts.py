"""Deadlines, cancellation, and steering gone wrong: whatever a handler does, its slot comes back."""

import asyncio
import threading
from time import monotonic
from typing import Any

import msgspec
import pytest

from streamjobs import Cancel, Context, Fixed, JobCancelled, JobFailed, Retry, Snooze, StreamJobs, Temporary
from streamjobs.worker.execution import Ending
from streamjobs.worker.run import Runner
from streamjobs.worker.settle import Settler
from streamjobs.worker.start import Starter
from streamjobs.worker.station import Station
from streamjobs.worker.winddown import end_run
from tests.worker.bench import Bench
from tests.worker.support import FAST, WITHIN_S, Queue, make_app, messages

ONCE = Retry(max_attempts=1)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


async def test_case_C5_a_timeout_counts_like_a_failure(app: StreamJobs, queue: Queue) -> None:
    cancelled = 0

    @app.job(timeout=0.05, retry=Retry(max_attempts=2, backoff=Fixed(0.001)))
    async def hangs() -> None:
        nonlocal cancelled
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled += 1
            raise

    async with app.worker(options=FAST):
        with pytest.raises(JobFailed, match=r"still running after 0.05 s") as caught:
            await (await hangs.enqueue()).result(timeout=10)

    [dead] = queue.dead()
    assert (cancelled, caught.value.reason, dead["attempts"]) == (2, "exhausted", b"2")
    assert dead["history"].count(b'"k":"timeout"') == 2


async def test_a_handler_that_ends_well_after_its_cancellation_is_done(app: StreamJobs) -> None:
    @app.job(timeout=0.05)
    async def tidies() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "tidied"
        return "never"

    async with app.worker(options=FAST):
        assert await (await tidies.enqueue()).result(timeout=10) == "tidied"


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "async"])
async def test_a_handler_that_does_not_end_is_abandoned_and_its_slot_given_to_others(
    app: StreamJobs, queue: Queue, plain: bool, caplog: pytest.LogCaptureFixture
) -> None:
    go_on, ended = threading.Event(), asyncio.Event()

    def hangs_in_a_thread() -> None:
        go_on.wait(WITHIN_S)

    async def hangs_in_the_loop() -> None:
        while not ended.is_set():
            try:
                await ended.wait()
            except asyncio.CancelledError:
                # The worst that a handler can do.
                continue

    hangs = app.job(name="hangs", timeout=0.05, retry=ONCE)(hangs_in_a_thread if plain else hangs_in_the_loop)

    @app.job
    async def next_one() -> str:
        return "ran"

    async with app.worker(options=FAST, concurrency=1, grace=0.1):
        handle, following = await hangs.enqueue(), await next_one.enqueue()
        with pytest.raises(JobFailed, match="still running"):
            await handle.result(timeout=10)
        assert await following.result(timeout=10) == "ran"
        go_on.set()
        ended.set()

    assert [dead["reason"] for dead in queue.dead()] == [b"exhausted"]
    assert any("hangs" in text and "does not end" in text for text in messages(caplog, "ERROR"))


async def test_case_B5_a_plain_function_that_ignores_its_deadline_is_retried_a_lease_later(
    app: StreamJobs, queue: Queue
) -> None:
    """It goes on in its thread, which nobody can end; for the time of a lease it is alone."""
    starts: list[float] = []
    go_on, ended = threading.Event(), threading.Event()

    @app.job(timeout=0.1, retry=Retry(max_attempts=2, backoff=Fixed(0)))
    def ignores_it() -> int:
        starts.append(monotonic())
        if len(starts) == 1:
            go_on.wait(WITHIN_S)
            ended.set()
        return len(starts)

    async with app.worker(options=FAST, lease=1, grace=0.1):
        assert await (await ignores_it.enqueue()).result(timeout=WITHIN_S) == 2
        assert not ended.is_set()
        go_on.set()

    # Its deadline, the grace time, and the lease; the server counts whole milliseconds.
    assert starts[1] - starts[0] >= 0.1 + 0.1 + 1 - 0.002
    assert (queue.totals()["retried"], queue.totals()["done"]) == (1, 1)


async def test_case_B5_one_that_fails_behind_its_deadline_is_retried_after_its_end(app: StreamJobs) -> None:
    story: list[str] = []

    @app.job(timeout=0.05, retry=Retry(max_attempts=2, backoff=Fixed(0)))
    def fails_late() -> None:
        story.append("start")
        if len(story) == 1:
            threading.Event().wait(0.3)
            story.append("end")
            raise ValueError("too late to be of use")

    async with app.worker(options=FAST):
        await (await fails_late.enqueue()).result(timeout=WITHIN_S)

    assert story == ["start", "end", "start"]


async def test_a_plain_function_that_ends_late_but_in_grace_is_done(app: StreamJobs) -> None:
    @app.job(timeout=0.05)
    def slow() -> str:
        threading.Event().wait(0.3)
        return "late"

    async with app.worker(options=FAST):
        assert await (await slow.enqueue()).result(timeout=10) == "late"


async def test_without_a_timeout_a_job_may_take_its_time(app: StreamJobs) -> None:
    @app.job(timeout=None)
    async def takes_its_time(ctx: Context[Any]) -> bool:
        await asyncio.wait([asyncio.ensure_future(ctx.lost.wait())], timeout=0.3)
        return ctx.lost.is_set()

    async with app.worker(options=FAST):
        assert await (await takes_its_time.enqueue()).result(timeout=10) is False


async def test_a_cancellation_of_the_handlers_own_making_is_a_failure(app: StreamJobs) -> None:
    @app.job(retry=ONCE)
    async def cancels_itself() -> None:
        task = asyncio.ensure_future(asyncio.Event().wait())
        task.cancel()
        await task

    async with app.worker(options=FAST):
        with pytest.raises(JobFailed, match="CancelledError"):
            await (await cancels_itself.enqueue()).result(timeout=10)


def rule(error: BaseException) -> str | None:
    raise RuntimeError("this rule is wrong")


WRONG: list[BaseException] = [
    Snooze(float("nan")),
    Snooze("x"),  # type: ignore[arg-type]
    Snooze(1e400),
    Temporary(after=1e15),
    Temporary(after="5"),  # type: ignore[arg-type]
    Unprintable(),
    Cancel("\ud800"),
    ValueError("\ud800 surrogate"),
    StopIteration(5),
    StopAsyncIteration(),
    KeyboardInterrupt(),
    SystemExit(3),
    GeneratorExit(),
    BaseExceptionGroup("several", [ValueError("a"), KeyboardInterrupt()]),
]


@pytest.mark.parametrize("error", WRONG, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "async"])
async def test_whatever_is_raised_costs_no_slot(
    app: StreamJobs, error: BaseException, plain: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def in_a_thread() -> None:
        raise error

    async def in_the_loop() -> None:
        raise error

    raises = app.job(name="raises", retry=ONCE)(in_a_thread if plain else in_the_loop)

    @app.job
    async def next_one() -> str:
        return "ran"

    async with app.worker(options=FAST, concurrency=1):
        handle, following = await raises.enqueue(), await next_one.enqueue()

        assert await following.result(timeout=10) == "ran"
        with pytest.raises(JobCancelled if isinstance(error, Cancel) else JobFailed):
            await handle.result(timeout=10)
    assert all(text.encode() for text in messages(caplog))


async def test_a_rule_that_fails_costs_no_slot(url: str, namespace: str, queue: Queue, backend_url: str) -> None:
    app = make_app(url, namespace, classify=[rule])

    @app.job(retry=ONCE)
    async def raises() -> None:
        raise ValueError("no")

    async with app.worker(options=FAST, concurrency=1):
        for _ in range(2):
            with pytest.raises(JobFailed, match="this rule is wrong"):
                await (await raises.enqueue()).result(timeout=10)
    await app.aclose()


async def test_the_apps_own_rule_names_the_class(url: str, namespace: str, queue: Queue, backend_url: str) -> None:
    app = make_app(url, namespace, classify=[lambda error: "quota" if "quota" in str(error) else None])

    @app.job(retry=ONCE)
    async def raises() -> None:
        raise ValueError("over quota")

    async with app.worker(options=FAST):
        with pytest.raises(JobFailed):
            await (await raises.enqueue()).result(timeout=10)

    assert b'"k":"quota"' in queue.dead()[0]["history"]
    await app.aclose()


async def test_slots_of_handlers_that_do_not_end_are_replaced_once_over(
    app: StreamJobs, caplog: pytest.LogCaptureFixture
) -> None:
    """Plain functions that hang would else take one thread after the other, without end."""
    station = Station(app.connections.aio(), app.namespace, [], msgspec.structs.replace(FAST, concurrency=5), "me")
    settler = Settler(station)
    runner = Runner({}, (), settler, station.random)
    starter = Starter(station, runner, settler)

    free = []
    for runner.stuck in (0, 5, 7, 10, 12):
        free.append(starter.free())

    assert free == [5, 5, 3, 0, -2]
    assert "7 handlers will not end, which leaves 3 slots" in caplog.text


async def test_a_run_that_is_ended_before_its_first_step_gives_its_slot_back(app: StreamJobs, queue: Queue) -> None:
    """As when a lease is found lost in the turn of the loop in which its job starts."""
    queue.make_group()

    @app.job(name="never")
    async def never() -> None:
        await asyncio.Event().wait()

    bench = Bench(app, queue)
    await never.enqueue()
    bench.read()
    [execution] = bench.queue.held.values()
    assert (execution.runs, bench.runner.running) == (True, 1)
    end_run(execution, Ending.LOST)
    assert execution.task
    await asyncio.wait([execution.task])

    assert (bench.runner.running, bench.starter.free(), bench.queue.held) == (0, 10, {})
    await bench.settled()
