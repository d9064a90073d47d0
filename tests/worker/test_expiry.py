"""expires: a job that nobody started in time is never started."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from streamjobs import Context, JobCancelled, JobFailed, Retry, Snooze, StreamJobs
from streamjobs.core.codec import encode_meta
from streamjobs.core.job import Meta
from streamjobs.core.retry import Fixed
from streamjobs.protocol import leases
from tests.worker.support import FAST, Queue, drain

PAST = datetime(2020, 1, 1, tzinfo=UTC)
FUTURE = datetime(2100, 1, 1, tzinfo=UTC)


def add_note(app: StreamJobs) -> list[int]:
    """Register a kind; return the attempts at which it was started."""
    started: list[int] = []

    @app.job(name="note", retry=Retry(max_attempts=3, backoff=Fixed(0.05)))
    async def note(ctx: Context[Any], how: str = "") -> None:
        started.append(ctx.attempt)
        if how == "fail" and ctx.attempt == 1:
            raise ConnectionError
        if how == "snooze":
            raise Snooze(3600)

    return started


async def test_expired_job_is_dead_without_an_attempt(app: StreamJobs, queue: Queue) -> None:
    started = add_note(app)
    handle = await app.kind("note").options(expires=PAST).enqueue()

    await drain(app)

    with pytest.raises(JobFailed, match=r"expired: not started by 2020-01-01T00:00:00\.000\+00:00"):
        await handle.result()
    [row] = queue.dead()
    assert (row["reason"], row["attempts"], row["history"], started) == (b"expired", b"0", b"[]", [])
    assert queue.totals()["dead"] == 1


async def test_dropped_job_is_cancelled(app: StreamJobs, queue: Queue) -> None:
    started = add_note(app)
    handle = await app.kind("note").options(expires=PAST, when_expired="drop").enqueue()

    await drain(app)

    with pytest.raises(JobCancelled, match="expired: not started by 2020"):
        await handle.result()
    assert (started, queue.counts()["dead"], queue.totals()["cancelled"]) == ([], 0, 1)
    assert queue.totals()["enqueued"] == 1


@pytest.mark.parametrize("expires", [60, timedelta(hours=1), FUTURE], ids=str)
async def test_job_in_time_runs(app: StreamJobs, expires: Any) -> None:
    started = add_note(app)
    handle = await app.kind("note").options(expires=expires).enqueue()

    await drain(app)

    await handle.result()
    assert started == [1]


@pytest.mark.parametrize("delay", [None, 0.01])
async def test_seconds_count_from_the_enqueue_by_the_servers_clock(
    app: StreamJobs, queue: Queue, delay: float | None
) -> None:
    """A delayed job's id tells when it was enqueued, too."""
    started = add_note(app)
    handle = await app.kind("note").options(expires=0.03, delay=delay).enqueue()
    while (await handle.status()).expires_ms >= now_ms(queue):
        await asyncio.sleep(0)

    async with app.worker(options=FAST):
        with pytest.raises(JobFailed, match="expired: not started by"):
            await handle.result(timeout=10)

    assert started == []


async def test_retry_of_a_job_that_started_in_time_runs_however_late(app: StreamJobs, queue: Queue) -> None:
    started = add_note(app)
    entry = queue.add("kind", "note", "body", '{"how":"fail"}')
    meta = encode_meta(Meta(id=entry.decode(), failures=1, expires_at_ms=1))
    queue.add("kind", "note", "body", '{"how":"fail"}', "meta", meta)

    await drain(app)

    assert sorted(started) == [1, 2, 2]
    assert queue.counts()["dead"] == 0


async def test_start_that_was_not_charged_does_not_count(app: StreamJobs, queue: Queue) -> None:
    """Snoozed, or held back by a limit: what the handler wanted to do is as late as if it had never started."""
    started = add_note(app)
    queue.add(
        "kind", "note", "body", "{}", "meta", encode_meta(Meta(snoozes=3, rate_waits=2, parks=1, expires_at_ms=1))
    )

    await drain(app)

    assert (queue.dead()[0]["reason"], started) == (b"expired", [])


async def test_job_of_a_dead_worker_may_have_started_and_runs_again(app: StreamJobs, queue: Queue) -> None:
    started = add_note(app)
    queue.make_group()
    await app.kind("note").options(expires=PAST).enqueue()
    queue.crash()

    await drain(app)

    assert started == [2]


async def test_claim_given_back_unstarted_expires(app: StreamJobs, queue: Queue) -> None:
    started = add_note(app)
    queue.make_group()
    await app.kind("note").options(expires=PAST).enqueue()
    [claim] = queue.read("stopped")
    queue.run(leases.release(queue.keys, "stopped", 1000, [leases.Giveback(claim.entry, 1, 1)]))

    await drain(app)

    assert (queue.dead()[0]["reason"], started) == (b"expired", [])


async def test_expired_job_of_an_unknown_kind_is_not_kept_waiting(app: StreamJobs, queue: Queue) -> None:
    add_note(app)
    await app.send("their.kind", queue="q", expires=PAST)

    await drain(app)

    assert queue.dead()[0]["reason"] == b"expired"
    assert queue.counts()["scheduled"] == 0


async def test_job_keeps_its_expiry_over_a_snooze(app: StreamJobs, queue: Queue) -> None:
    started = add_note(app)
    handle = await app.kind("note").options(expires=FUTURE, when_expired="drop").enqueue("snooze")

    await drain(app)

    status = await handle.status()
    assert (status.meta.expires_at_ms, status.meta.drop_expired) == (round(FUTURE.timestamp() * 1000), True)
    assert started == [1]
    await handle.cancel()


def now_ms(queue: Queue) -> int:
    seconds, micros = queue.command("TIME")
    return int(seconds) * 1000 + int(micros) // 1000
