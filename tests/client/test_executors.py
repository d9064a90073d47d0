"""Both executors run the same requests alike, on fakeredis and on real servers."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from hashlib import sha1
from typing import Any

import pytest

from streamjobs.client import Connections
from streamjobs.client.aio import AsyncExecutor
from streamjobs.core.errors import MissingExtra, NotFound, OutcomeUnknown, Rejected, StreamJobsError, Unavailable
from streamjobs.protocol import scripts
from streamjobs.protocol.calls import Call, Command, Request
from tests.client.words import command, raw

RunAll = Callable[[Sequence[Request[Any]]], list[Any]]


@pytest.fixture
def connections(url: str) -> Iterator[Connections]:
    connections = Connections(url)
    yield connections
    connections.close()


@pytest.fixture(params=["sync", "aio"])
def run_all(request: pytest.FixtureRequest, connections: Connections) -> Iterator[RunAll]:
    """Runs requests with either executor."""
    if request.param == "sync":
        yield connections.sync().run_all
        return
    with asyncio.Runner() as runner:
        yield lambda requests: runner.run(connections.aio().run_all(requests))
        runner.run(connections.aclose())


@pytest.fixture
async def aio(url: str) -> AsyncIterator[Connections]:
    """Connections of an asyncio test."""
    connections = Connections(url)
    yield connections
    await connections.aclose()


@pytest.fixture
def key(namespace: str, url: str) -> Iterator[str]:
    """A key of the test's own, gone afterwards."""
    key = f"{namespace}:k"
    yield key
    connections = Connections(url)
    connections.sync().run(command("DEL", key))
    connections.close()


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, namespace: str) -> str:
    """A script that no server has seen before this test."""
    text = f"-- {namespace}\nredis.call('RPUSH', KEYS[1], unpack(ARGV))\nreturn redis.call('LLEN', KEYS[1])"
    monkeypatch.setattr(scripts, "load", lambda name: scripts.Script(name, text, sha1(text.encode()).hexdigest()))
    return "a_test"


def test_replies_come_in_order_and_errors_stay_with_their_request(run_all: RunAll, key: str) -> None:
    outcomes = run_all([command("SET", key, "x"), command("RPUSH", key, 1), command("GET", key)])

    assert outcomes[0] == b"OK"
    assert isinstance(outcomes[1], Rejected)
    assert outcomes[1].word == "WRONGTYPE"
    assert outcomes[2] == b"x"


def test_nothing_to_run_is_no_round_trip(run_all: RunAll) -> None:
    assert run_all([]) == []


def test_words_may_be_bytes_text_or_numbers(run_all: RunAll, key: str) -> None:
    assert run_all([command(b"RPUSH", key, "ä", b"\x00\xff", 7), command("LRANGE", key, 0, -1)]) == [
        3,
        ["ä".encode(), b"\x00\xff", b"7"],
    ]


def test_unknown_script_is_loaded_and_run_once(run_all: RunAll, key: str, script: str) -> None:
    """After the requests of its round that could run."""
    calls: list[Request[Any]] = [
        Call(script, [key], ["a", "b"], raw),
        command("RPUSH", key, "c"),
        Call(script, [key], ["d"], raw),
    ]

    assert run_all(calls) == [3, 1, 4]
    assert sorted(run_all([command("LRANGE", key, 0, -1)])[0]) == [b"a", b"b", b"c", b"d"]
    assert run_all(calls) == [6, 7, 8]


def test_script_that_does_not_compile_is_told(run_all: RunAll, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "load", lambda name: scripts.Script(name, "return (", "0" * 40))

    [error, reply] = run_all([Call("broken", [key], [], raw), command("EXISTS", key)])

    assert isinstance(error, StreamJobsError)
    assert "broken" in str(error)
    assert reply == 0


def test_decoder_may_answer_with_an_error_of_ours(run_all: RunAll, key: str) -> None:
    def refuse(reply: Any) -> None:
        raise NotFound(f"no such job: {reply}")

    outcomes = run_all([Command(("GET", key), refuse), command("EXISTS", key)])

    assert isinstance(outcomes[0], NotFound)
    assert outcomes[1] == 0


