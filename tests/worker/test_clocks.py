"""Whose clock counts: the server's alone."""

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from streamjobs import Context, StreamJobs
from tests.worker.support import FAST, Flag, Queue, drain

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("producer_s", "worker_s"), [(300, -300), (-300, 300)])
def test_case_D1_delays_count_by_the_servers_clock(
    server_url: str, namespace: str, queue: Queue, producer_s: int, worker_s: int
) -> None:
    """The clocks of producer and worker are 5 minutes wrong, each in its own process."""

    def start(role: str, wrong_s: int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", "tests.worker.wrong_clock", role, str(wrong_s), server_url, namespace],
            cwd=ROOT, env={**os.environ, "PYTHONDEVMODE": ""},
        )  # fmt: skip

    with start("work", worker_s) as worker:
        # How long a process takes to start is not what is measured.
        while not queue.command("EXISTS", queue.keys.promoter) and worker.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                worker.wait(0.02)
        with start("produce", producer_s) as producer:
            assert producer.wait(60) == 0
        assert worker.wait(60) == 0

    due_ms, started_ms = (int(value) for value in queue.command("LRANGE", f"{namespace}:{{q}}:started", 0, -1))
    queue.command("DEL", f"{namespace}:{{q}}:started")
    assert 0 <= started_ms - due_ms < 500


async def test_case_D2_nothing_starts_before_it_is_due(real: StreamJobs, queue: Queue) -> None:
    done = Flag()
    early: list[float] = []

    @real.job(result_ttl=0)
    async def note(ctx: Context[Any], delay_ms: int) -> None:
        # The id is taken a moment after the script has looked at the clock.
        due_ms = round(ctx.enqueued_at * 1000) + delay_ms - 5
        if now_ms(queue) < due_ms:
            early.append(due_ms)
        done.raise_()

    await real.enqueue_many(note.options(delay=delay_ms / 1000).call(delay_ms) for delay_ms in range(1, 1001))
    async with real.worker(options=FAST, concurrency=50):
        await done.wait(1000)

    assert early == []
    assert done.count == 1000


def now_ms(queue: Queue) -> int:
    seconds, micros = queue.command("TIME")
    return int(seconds) * 1000 + int(micros) // 1000


async def test_case_D9_a_long_delay_is_one_entry_when_it_is_due(app: StreamJobs, queue: Queue) -> None:
    """Two hours of delay, a lease of one second: the set is wound forward instead of the clock."""
    seen: list[tuple[int, int]] = []

    @app.job
    async def note(ctx: Context[Any]) -> None:
        seen.append((ctx.attempt, ctx.deliveries))

    handle = await note.options(delay=7200).enqueue()
    await asyncio.gather(*(drain(app) for _ in range(3)))
    assert (seen, queue.length()) == ([], 0)
    local = handle.id.partition(":")[2]

    queue.command("ZADD", queue.keys.scheduled, now_ms(queue) - 1, local)
    async with app.worker(options=FAST), app.worker(options=FAST):
        await handle.result(timeout=10)

    assert seen == [(1, 1)]
    assert queue.totals()["promoted"] == 1
