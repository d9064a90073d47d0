"""handle.reschedule, handle.run_now: another time for a job, at once where a worker sleeps until the old one."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from streamjobs import Context, InvalidOption, NotFound, Refused, Retry, StreamJobs
from streamjobs.core.retry import Fixed
from tests.worker.support import FAST, Queue, drain, within

YEAR_2100 = datetime(2100, 1, 1, tzinfo=UTC)


def add_kinds(app: StreamJobs) -> asyncio.Event:
    """Register the kinds; return an event that is set when `flaky` fails."""
    failed = asyncio.Event()

    @app.job(name="note")
    async def note(ctx: Context[Any]) -> int:
        return ctx.attempt

    @app.job(name="flaky", retry=Retry(backoff=Fixed(86_400)))
    async def flaky(ctx: Context[Any]) -> int:
        if ctx.attempt == 1:
            failed.set()
            raise ConnectionError
        return ctx.attempt

    return failed


@pytest.mark.parametrize("plain", [False, True], ids=["asyncio", "plain"])
async def test_run_now_wakes_who_sleeps_until_then(
    app: StreamJobs, queue: Queue, monkeypatch: pytest.MonkeyPatch, plain: bool
) -> None:
    monkeypatch.setattr("streamjobs.worker.promote.LONGEST_S", 14.0)
    add_kinds(app)
    handle = await app.kind("note").options(delay=timedelta(days=400)).enqueue()
    # The ring of its enqueue would do as well.
    queue.command("DEL", queue.keys.bell)
    async with app.worker(options=FAST):
        while not queue.command("EXISTS", queue.keys.promoter):
            await asyncio.sleep(0)
        if plain:
            await asyncio.to_thread(handle.run_now_sync)
        else:
            await handle.run_now()
        assert await handle.result(timeout=10) == 1


async def test_run_now_does_not_wait_for_the_back_off(app: StreamJobs, queue: Queue) -> None:
    failed = add_kinds(app)
    handle = await app.kind("flaky").enqueue()
    async with app.worker(options=FAST):
        await within(failed)
    assert (await handle.status()).retrying

    await handle.run_now()
    assert queue.counts()["retries"] == 1, "it is still a retry"
    await drain(app)

    assert await handle.result() == 2


async def test_reschedule_moves_the_time_either_way(app: StreamJobs) -> None:
    add_kinds(app)
    handle = await app.kind("note").options(delay=3600).enqueue()

    await handle.reschedule(at=YEAR_2100)
    assert (await handle.status()).due_ms == round(YEAR_2100.timestamp() * 1000)

    enqueued_ms = int(handle.id.partition(":d")[2].partition("-")[0])
    handle.reschedule_sync(delay=timedelta(minutes=1))
    assert 60_000 <= (await handle.status()).due_ms - enqueued_ms < 90_000


async def test_only_scheduled_jobs_can_be_rescheduled(app: StreamJobs) -> None:
    add_kinds(app)
    handle = await app.kind("note").enqueue()

    with pytest.raises(Refused, match=f"job {handle.id} is waiting, not scheduled; nothing was changed"):
        await handle.run_now()
    await drain(app)
    with pytest.raises(Refused, match="is done, not scheduled"):
        await handle.reschedule(delay=1)
    with pytest.raises(NotFound):
        await app.handle("q:d99999999999999-0").run_now()


@pytest.mark.parametrize(
    "wrong",
    [{}, {"delay": 1, "at": YEAR_2100}, {"delay": 0}, {"delay": -1}, {"delay": float("nan")}, {"delay": 1e12},
     {"at": datetime(2030, 1, 1)}],  # noqa: DTZ001
    ids=str,
)  # fmt: skip
async def test_times_that_cannot_be_are_refused(app: StreamJobs, wrong: dict[str, Any]) -> None:
    add_kinds(app)
    handle = await app.kind("note").options(delay=3600).enqueue()
    before = await handle.status()

    with pytest.raises(InvalidOption, match=r"delay|at"):
        await handle.reschedule(**wrong)

    assert await handle.status() == before
