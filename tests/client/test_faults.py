"""What became of a request when its connection failed: told exactly, and nothing is ever sent twice."""

import asyncio
import ssl
from collections.abc import Callable, Iterator

import pytest
import redis

from streamjobs.client import Connections, faults
from streamjobs.core.errors import OutcomeUnknown, Rejected, StreamJobsError, Unavailable
from streamjobs.protocol.calls import Command, Request
from tests.client.peers import CUT, OK, SILENCE, Answer, Last, Peer
from tests.client.words import command

SECOND = b"+SECOND\r\n"
REPLY_S = 0.2


class Caller:
    """Runs one request in a way of its own, and says what it raised."""

    def __init__(self, url: str) -> None:
        self.connections = Connections(url, reply_s=REPLY_S)

    def run_all(self, *requests: Request[object]) -> list[object | StreamJobsError]:
        return self.connections.sync().run_all(requests)

    def close(self) -> None:
        self.connections.close()


class AsyncCaller(Caller):
    """The same over asyncio, all calls in one loop."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._runner = asyncio.Runner()

    def run_all(self, *requests: Request[object]) -> list[object | StreamJobsError]:
        return self._runner.run(self.connections.aio().run_all(requests))

    def close(self) -> None:
        self._runner.run(self.connections.aclose())
        self._runner.close()


@pytest.fixture(params=[Caller, AsyncCaller], ids=["sync", "aio"])
def calls(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Caller]]:
    """Make callers of both kinds, since both must tell the same."""
    made: list[Caller] = []

    def make(url: str) -> Caller:
        made.append(request.param(url))
        return made[-1]

    yield make
    for caller in made:
        caller.close()


def test_nobody_listening_is_not_executed(calls: Callable[[str], Caller]) -> None:
    with Peer([]) as peer:
        url = peer.url
    caller = calls(url)

    [error] = caller.run_all(command("INCR", "n"))

    assert isinstance(error, Unavailable)
    assert error.word == "CONNECT"
    assert str(error) == f"cannot reach {url}: Connection refused"


@pytest.mark.parametrize("answer", [CUT, SILENCE], ids=["cut", "silence"])
def test_failure_in_the_greeting_is_not_executed(
    calls: Callable[[str], Caller], answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a proxy that accepts connections for a server that is not there."""
    for module in ("lines", "aio"):
        monkeypatch.setattr(f"streamjobs.client.{module}.CONNECT_SECONDS", REPLY_S)
    with Peer([answer]) as peer:
        caller = calls(peer.url)

        [error] = caller.run_all(command("INCR", "n"))

        assert isinstance(error, Unavailable)
        assert error.word == "CONNECT"
        assert [b"INCR", b"n"] not in peer.requests


@pytest.mark.parametrize("answer", [CUT, SILENCE], ids=["cut", "silence"])
def test_lost_reply_is_unknown_and_nothing_is_repeated(calls: Callable[[str], Caller], answer: Answer) -> None:
    with Peer([OK, answer]) as peer:
        caller = calls(peer.url)

        [error] = caller.run_all(command("INCR", "n"))

        assert isinstance(error, OutcomeUnknown)
        assert "INCR" in str(error)
        assert peer.url in str(error)
        assert peer.requests.count([b"INCR", b"n"]) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        b"-READONLY You can't write against a read only replica.\r\n",
        b"-ERR Error running script (call to f_1): @user_script:9: -READONLY You can't write\r\n",
    ],
    ids=["command", "script of 6.2"],
)
def test_a_server_that_became_a_replica_is_left_for_where_its_name_leads_now(
    calls: Callable[[str], Caller], refusal: bytes
) -> None:
    with Peer([OK, refusal, OK, SECOND, SECOND]) as peer:
        caller = calls(peer.url)

        [error] = caller.run_all(command("INCR", "n"))
        replies = [*caller.run_all(command("GET", "n")), *caller.run_all(command("GET", "n"))]

        assert isinstance(error, Unavailable)
        assert (error.word, replies) == ("READONLY", [b"SECOND", b"SECOND"])
        greetings = [request for request in peer.requests if request[0] == b"CLIENT"]
        assert len(greetings) == 2


