"""Enqueue: one or many, now or later; what is refused is refused before anything is sent."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from streamjobs import (
    Handle,
    InvalidOption,
    Job,
    PayloadTooLarge,
    State,
    StreamJobs,
    UnknownKind,
    UsageError,
)
from streamjobs.core.names import MAX_PAYLOAD_BYTES
from tests.producer.support import Queue

NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001
ROOM = MAX_PAYLOAD_BYTES - len('{"n":0,"text":""}')


async def test_a_job_is_where_its_handle_says(app: StreamJobs, queue: Queue) -> None:
    handle = await app.kind("note").enqueue(7, text="ä")

    assert (handle.id, handle.queue, handle.duplicate) == (f"q:{queue.waiting()[0]}", "q", False)
    status = await handle.status()
    assert (status.state, status.kind, status.attempt) == (State.WAITING, "note", 1)
    assert status.body == '{"n":7,"text":"ä"}'.encode()


async def test_plain_code_enqueues_alike(app: StreamJobs, queue: Queue) -> None:
    handles = [app.kind("note").enqueue_sync(1), app.send_sync("note", {"n": 2})]
    handles += [one for one in app.enqueue_many_sync([app.kind("note").call(3)]) if isinstance(one, Handle)]

    assert [handle.id for handle in handles] == [f"q:{one}" for one in queue.waiting()]
    assert [handle.status_sync().state for handle in handles] == [State.WAITING] * 3


async def test_a_delayed_job_is_scheduled(app: StreamJobs, queue: Queue) -> None:
    note = app.kind("note")
    handles = [
        await note.options(delay=3600).enqueue(1),
        await note.options(at=datetime.now(UTC) + timedelta(hours=1)).enqueue(2),
    ]

    statuses = [await handle.status() for handle in handles]

    assert queue.waiting() == []
    assert [handle.id for handle in handles] == [f"q:{one}" for one in queue.scheduled()]
    assert [status.state for status in statuses] == [State.SCHEDULED] * 2
    assert abs(statuses[0].due_ms - statuses[1].due_ms) < 60_000


async def test_headers_queue_and_result_wish_travel(app: StreamJobs, queue: Queue) -> None:
    note = app.kind("note").options(headers={"trace": "ä"}, result_ttl=60)

    status = await (await note.enqueue(1)).status()

    assert (status.meta.headers, status.meta.result_ttl_ms) == ({"trace": "ä"}, 60_000)
    other = await app.kind("note").options(queue="other").enqueue(1)
    assert other.id.startswith("other:")
    assert sorted(queue.command("SMEMBERS", f"{app.namespace}:queues")) == [b"other", b"q"]


async def test_case_E10_a_duplicate_is_the_handle_of_the_job_that_is_there(app: StreamJobs, queue: Queue) -> None:
    note = app.kind("note").options(dedupe_key="user:42")
    first = await note.enqueue(1)

    again = [await note.enqueue(2), note.enqueue_sync(3), await note.options(delay=60, dedupe_key="user:42").enqueue(4)]

    assert [(one.id, one.duplicate) for one in again] == [(first.id, True)] * 3
    assert (await again[0].status()).body == b'{"n":1,"text":""}'
    assert (len(queue.waiting()), queue.scheduled()) == (1, [])


async def test_duplicates_within_one_batch_and_beside_others(app: StreamJobs, queue: Queue) -> None:
    keyed, note = app.kind("note").options(dedupe_key="k"), app.kind("note")

    handles = await asyncio.gather(*(one.enqueue(n) for n in range(5) for one in (note, keyed)))

    owners = {handle.id for handle in handles[1::2]}
    assert len(owners) == 1
    assert [handle.duplicate for handle in handles[1::2]] == [False, True, True, True, True]
    assert len({handle.id for handle in handles[::2]} | owners) == len(queue.waiting()) == 6


async def test_many_come_back_in_order_with_the_error_of_each(app: StreamJobs, queue: Queue) -> None:
    note = app.kind("note")
    jobs: list[Any] = [note.call(n) for n in range(1200)]
    jobs[700] = "no job"

    results = await app.enqueue_many(jobs)

    assert isinstance(results[700], UsageError)
    assert "item 700" in str(results[700])
    assert [one.id for one in results if isinstance(one, Handle)] == [f"q:{one}" for one in queue.waiting()]
    assert queue.bodies() == [b'{"n":%d,"text":""}' % n for n in range(1200) if n != 700]


@pytest.mark.parametrize("colour", ["aio", "sync"])
async def test_what_a_broken_iterable_gave_before_is_there(app: StreamJobs, queue: Queue, colour: str) -> None:
    def jobs() -> Iterator[Job]:
        for n in range(600):
            yield app.kind("note").call(n)
        raise KeyError("source")

    with pytest.raises(KeyError, match="source"):
        await app.enqueue_many(jobs()) if colour == "aio" else app.enqueue_many_sync(jobs())

    assert len(queue.waiting()) == 600


async def test_many_over_several_queues_and_delays(app: StreamJobs, queue: Queue) -> None:
    note = app.kind("note")
    kinds = [note, note.options(delay=3600), note.options(queue="r")]

    results = await app.enqueue_many(kinds[n % 3].call(n) for n in range(30))

    assert [one.id[:3] for one in results if isinstance(one, Handle)] == [
        "q:1" if n % 3 == 0 else "q:d" if n % 3 == 1 else "r:1" for n in range(30)
    ]
    assert (len(queue.waiting()), len(queue.scheduled())) == (10, 10)


async def test_case_H5_the_limit_works_and_one_more_byte_writes_nothing(app: StreamJobs, queue: Queue) -> None:
    note = app.kind("note")

    for call in (note.enqueue_sync, note.call):
        with pytest.raises(PayloadTooLarge, match=f"{MAX_PAYLOAD_BYTES + 1} bytes"):
            call(0, text="x" * (ROOM + 1))
    with pytest.raises(PayloadTooLarge):
        await note.enqueue(0, text="x" * (ROOM + 1))
    with pytest.raises(PayloadTooLarge):
        await app.send("unknown.here", {"text": "x" * MAX_PAYLOAD_BYTES})
    assert queue.is_untouched()

    handle = await note.enqueue(0, text="x" * ROOM)
    assert len((await handle.status()).body) == MAX_PAYLOAD_BYTES


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("queue", {"queue": "x:dead"}), ("queue", {"queue": "{a}b"}), ("queue", {"queue": ""}),
    ("queue", {"queue": "x" * 300}), ("delay", {"delay": 0}), ("delay", {"delay": -1}),
    ("delay", {"delay": float("nan")}), ("delay", {"delay": 1e400}), ("at", {"at": NAIVE}),
    ("at", {"at": datetime(9999, 12, 31, tzinfo=UTC)}), ("dedupe_key", {"dedupe_key": "x" * 257}),
    ("headers", {"headers": {"a": 1}}), ("result_ttl", {"result_ttl": -1}),
]  # fmt: skip


@pytest.mark.parametrize(("what", "options"), REFUSED)
async def test_case_H8_bad_options_are_refused_before_anything_is_sent(
    app: StreamJobs, queue: Queue, what: str, options: dict[str, Any]
) -> None:
    """Also fault F50."""
    with pytest.raises(InvalidOption, match=what):
        app.kind("note").options(**options)
    with pytest.raises(InvalidOption, match=what):
        await app.send("note", {"n": 1}, **options)
    with pytest.raises(InvalidOption, match=what):
        app.send_sync("note", {"n": 1}, **options)

    assert queue.is_untouched()


async def test_wrong_arguments_are_refused_before_anything_is_sent(app: StreamJobs, queue: Queue) -> None:
    note: Any = app.kind("note")
    for args, kwargs in [(("1",), {}), ((1, "x", 2), {}), ((), {"m": 1}), ((), {"text": "\ud800"})]:
        with pytest.raises(UsageError, match="note: "):
            await note.enqueue(*args, **kwargs)
    with pytest.raises(UsageError, match="note: "):
        await app.send("note", {"n": "1"})
    with pytest.raises(UsageError, match="note: arguments must be an object"):
        await app.send("note", [1])  # type: ignore[arg-type]
    with pytest.raises(UnknownKind, match="known here: note"):
        app.kind("nota")

    assert queue.is_untouched()


async def test_send_needs_no_handler(app: StreamJobs, queue: Queue) -> None:
    handle = await app.send("elsewhere.kind", {"user": 1}, queue="q")

    assert (await handle.status()).kind == "elsewhere.kind"
    assert queue.bodies() == [b'{"user":1}']
