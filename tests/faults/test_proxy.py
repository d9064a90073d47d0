"""The fault proxy itself: what each rule does to a request and to its reply, and what it leaves alone."""

import socket
import time
from collections.abc import Iterator

import pytest

from tests.faults import resp
from tests.faults.proxy import Act, Proxy, Rule, Side


@pytest.fixture
def proxy(server_url: str) -> Iterator[Proxy]:
    with Proxy(server_url) as proxy:
        yield proxy


@pytest.fixture
def key(server_url: str, namespace: str, proxy: Proxy) -> Iterator[str]:
    yield namespace
    with dial(proxy) as line:
        ask(line, "DEL", namespace)


def dial(proxy: Proxy) -> socket.socket:
    line = socket.create_connection(("127.0.0.1", int(proxy.url.split(":")[2].partition("/")[0])))
    line.settimeout(0.3)
    return line


def packed(*words: str) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words)


def ask(line: socket.socket, *words: str) -> bytes:
    """Send one request and return all that comes back until the reply is whole, or nothing comes any more."""
    got = b""
    try:
        line.sendall(packed(*words))
        while resp.end_of(got) == resp.INCOMPLETE and (part := line.recv(1000)):
            got += part
    except TimeoutError:
        got += b"(silence)"
    except ConnectionError:
        got += b"(reset)"
    return got


def stored(proxy: Proxy, key: str) -> bytes:
    with dial(proxy) as line:
        return ask(line, "GET", key)


@pytest.mark.parametrize(
    ("act", "side", "seen", "executed"),
    [
        (Act.DROP, "request", b"(reset)", False),
        (Act.DROP, "reply", b"(reset)", True),
        (Act.HOLE, "request", b"(silence)", False),
        (Act.HOLE, "reply", b"(silence)", True),
        (Act.TRUNCATE, "request", b"", False),
        (Act.TRUNCATE, "reply", b":1", True),
        (Act.SLICE, "request", b":1\r\n", True),
        (Act.SLICE, "reply", b":1\r\n", True),
        (Act.DELAY, "request", b":1\r\n", True),
        (Act.DELAY, "reply", b":1\r\n", True),
    ],
)
def test_a_rule_bites_the_requests_that_it_names(
    proxy: Proxy, key: str, act: Act, side: Side, seen: bytes, executed: bool
) -> None:
    rule = proxy.add(Rule(act, "incr", side=side, times=1, seconds=0.1))
    began = time.monotonic()
    with dial(proxy) as line:
        assert ask(line, "PING") == b"+PONG\r\n"
        assert ask(line, "INCR", key).startswith(seen)

    assert (time.monotonic() - began >= 0.1) == (act in (Act.DELAY, Act.HOLE))
    assert stored(proxy, key) == (b"$1\r\n1\r\n" if executed else b"$-1\r\n")
    assert (rule.hits, proxy.seen["incr"], proxy.seen["ping"]) == (1, 1, 1)


def test_a_refused_request_is_answered_in_its_place_and_not_executed(proxy: Proxy, key: str) -> None:
    rule = proxy.add(Rule(Act.REFUSE, "incr", skip=1, times=1, error="LOADING wait"))
    with dial(proxy) as line:
        line.sendall(packed("INCR", key) * 3)
        got = b""
        while len(got) < 22:
            got += line.recv(100)

    assert (got, rule.hits) == (b":1\r\n-LOADING wait\r\n:2\r\n", 1)
    assert stored(proxy, key) == b"$1\r\n2\r\n"


def test_rules_count(proxy: Proxy, key: str) -> None:
    called: list[int] = []
    rule = proxy.add(Rule(Act.DROP, "incr", skip=1, every=2, times=2, then=lambda: called.append(1)))
    seen = []
    for _ in range(7):
        with dial(proxy) as line:
            seen.append(ask(line, "INCR", key))

    assert [b"reset" in one for one in seen] == [False, False, True, False, True, False, False]
    assert (rule.hits, len(called)) == (2, 2)
    assert stored(proxy, key) == b"$1\r\n7\r\n"


def test_what_is_held_comes_later_and_what_is_cut_never(proxy: Proxy, key: str) -> None:
    with dial(proxy) as line:
        assert ask(line, "INCR", key) == b":1\r\n"
        proxy.hold()
        assert ask(line, "INCR", key) == b"(silence)"
        proxy.release()
        assert line.recv(100) == b":2\r\n"
        proxy.cut()
        assert ask(line, "PING") in (b"", b"(reset)")
    proxy.away = True
    with dial(proxy) as line:
        assert ask(line, "PING") in (b"", b"(reset)")
    proxy.heal()
    assert stored(proxy, key) == b"$1\r\n2\r\n"


def test_requests_in_one_packet_are_told_apart(proxy: Proxy, key: str) -> None:
    proxy.add(Rule(Act.DROP, "get"))
    with dial(proxy) as line:
        line.sendall(packed("INCR", key) * 3 + packed("GET", key) + packed("INCR", key))
        got = b""
        try:
            while part := line.recv(100):
                got += part
        except ConnectionError:
            pass

    assert got == b":1\r\n:2\r\n:3\r\n"


@pytest.mark.parametrize(
    "value",
    [b"+OK\r\n", b":1\r\n", b"$3\r\nabc\r\n", b"$-1\r\n", b"*-1\r\n", b"*0\r\n", b"*2\r\n*1\r\n:1\r\n$0\r\n\r\n",
     b"%1\r\n+a\r\n*1\r\n_\r\n"],
)  # fmt: skip
def test_a_value_ends_where_it_ends(value: bytes) -> None:
    assert [resp.end_of(value[:size]) for size in range(len(value))] == [resp.INCOMPLETE] * len(value)
    assert resp.end_of(value + b":2\r\n") == len(value)
