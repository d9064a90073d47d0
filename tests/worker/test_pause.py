"""A paused queue, as a worker and an operator meet it."""

import asyncio

import pytest

from streamjobs import StreamJobs
from streamjobs.client.talk import atalk
from streamjobs.core.errors import NotFound
from streamjobs.operate import queues
from tests.worker.support import FAST, WITHIN_S, Flag, Queue, drain


async def length(queue: Queue, entries: int) -> None:
    """Wait until the stream is so long."""
    async with asyncio.timeout(WITHIN_S):
        while queue.length() != entries:
            await asyncio.sleep(0)


async def test_nothing_starts_while_it_is_paused_and_all_of_it_after(real: StreamJobs, queue: Queue) -> None:
    started, gate = Flag(), asyncio.Event()

    @real.job
    async def waits(n: int) -> None:
        started.raise_()
        await gate.wait()

    executor = real.connections.aio()
    async with real.worker(["q"], FAST):
        await waits.enqueue(0)
        await started.wait()
        assert await atalk(executor, queues.pause(real.namespace, "q"))
        await waits.enqueue(1)
        await waits.options(delay=0.05).enqueue(2)
        # The running one, the fresh one, and the delayed one, which is promoted; then the first has ended.
        await length(queue, 3)
        gate.set()
        await length(queue, 2)
        assert started.count == 1

        assert await atalk(executor, queues.resume(real.namespace, "q"))
        await started.wait(3)


async def test_an_unknown_queue_is_named(real: StreamJobs) -> None:
    with pytest.raises(NotFound, match="queue nope: there is none"):
        await atalk(real.connections.aio(), queues.pause(real.namespace, "nope"))


async def test_a_burst_does_not_wait_for_a_paused_queue(real: StreamJobs, queue: Queue) -> None:
    @real.job
    async def waits() -> None:
        raise AssertionError("it must not start")

    await waits.enqueue()
    await atalk(real.connections.aio(), queues.pause(real.namespace, "q"))

    await drain(real, ["q"])

    assert queue.length() == 1
