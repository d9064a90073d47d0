"""A queue that is full, as callers see it: each is told of its own job, at once or when its time is up."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from streamjobs import Handle, InvalidOption, OutcomeUnknown, QueueFull, StreamJobs
from tests.faults.proxy import Act, Proxy, Rule
from tests.producer.support import SOON_S, AsyncCaller, Caller, MakeCaller, Queue, make_app


@pytest.fixture(params=[Caller, AsyncCaller], ids=["sync", "aio"])
def callers(request: pytest.FixtureRequest, namespace: str) -> Iterator[MakeCaller]:
    """Makes callers of both colours, since both must tell the same."""
    made: list[Caller] = []

    def make(url: str, *, max_waiting: int | None = None, when_full: Any = None, **options: Any) -> Caller:
        app = make_app(url, namespace, **options)
        app.queue("q", max_waiting=max_waiting, when_full=when_full)
        made.append(request.param(app))
        return made[-1]

    yield make
    for caller in made:
        caller.close()


def make_room(queue: Queue, jobs: int) -> list[str]:
    """Let so many jobs be done; return their local ids."""
    gone = queue.waiting()[:jobs]
    for entry in gone:
        queue.command("XDEL", queue.keys.stream, entry)
    return gone


def test_what_does_not_fit_is_refused_and_nothing_of_it_is_there(callers: MakeCaller, url: str, queue: Queue) -> None:
    caller = callers(url, max_waiting=2)
    handles = [caller.enqueue(1), caller.enqueue(2)]

    with pytest.raises(QueueFull, match=r"queue q is full, nothing was enqueued: 2 jobs may wait") as caught:
        caller.enqueue(3)

    assert (caught.value.queue, caught.value.max_waiting) == ("q", 2)
    assert [handle.id for handle in handles] == [f"q:{one}" for one in queue.waiting()]
    assert caller.enqueue(4, delay=3600).id == f"q:{queue.scheduled()[0]}"
    make_room(queue, 1)
    assert caller.enqueue(5).id == f"q:{queue.waiting()[1]}"


def test_in_a_bulk_each_job_is_told_of_in_its_place(callers: MakeCaller, url: str, queue: Queue) -> None:
    results = callers(url, max_waiting=700).enqueue_many(*range(1200))

    assert [one.id for one in results[:700]] == [f"q:{one}" for one in queue.waiting()]
    assert [type(one) for one in results[700:]] == [QueueFull] * 500


def test_the_maximum_holds_for_a_producer_that_knows_nothing_of_it(callers: MakeCaller, url: str, queue: Queue) -> None:
    callers(url, max_waiting=1).enqueue(1)

    with pytest.raises(QueueFull):
        callers(url).enqueue(2)


def test_a_maximum_that_is_said_later_holds_from_then_on(callers: MakeCaller, url: str, queue: Queue) -> None:
    caller = callers(url)
    caller.enqueue(1)
    caller.app.queue("q", max_waiting=1)

    with pytest.raises(QueueFull):
        caller.enqueue(2)


async def test_of_callers_that_share_a_call_only_those_without_room_are_refused(app: StreamJobs, queue: Queue) -> None:
    app.queue("q", max_waiting=5)
    note = app.kind("note")

    results = await asyncio.gather(*(note.enqueue(n) for n in range(20)), return_exceptions=True)

    assert [type(one) for one in results] == [Handle] * 5 + [QueueFull] * 15
    assert len(queue.waiting()) == 5


def test_who_waits_is_refused_when_its_time_is_up(callers: MakeCaller, url: str, queue: Queue) -> None:
    caller = callers(url, max_waiting=1, when_full="wait", enqueue_timeout=0.3)
    begun = time.monotonic()

    results = caller.enqueue_many(1, 2)
    with pytest.raises(QueueFull):
        caller.enqueue(3)

    assert [type(one) for one in results] == [Handle, QueueFull]
    assert 0.6 <= time.monotonic() - begun < 5
    assert len(queue.waiting()) == 1


def test_who_waits_gets_in_when_there_is_room(callers: MakeCaller, url: str, queue: Queue) -> None:
    caller = callers(url, max_waiting=2, when_full="wait", enqueue_timeout=30)

    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(caller.enqueue_many, *range(7))
        gone = []
        while not sending.done():
            assert len(queue.waiting()) <= 2
            gone += make_room(queue, 1)
        results = sending.result()

    gone += queue.waiting()
    assert [one.id for one in results] == [f"q:{one}" for one in gone]
    assert len(set(gone)) == 7


async def test_a_bulk_cancelled_while_it_waits_for_room_sends_nothing_more(
    app: StreamJobs, queue: Queue, failpoint: Any
) -> None:
    app.queue("q", max_waiting=1, when_full="wait")
    note = app.kind("note")
    first = await note.enqueue(0)
    refused = asyncio.Semaphore(0)
    failpoint("producer.after_reply", refused.release)
    before = asyncio.all_tasks()
    bulk = asyncio.create_task(app.enqueue_many(note.call(n) for n in range(1, 601)))
    async with asyncio.timeout(SOON_S):
        for _ in range(2):
            await refused.acquire()

    bulk.cancel()
    await asyncio.gather(bulk, return_exceptions=True)

    shipping = {one for one in asyncio.all_tasks() - before if one.get_name() != "streamjobs-send"}
    assert bulk.cancelled()
    assert not shipping
    make_room(queue, 1)
    last = await note.enqueue(601)
    assert queue.waiting() == [last.id.removeprefix("q:")] != [first.id.removeprefix("q:")]


async def test_who_waits_does_not_keep_others_waiting(app: StreamJobs, queue: Queue) -> None:
    app.queue("q", max_waiting=1, when_full="wait")
    note = app.kind("note")
    await note.enqueue(1)
    stuck = asyncio.create_task(note.enqueue(2))

    later = await note.options(delay=3600).enqueue(3)
    assert later.id == f"q:{queue.scheduled()[0]}"
    assert not stuck.done()

    make_room(queue, 1)
    assert (await stuck).id == f"q:{queue.waiting()[0]}"


def test_a_refusal_whose_reply_was_lost_is_told_by_the_repetition(
    callers: MakeCaller, server_url: str, queue: Queue
) -> None:
    with Proxy(server_url) as proxy:
        caller = callers(proxy.url, max_waiting=1, enqueue_timeout=0.3)
        caller.enqueue(1)
        proxy.add(Rule(Act.DROP, "enqueue", times=1, then=proxy.go_away))
        with pytest.raises(OutcomeUnknown) as caught:
            caller.enqueue(2)
        proxy.away = False
        make_room(queue, 1)

        with pytest.raises(QueueFull):
            caller.retry(caught.value)
        assert queue.waiting() == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_waiting": 0}, "from 1 to"),
        ({"max_waiting": True}, "from 1 to"),
        ({"when_full": "drop"}, '"raise" or "wait"'),
    ],
)
def test_a_bound_that_is_none_is_refused(app: StreamJobs, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidOption, match=says):
        app.queue("q", **options)
