"""Connections that break between request and reply: each caller is told exactly what is known."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from streamjobs import NotSent, OutcomeUnknown, Rejected, Unavailable
from tests.faults.proxy import Act, Proxy, Rule
from tests.producer.support import AsyncCaller, Caller, MakeCaller, Queue, make_app


@pytest.fixture(params=[Caller, AsyncCaller], ids=["sync", "aio"])
def callers(request: pytest.FixtureRequest, namespace: str) -> Iterator[MakeCaller]:
    """Makes callers of both colours, since both must tell the same."""
    made: list[Caller] = []

    def make(url: str, **options: Any) -> Caller:
        made.append(request.param(make_app(url, namespace, **options)))
        return made[-1]

    yield make
    for caller in made:
        caller.close()


@pytest.fixture
def proxy(server_url: str) -> Iterator[Proxy]:
    with Proxy(server_url) as proxy:
        yield proxy


def cut(proxy: Proxy, times: int, *, then_away: bool = False) -> Rule:
    """Of so many of the next batches, let the server execute the request and the reply be lost."""
    then = proxy.go_away if then_away else None
    return proxy.add(Rule(Act.DROP, "enqueue", "schedule", times=times, then=then))


@pytest.mark.parametrize("options", [{}, {"delay": 3600}], ids=["now", "later"])
def test_case_B7_a_batch_whose_reply_was_lost_is_there_once(
    callers: MakeCaller, proxy: Proxy, queue: Queue, options: dict[str, Any]
) -> None:
    caller = callers(proxy.url)
    caller.enqueue(0, **options)
    proxy.seen.clear()
    cuts = cut(proxy, 3)

    handle = caller.enqueue(1, **options)

    there = queue.scheduled() if options else queue.waiting()
    assert len(there) == 2
    assert handle.id == f"q:{there[1]}"
    assert not handle.duplicate
    assert (cuts.hits, proxy.seen["schedule" if options else "enqueue"]) == (3, 4)


def test_case_B7_holds_for_each_job_of_a_bulk(callers: MakeCaller, proxy: Proxy, queue: Queue) -> None:
    caller = callers(proxy.url)
    caller.enqueue(0)
    cut(proxy, 2)

    handles = caller.enqueue_many(*range(1, 1201))

    assert [handle.id for handle in handles] == [f"q:{one}" for one in queue.waiting()[1:]]
    assert len(handles) == 1200


def test_a_server_that_stays_away_leaves_the_outcome_unknown_and_the_retry_is_exact(
    callers: MakeCaller, proxy: Proxy, queue: Queue
) -> None:
    caller = callers(proxy.url, enqueue_timeout=0.3)
    caller.enqueue(0)
    cut(proxy, 1, then_away=True)

    with pytest.raises(OutcomeUnknown, match="enqueue to q") as caught:
        caller.enqueue(1)
    with pytest.raises(Unavailable, match="cannot reach"):
        caller.enqueue(2)
    proxy.away = False
    handles = [caller.retry(caught.value) for _ in range(2)]

    assert queue.bodies() == [b'{"n":0,"text":""}', b'{"n":1,"text":""}']
    assert {handle.id for handle in handles} == {f"q:{queue.waiting()[1]}"}
    assert caller.enqueue(3).id == f"q:{queue.waiting()[2]}"


def test_a_retry_while_the_server_is_away_stays_unknown_and_can_be_repeated(
    callers: MakeCaller, proxy: Proxy, queue: Queue
) -> None:
    caller = callers(proxy.url, enqueue_timeout=0.3)
    caller.enqueue(0)
    cut(proxy, 1, then_away=True)
    with pytest.raises(OutcomeUnknown) as first:
        caller.enqueue(1)

    with pytest.raises(OutcomeUnknown) as second:
        caller.retry(first.value)
    proxy.away = False

    assert caller.retry(second.value).id == f"q:{queue.waiting()[1]}"
    assert len(queue.waiting()) == 2


def test_each_job_of_an_unknown_bulk_can_be_retried(callers: MakeCaller, proxy: Proxy, queue: Queue) -> None:
    caller = callers(proxy.url, enqueue_timeout=0.3)
    caller.enqueue(0)
    cut(proxy, 1, then_away=True)

    errors = caller.enqueue_many(1, 2, 3)
    proxy.away = False
    handles = [caller.retry(error) for error in errors]

    assert [handle.id for handle in handles] == [f"q:{one}" for one in queue.waiting()[1:]]
    assert len(handles) == 3


def test_a_server_that_was_never_there_means_not_sent(callers: MakeCaller, namespace: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        caller = callers(f"redis://127.0.0.1:{unused.getsockname()[1]}/0", enqueue_timeout=0.2)

        with pytest.raises(NotSent, match=r"not sent to q.*nothing was enqueued.*Connection refused"):
            caller.enqueue(1)
        assert all(isinstance(error, NotSent) for error in caller.enqueue_many(2, 3))


def test_a_server_that_comes_back_in_time_gets_the_job(callers: MakeCaller, proxy: Proxy, queue: Queue) -> None:
    caller = callers(proxy.url, enqueue_timeout=1)
    proxy.away = True
    with pytest.raises(NotSent):
        caller.enqueue(1)
    proxy.away = False

    caller.enqueue(2)

    assert queue.bodies() == [b'{"n":2,"text":""}']


def test_a_server_that_refuses_for_good_is_said_at_once(callers: MakeCaller, server_url: str, queue: Queue) -> None:
    caller = callers(server_url)
    queue.command("SET", queue.keys.stream, "not a stream")

    with pytest.raises(Rejected) as caught:
        caller.enqueue(1)

    assert caught.value.word == "WRONGTYPE"
    queue.command("DEL", queue.keys.stream)
