"""What is on the server may be anything: a worker works beside it, or ends and says why. It never hangs."""

import asyncio
from typing import Any

import pytest

from streamjobs import JobOptions, Rejected
from tests.security.test_bad_state import ROTTEN
from tests.worker.support import FAST, WITHIN_S, Queue, make_app

NEEDED = {"config": "laid out by schema"}
"""Where a worker cannot go on, and what it says; of several such states the first."""


async def works(url: str, namespace: str, states: list[list[Any]]) -> bool:
    """Let a worker work beside these; say whether a good job has run, or raise what ended the worker."""
    queue = Queue(url, namespace)
    app = make_app(url, namespace, defaults=JobOptions(queue="q"))
    seen: list[int] = []

    @app.job(name="k", concurrency=1)
    def note(n: int) -> None:
        seen.append(n)

    queue.make_group()
    for command, name, *rest in states:
        queue.command(command, queue.keys.base + name, *rest)
    await app.kind("k").enqueue(1)
    worker = app.make_worker(options=FAST)
    running = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(WITHIN_S):
            while not (running.done() or (seen and queue.length() == 0)):
                await asyncio.sleep(0)
        worker.stop()
        await running
    finally:
        worker.stop()
        await asyncio.gather(running, return_exceptions=True)
        await app.aclose()
        queue.close()
    return seen == [1]


@pytest.mark.parametrize("words", [one for one in ROTTEN if one[1] not in NEEDED], ids=lambda words: f"{words[1:3]!r}")
async def test_a_worker_works_beside_fields_of_others(server_url: str, namespace: str, words: list[Any]) -> None:
    assert await works(server_url, namespace, [words])


async def test_a_worker_works_beside_all_of_them(server_url: str, namespace: str) -> None:
    states = [words for words in ROTTEN if words[1] not in NEEDED and words[0] != "SET"]

    assert await works(server_url, namespace, states)


@pytest.mark.parametrize("name", NEEDED)
async def test_a_worker_ends_and_says_why_where_it_cannot_work(server_url: str, namespace: str, name: str) -> None:
    [words] = [one for one in ROTTEN if one[1] == name][:1]

    with pytest.raises(Rejected, match=NEEDED[name]):
        await works(server_url, namespace, [words])
