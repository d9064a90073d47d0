"""Natural batching on a server: callers share calls, in one loop, in many threads, and in both at once."""

import asyncio
import errno
import gc
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from streamjobs import NotSent, OutcomeUnknown, StreamJobs
from streamjobs.producer.batching import Shipment
from streamjobs.protocol import scripts
from tests.faults.proxy import Proxy
from tests.producer.support import SOON_S, Queue, make_app


@pytest.fixture
async def real(server_url: str, namespace: str) -> AsyncIterator[StreamJobs]:
    """An app on a real server: only there can calls be counted."""
    app = make_app(server_url, namespace)
    yield app
    await app.aclose()


async def test_ten_thousand_concurrent_callers_share_a_few_dozen_calls(real: StreamJobs, queue: Queue) -> None:
    note = real.kind("note")
    await note.enqueue(0)
    before = queue.script_calls()

    handles = await asyncio.gather(*(note.enqueue(n) for n in range(10_000)))

    assert queue.script_calls() - before <= 40
    assert [handle.id for handle in handles] == [f"q:{one}" for one in queue.waiting()[1:]]


async def test_a_lone_caller_pays_one_call(real: StreamJobs, queue: Queue) -> None:
    note = real.kind("note")
    await note.enqueue(0)
    before = queue.script_calls()

    for n in range(10):
        await note.enqueue(n)
    for n in range(10):
        note.enqueue_sync(n)

    # A new producer id of plain code does not need its script loaded again.
    assert queue.script_calls() - before == 20


async def test_a_bulk_goes_five_hundred_at_a_time(real: StreamJobs, queue: Queue) -> None:
    note = real.kind("note")
    await note.enqueue(0)
    before = queue.script_calls()

    await real.enqueue_many(note.call(n) for n in range(5000))
    real.enqueue_many_sync(note.call(n) for n in range(5000))

    assert queue.script_calls() - before == 20


def test_threads_share_calls(server_url: str, namespace: str, queue: Queue, failpoint: Any) -> None:
    app = make_app(server_url, namespace)
    app.kind("note").enqueue_sync(0)
    before = queue.script_calls()
    never = threading.Event()
    # Each call takes long enough for the other threads to come.
    failpoint("producer.before_send", lambda: never.wait(0.005))

    with ThreadPoolExecutor(20) as pool:
        handles = list(pool.map(app.kind("note").enqueue_sync, range(1000)))

    assert queue.script_calls() - before <= 250
    assert sorted(handle.id for handle in handles) == sorted(f"q:{one}" for one in queue.waiting()[1:])
    assert len(set(queue.bodies()[1:])) == 1000
    app.close()


async def test_plain_code_and_asyncio_enqueue_at_once(app: StreamJobs, queue: Queue) -> None:
    note = app.kind("note")

    handles = await asyncio.gather(
        *(note.enqueue(n) for n in range(200)), *(asyncio.to_thread(note.enqueue_sync, n) for n in range(200))
    )

    assert sorted(handle.id for handle in handles) == sorted(f"q:{one}" for one in queue.waiting())
    assert len(handles) == 400


def test_event_loops_in_turn_and_at_once(url: str, namespace: str, queue: Queue, backend_url: str) -> None:
    app = make_app(url, namespace)

    async def some(first: int) -> list[str]:
        handles = await asyncio.gather(*(app.kind("note").enqueue(n) for n in range(first, first + 100)))
        await app.aclose()
        return [handle.id for handle in handles]

    ids = asyncio.run(some(0)) + asyncio.run(some(100))
    with ThreadPoolExecutor(2) as pool:
        for more in pool.map(lambda first: asyncio.run(some(first)), (200, 300)):
            ids += more

    assert sorted(ids) == sorted(f"q:{one}" for one in queue.waiting())
    assert len(set(queue.bodies())) == 400
    app.close()