def test_decoders_own_bug_leaves_the_executor_usable(run_all: RunAll, key: str) -> None:
    with pytest.raises(ZeroDivisionError):
        run_all([Command(("EXISTS", key), lambda reply: 1 // reply)])

    assert run_all([command("EXISTS", key)]) == [0]


def test_stream_entries_come_as_they_are_on_the_wire(run_all: RunAll, key: str) -> None:
    added, _ = run_all([command("XADD", key, "*", "kind", "k", "body", "{}"), command("XGROUP", "CREATE", key, "g", 0)])

    read = command("XREADGROUP", "GROUP", "g", "c", "STREAMS", key, ">")
    assert run_all([read]) == [[[key.encode(), [[added, [b"kind", b"k", b"body", b"{}"]]]]]]
    assert run_all([read]) == [None]


def test_run_raises_what_run_all_returns(connections: Connections, key: str) -> None:
    with pytest.raises(Rejected, match="refuses NOSUCH: ERR unknown command"):
        connections.sync().run(command("NOSUCH"))


async def test_async_run_raises_too(aio: Connections) -> None:
    with pytest.raises(Rejected, match="refuses NOSUCH: ERR unknown command"):
        await aio.aio().run(command("NOSUCH"))


async def test_concurrent_calls_do_not_mix_replies(aio: Connections) -> None:
    replies = await asyncio.gather(*(aio.aio().run(command("ECHO", f"{i}")) for i in range(200)))

    assert replies == [b"%d" % i for i in range(200)]


def test_threads_share_the_blocking_executor(connections: Connections) -> None:
    heard: dict[int, list[Any]] = {}

    def ask(number: int) -> None:
        executor = connections.sync()
        heard[number] = [executor.run(command("ECHO", f"{number}.{i}")) for i in range(50)]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert heard == {n: [f"{n}.{i}".encode() for i in range(50)] for n in range(8)}


def test_one_executor_serves_several_event_loops(connections: Connections, key: str) -> None:
    """As when a program calls asyncio.run() once per task."""

    async def count() -> Any:
        reply = await connections.aio().run(command("INCR", key))
        await connections.aclose()
        return reply

    assert [asyncio.run(count()) for _ in range(3)] == [1, 2, 3]


async def test_blocking_read_ends_with_its_time(aio: Connections, key: str) -> None:
    reader = aio.aio(block_ms=20)

    assert await reader.run(command("BLPOP", key, "0.02")) is None
    assert await reader.run(command("EXISTS", key)) == 0


async def test_unblocked_reader_gets_an_empty_answer(aio: Connections, key: str) -> None:
    reader = aio.aio(block_ms=60_000)
    reading = asyncio.create_task(reader.run(command("BLPOP", key, 60)))
    while not await reader.unblock(via=aio.aio()):
        await asyncio.sleep(0)

    assert await reading is None
    assert await reader.unblock(via=aio.aio()) is False


async def test_listeners_hear_what_is_published_from_then_on(aio: Connections, namespace: str) -> None:
    executor = aio.aio()
    async with executor.listen(namespace) as first, executor.listen(namespace) as second:
        await executor.run_all([command("PUBLISH", namespace, word) for word in ("a", "b")])

        assert [await anext(first), await anext(first)] == [b"a", b"b"]
        assert [await anext(second), await anext(second)] == [b"a", b"b"]


async def test_last_listener_ends_the_subscription(server_url: str, namespace: str) -> None:
    """On a real server: fakeredis notices a closed connection only when it is collected."""
    connections = Connections(server_url)
    executor = connections.aio()
    async with executor.listen(namespace):
        async with executor.listen(namespace):
            assert await executor.run(command("PUBSUB", "NUMSUB", namespace)) == [namespace.encode(), 1]
        assert await executor.run(command("PUBLISH", namespace, "x")) == 1
    while await executor.run(command("PUBLISH", namespace, "x")):
        await asyncio.sleep(0)
    await connections.aclose()


async def test_cancelled_listener_leaves_the_others_alone(aio: Connections, namespace: str) -> None:
    executor = aio.aio()

    async def wait() -> None:
        async with executor.listen(namespace) as messages:
            await anext(messages)

    waiting = asyncio.create_task(wait())
    async with executor.listen(namespace) as messages:
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await executor.run(command("PUBLISH", namespace, "x"))

        assert await anext(messages) == b"x"


def test_blocking_listener_hears_until_its_time_is_over(connections: Connections, namespace: str) -> None:
    executor = connections.sync()
    with executor.listen(namespace, 0.05) as messages:
        executor.run_all([command("PUBLISH", namespace, word) for word in ("a", "b")])

        assert list(messages) == [b"a", b"b"]


def test_body_of_a_listening_block_keeps_its_own_errors(connections: Connections, namespace: str) -> None:
    with pytest.raises(OSError, match="mine"):
        with connections.sync().listen(namespace, 1):
            raise OSError("mine")


async def test_closing_ends_busy_connections_with_their_request(aio: Connections, key: str) -> None:
    reader = aio.aio(block_ms=60_000)
    reading = asyncio.create_task(reader.run(command("BLPOP", key, 60)))
    await aio.aio().run(command("PING"))
    await reader.aclose()
    await aio.aio().run(command("RPUSH", key, "x"))

    assert await reading == [key.encode(), b"x"]
    assert await reader.run(command("PING")) == b"PONG"


class ClosedLine:
    """A connection that the other side closes behind the greeting, as a loop of uvloop tells of it."""

    def __init__(self) -> None:
        self.sent = 0

    async def connect(self) -> None: ...

    async def send_packed_command(self, command: Sequence[bytes]) -> None:
        self.sent += 1
        if self.sent > 1:
            raise RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed")

    async def read_response(self, *, disconnect_on_error: bool) -> Any:
        return b"OK"

    async def can_read(self) -> bool:
        return False

    async def disconnect(self, nowait: bool = False) -> None: ...


async def test_a_connection_that_uvloop_finds_closed_is_lost_and_no_error_of_the_program() -> None:
    async def dial() -> ClosedLine:
        return ClosedLine()

    with pytest.raises(OutcomeUnknown, match="the handler is closed"):
        await AsyncExecutor("redis://there", dial, timeout_s=1).run(command("PING"))


async def test_reopening_waits_for_no_reply(aio: Connections, key: str) -> None:
    reader = aio.aio(block_ms=60_000)
    reading = asyncio.create_task(reader.run(command("BLPOP", key, 60)))
    await asyncio.wait([reading], timeout=0.1)
    assert not reading.done()

    await reader.reopen()
    await reader.reopen()

    with pytest.raises(OutcomeUnknown, match="no reply to BLPOP"):
        await asyncio.wait_for(reading, 10)
    assert await reader.run(command("PING")) == b"PONG"


@pytest.mark.parametrize("block_ms", [0, 1000])
async def test_closed_connections_open_again(aio: Connections, block_ms: int) -> None:
    executor = aio.aio(block_ms=block_ms)
    await aio.aclose()

    assert await executor.run(command("PING")) == b"PONG"
    assert aio.sync().run(command("PING")) == b"PONG"


def test_memory_servers_are_apart_by_name() -> None:
    one, other = Connections("memory://apart-1"), Connections("memory://apart-2")
    one.sync().run(command("SET", "k", "1"))

    assert Connections("memory://apart-1").sync().run(command("GET", "k")) == b"1"
    assert other.sync().run(command("GET", "k")) is None


def test_missing_fakeredis_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fakeredis", None)

    with pytest.raises(MissingExtra, match=r"pip install 'streamjobs\[testing\]'"):
        Connections("memory://").sync().run(command("PING"))


def test_missing_server_is_unavailable_from_every_thread() -> None:
    executor = Connections("unix:///no/such/server.sock").sync()

    for _ in range(100):
        with pytest.raises(Unavailable, match="No such file"):
            executor.run(command("PING"))
