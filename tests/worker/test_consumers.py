"""Consumers of workers that died: forgotten once they hold nothing, and never with a claim in their hands."""

import asyncio
from typing import Any

import pytest

from streamjobs import Context, StreamJobs
from streamjobs.protocol import leases
from streamjobs.worker import upkeep
from streamjobs.worker.worker import Worker
from tests.faults.proxy import Proxy
from tests.worker.bench import Bench
from tests.worker.support import FAST, WITHIN_S, Queue, make_app

CROWDS, CROWD = 4, 50
HELD = 40
"""Claims that were in the hands of the dead, 10 in each crowd."""
LIVE_AND_A_FEW = 1 + 5


async def crash(crowd: list[Worker], proxy: Proxy, queue: Queue, claims: int) -> None:
    """Start workers, and let them die in the midst of their work: none of their last words reaches the server."""
    running = [asyncio.create_task(one.run()) for one in crowd]
    names = {one.consumer.encode() for one in crowd}
    await until(lambda: names <= known(queue) and len(queue.pending()) >= claims)
    proxy.go_away()
    proxy.cut()
    for one in crowd:
        one.abort()
    await asyncio.gather(*running)
    proxy.heal()


def consumers(queue: Queue) -> set[bytes]:
    return {row[1] for row in queue.command("XINFO", "CONSUMERS", queue.keys.stream, "workers")}


def known(queue: Queue) -> set[bytes]:
    """Return the names of all workers that the server has: some make a consumer only of one that was given a job."""
    return consumers(queue) | {*queue.command("HKEYS", queue.keys.workers)}


async def until(done: Any) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not done():
            await asyncio.sleep(0)


async def test_thousands_of_dead_consumers_are_forgotten_in_bounded_calls(
    server_url: str, namespace: str, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.make_group()
    for n in range(2 * leases.RETIRE_MOST + 1):
        queue.command("HSET", queue.keys.workers, f"w{n}", "1 0")
        queue.command("XGROUP", "CREATECONSUMER", queue.keys.stream, "workers", f"w{n}")
    # The server knows the script by then.
    queue.run(leases.retire(queue.keys, []))
    monkeypatch.setattr(upkeep, "KEEP_MS", -1000)
    with Proxy(server_url) as proxy:
        app = make_app(proxy.url, namespace)
        await upkeep.Upkeep(Bench(app, queue).station, {}, {}, {}).tick()
        await app.aclose()

    assert proxy.seen["retire"] == 3
    assert known(queue) == set()


@pytest.mark.slow
async def test_case_A14_two_hundred_workers_that_died_are_forgotten_and_nothing_that_they_held(
    server_url: str, namespace: str, real: StreamJobs, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[int] = []
    with Proxy(server_url) as proxy:
        doomed = make_app(proxy.url, namespace)

        @doomed.job(name="held")
        async def held() -> None:
            await asyncio.Event().wait()

        @real.job(name="held", result_ttl=0)
        async def ends(ctx: Context[Any]) -> None:
            attempts.append(ctx.attempt)

        queue.make_group()
        queue.command("HSET", queue.keys.config, "lease_ms", 3_600_000)
        for n in range(1, CROWDS + 1):
            await real.enqueue_many(ends.call() for _ in range(HELD // CROWDS))
            await crash([doomed.make_worker(["q"], FAST) for _ in range(CROWD)], proxy, queue, n * HELD // CROWDS)
        await doomed.aclose()
    holders, claims = {row[1] for row in queue.pending()}, {row[0] for row in queue.pending()}
    assert (len(known(queue)), len(claims)) == (CROWDS * CROWD, HELD)

    monkeypatch.setattr(upkeep, "KEEP_MS", 500)
    monkeypatch.setattr(upkeep, "EVERY_S", 0.1)
    async with real.worker(options=FAST, block=0.1, sweep=0.1):
        await until(lambda: len(known(queue)) <= len(holders) + LIVE_AND_A_FEW)
        assert {row[0] for row in queue.pending()} == claims
        assert holders <= consumers(queue)

        queue.silence(7_200_000)
        await until(lambda: len(attempts) == HELD)
        await until(lambda: len(known(queue)) <= LIVE_AND_A_FEW)

    assert attempts == [2] * HELD
    assert (queue.length(), queue.pending(), queue.totals()["done"]) == (0, [], HELD)