async def test_a_caller_cancelled_before_its_job_was_sent_takes_it_back(
    server_url: str, namespace: str, queue: Queue, failpoint: Any
) -> None:
    with Proxy(server_url) as proxy:
        app, sent = make_app(proxy.url, namespace), asyncio.Event()
        note = app.kind("note")
        await note.enqueue(0)
        proxy.hold("reply")
        failpoint("producer.before_send", sent.set)
        first = asyncio.create_task(note.enqueue(1))
        await sent.wait()
        second, third = asyncio.create_task(note.enqueue(2)), asyncio.create_task(note.enqueue(3))
        await asyncio.sleep(0)

        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        proxy.release()
        await asyncio.gather(first, third)
        await app.aclose()

    assert queue.bodies() == [b'{"n":%d,"text":""}' % n for n in (0, 1, 3)]


async def test_a_caller_cancelled_later_leaves_its_job(app: StreamJobs, queue: Queue, failpoint: Any) -> None:
    sent = asyncio.Event()
    failpoint("producer.before_send", sent.set)
    note = app.kind("note")
    first = asyncio.create_task(note.enqueue(1))
    await sent.wait()

    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await note.enqueue(2)

    assert queue.bodies() == [b'{"n":1,"text":""}', b'{"n":2,"text":""}']


async def test_a_bulk_cancelled_midway_leaves_the_producer_usable(app: StreamJobs, queue: Queue) -> None:
    note = app.kind("note")
    bulk = asyncio.create_task(app.enqueue_many(note.call(n) for n in range(5000)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    bulk.cancel()
    await asyncio.gather(bulk, return_exceptions=True)

    last = await note.enqueue(9999)

    assert bulk.cancelled()
    assert last.id == f"q:{queue.waiting()[-1]}"
    assert len(queue.waiting()) < 5000


def test_an_odd_error_while_sending_leaves_nobody_waiting(
    url: str, namespace: str, backend_url: str, failpoint: Any
) -> None:
    """Such as a signal's exception in the middle of a call: those in the batch are told, the next go on."""
    app = make_app(url, namespace)

    def raise_once() -> None:
        failpoint("producer.before_send", None)
        raise KeyboardInterrupt

    failpoint("producer.before_send", raise_once)
    with pytest.raises(KeyboardInterrupt):
        app.kind("note").enqueue_sync(1)

    assert app.kind("note").enqueue_sync(2).status_sync().state == "waiting"
    app.close()


async def test_what_has_arrived_is_freed_without_a_collection(real: StreamJobs) -> None:
    note = real.kind("note")
    gc.collect()
    gc.disable()
    try:
        await note.enqueue(1)
        note.enqueue_sync(2)
        await real.enqueue_many(note.call(n) for n in range(1000))
        real.enqueue_many_sync(note.call(n) for n in range(1000))
        with real.producer() as producer:
            producer.submit(note.call(3)).result()

        assert [one for one in gc.get_objects() if isinstance(one, Shipment)] == []
    finally:
        gc.enable()


async def test_an_odd_error_while_sending_leaves_no_task_waiting(
    real: StreamJobs, queue: Queue, failpoint: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """What it came in the middle of may be there; what waited behind that is not, and the next go on."""
    note = real.kind("note")

    def raise_once() -> None:
        failpoint("producer.before_send", None)
        raise ZeroDivisionError("unforeseen")

    failpoint("producer.before_send", raise_once)
    async with asyncio.timeout(SOON_S):
        results = await real.enqueue_many(note.call(n) for n in range(600))

    assert [type(one) for one in results] == [OutcomeUnknown] * 500 + [NotSent] * 100
    assert "unforeseen" in str(results[-1])
    assert [record.getMessage() for record in caplog.records] == ["sending to q failed"]
    assert (await note.enqueue(600)).id == f"q:{queue.waiting()[0]}"
    assert len(queue.waiting()) == 1


async def test_the_first_job_is_sent_by_a_process_that_can_open_no_more_files(
    url: str, namespace: str, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_text(*_: Any) -> str:
        raise OSError(errno.EMFILE, "too many open files")

    scripts.load.cache_clear()
    app = make_app(url, namespace)
    note = app.kind("note")
    monkeypatch.setattr(Path, "read_text", read_text)

    async with asyncio.timeout(SOON_S):
        await note.enqueue(1)
        await note.options(delay=3600).enqueue(2)

    assert (len(queue.waiting()), len(queue.scheduled())) == (1, 1)
    await app.aclose()