def test_next_request_opens_another_connection(calls: Callable[[str], Caller]) -> None:
    with Peer([OK, CUT, OK, SECOND]) as peer:
        caller = calls(peer.url)
        caller.run_all(command("INCR", "n"))

        [reply] = caller.run_all(command("GET", "n"))

        assert reply == b"SECOND"


def test_connection_that_died_idle_is_replaced_before_anything_is_sent(
    calls: Callable[[str], Caller],
) -> None:
    """So a restart between two requests costs nobody an unknown outcome."""
    with Peer([OK, OK + b"-LEFTOVER bytes\r\n", OK, SECOND]) as peer:
        caller = calls(peer.url)
        assert caller.run_all(command("SET", "n", 1)) == [b"OK"]

        assert caller.run_all(command("GET", "n")) == [b"SECOND"]
        assert peer.requests[2] == [b"CLIENT", b"SETNAME", b"streamjobs"]


def test_replies_read_before_the_line_broke_count(calls: Callable[[str], Caller]) -> None:
    with Peer([OK, b":1\r\n", CUT]) as peer:
        caller = calls(peer.url)

        first, second, third = caller.run_all(*(command("INCR", key) for key in "abc"))

        assert first == 1
        assert isinstance(second, OutcomeUnknown)
        assert isinstance(third, OutcomeUnknown)


def test_reply_that_is_no_reply_is_unknown(calls: Callable[[str], Caller]) -> None:
    with Peer([OK, b"HTTP/1.1 400 Bad Request\r\n\r\n"]) as peer:
        caller = calls(peer.url)

        [error] = caller.run_all(command("INCR", "n"))

        assert isinstance(error, OutcomeUnknown)


def test_what_is_no_redis_server_is_refused_for_good(calls: Callable[[str], Caller]) -> None:
    with Peer([b"HTTP/1.1 400 Bad Request\r\n\r\n"]) as peer:
        caller = calls(peer.url)

        [error] = caller.run_all(command("INCR", "n"))

        assert isinstance(error, Rejected)
        assert error.word == "PROTOCOL"


@pytest.mark.parametrize(
    ("greeting", "word", "error_kind"),
    [
        (b"-NOAUTH Authentication required.\r\n", "NOAUTH", Rejected),
        (b"-DENIED Redis is running in protected mode because ...\r\n", "DENIED", Rejected),
        (b"-ERR max number of clients reached\r\n", "MAXCLIENTS", Unavailable),
        (b"-ERR max number of clients + cluster connections reached\r\n", "MAXCLIENTS", Unavailable),
    ],
)
def test_refused_greeting_sends_nothing(
    calls: Callable[[str], Caller], greeting: bytes, word: str, error_kind: type[StreamJobsError]
) -> None:
    with Peer([greeting]) as peer:
        caller = calls(peer.url)

        [error] = caller.run_all(command("INCR", "n"))

        assert isinstance(error, error_kind)
        assert getattr(error, "word", "") == word
        assert len(peer.requests) == 1


def test_missing_right_to_name_the_connection_is_no_harm(calls: Callable[[str], Caller]) -> None:
    with Peer([b"-NOPERM this user has no permissions to run the 'client' command\r\n", SECOND]) as peer:
        caller = calls(peer.url)

        assert caller.run_all(command("GET", "n")) == [b"SECOND"]


def test_loading_in_the_middle_of_a_round_keeps_the_line(calls: Callable[[str], Caller]) -> None:
    """The driver takes this reply for a broken connection."""
    with Peer([OK, b"-LOADING Redis is loading the dataset in memory\r\n", b":2\r\n", b":3\r\n"]) as peer:
        caller = calls(peer.url)

        first, second = caller.run_all(command("INCR", "a"), command("INCR", "b"))
        [third] = caller.run_all(command("INCR", "c"))

        assert isinstance(first, Unavailable)
        assert first.word == "LOADING"
        assert (second, third) == (2, 3)
        assert len(peer.requests) == 4


