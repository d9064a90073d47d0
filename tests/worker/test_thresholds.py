"""Thresholds in code: operators who do not know the code are told of them by its workers."""

import asyncio

import pytest

from streamjobs import InvalidOption, StreamJobs, Thresholds
from streamjobs.core.thresholds import stored
from streamjobs.protocol.config import THRESHOLDS
from tests.worker.support import FAST, WITHIN_S, Queue


async def test_a_worker_tells_what_the_code_says(app: StreamJobs, queue: Queue) -> None:
    said = Thresholds(oldest=(30, 120), dead=None)
    app.queue("q", thresholds=said)
    app.queue("other", thresholds=Thresholds(dead=5))

    async with app.worker(["q"], FAST), asyncio.timeout(WITHIN_S):
        while not (kept := queue.command("HGET", queue.keys.config, THRESHOLDS)):
            await asyncio.sleep(0)

    assert stored(kept.decode()) == Thresholds(oldest=(30.0, 120.0), dead=(None, None))
    assert kept == b'{"oldest":[30.0,120.0],"dead":[null,null]}'


async def test_a_queue_of_which_nothing_is_said_keeps_what_others_said(app: StreamJobs, queue: Queue) -> None:
    queue.command("HSET", queue.keys.config, THRESHOLDS, '{"dead":[7,null]}')

    async with app.worker(["q"], FAST), asyncio.timeout(WITHIN_S):
        # What is told comes after the queue is announced.
        while not queue.command("SISMEMBER", f"{app.namespace}:queues", "q"):
            await asyncio.sleep(0)

    assert queue.command("HGET", queue.keys.config, THRESHOLDS) == b'{"dead":[7,null]}'


def test_what_are_no_thresholds_is_refused() -> None:
    with pytest.raises(InvalidOption, match="expected streamjobs"):
        StreamJobs("memory://").queue("q", thresholds={"dead": 5})  # type: ignore[arg-type]