def test_unknown_command_does_not_tell_its_arguments(calls: Callable[[str], Caller]) -> None:
    reply = b"-ERR unknown command 'EVALSHA', with args beginning with: 'abc' '1' '{q}' 'secret'\r\n"
    with Peer([OK, reply]) as peer:
        caller = calls(peer.url)

        [error] = caller.run_all(command("EVALSHA", "abc", 1, "{q}", "secret"))

        assert isinstance(error, Rejected)
        assert error.word == "UNKNOWN_COMMAND"
        assert "secret" not in str(error)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("WRONGPASS invalid pair.", "WRONGPASS invalid pair; check user and password in the URL, "),
        ("NOAUTH Authentication required.", "; write its password into the URL, "),
        ("NOPERM no permissions to run 'xadd'", "; give the URL's user this right, "),
        ("ERR DB index is out of range", "ERR DB index is out of range; choose a database"),
        ("WRONGTYPE kind of value. script: 0af, on @user_script:63.", "WRONGTYPE kind of value; a key of this "),
        ("OOM > 'maxmemory'. script: 0af, on @user_script:63.", "OOM > 'maxmemory'; free memory there"),
        (
            "ERR Error running script (call to f_0af): @user_script:1: -OOM > 'maxmemory'.",
            " x: OOM > 'maxmemory'; free",
        ),
        ("ERR no such thing. script: 0af, on @user_script:63.", "no such thing. script: 0af, on @user_script:63."),
    ],
)
def test_refusals_say_what_to_do(reply: str, said: str) -> None:
    assert said in str(faults.refused(reply, "x", "redis://host"))


@pytest.mark.parametrize(
    "error",
    [
        redis.TimeoutError("Timeout connecting to server"),
        ssl.SSLError(1, "wrong version number"),
        ConnectionResetError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_tls_at_a_plain_port_is_suspected(error: Exception) -> None:
    assert str(faults.unconnected(error, "rediss://host")).endswith("; does it speak TLS at this port?")
    assert "TLS" not in str(faults.unconnected(error, "redis://host"))
    assert "TLS" not in str(faults.unconnected(ConnectionRefusedError(111, "refused"), "rediss://host"))


def unreadable(raw: bytes) -> int:
    """Decode as a request does that expects a number."""
    return int(raw)


def listed(raw: bytes) -> object:
    """Decode as a request does that expects a list."""
    return raw[1][0]  # type: ignore[index]


@pytest.mark.parametrize("decode", [unreadable, listed])
def test_reply_of_another_kind_is_refused_and_not_shown(
    calls: Callable[[str], Caller], decode: Callable[[bytes], object]
) -> None:
    """What somebody else wrote in the place of what we read, or a later version of ours; the line is in step."""
    with Peer([OK, b"$6\r\ns3cret\r\n", b":5\r\n"]) as peer:
        caller = calls(peer.url)

        error, number = caller.run_all(Command(["GET", "k"], decode), command("INCR", "n"))

    assert isinstance(error, Rejected)
    assert error.word == "REPLY"
    assert "answers GET with something else than it should" in str(error)
    assert "s3cret" not in str(error)
    assert number == 5


async def test_cancelled_call_drops_its_connection() -> None:
    """A late reply must never be taken for the next request's."""
    with Peer([OK, SILENCE, OK, SECOND]) as peer:
        connections = Connections(peer.url)
        call = asyncio.create_task(connections.aio().run(command("INCR", "n")))
        while [b"INCR", b"n"] not in peer.requests:
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

        assert await connections.aio().run(command("GET", "n")) == b"SECOND"
        await connections.aclose()


async def test_broken_subscription_is_told_to_all_its_listeners() -> None:
    subscribed = b"*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n"
    message = b"*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$2\r\nhi\r\n"
    with Peer([OK, Last(subscribed + message), OK, subscribed + message]) as peer:
        executor = Connections(peer.url).aio()

        async def listen() -> bytes:
            async with executor.listen("ch") as messages:
                payload = await anext(messages)
                with pytest.raises(Unavailable):
                    await anext(messages)
            return payload

        assert list(await asyncio.gather(listen(), listen())) == [b"hi", b"hi"]
        async with executor.listen("ch") as messages:
            assert await anext(messages) == b"hi"
        assert len(peer.requests) == 4
        await executor.aclose()
