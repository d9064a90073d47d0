"""What real servers answer when they refuse, sent plainly and from inside a script, is classified right.

Redis 6.2 wraps errors of scripts into a sentence, later ones append where they happened, and each
words missing rights differently; so each case runs on every engine at hand.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from streamjobs.client import Connections
from streamjobs.core.errors import Rejected, StreamJobsError, Unavailable
from streamjobs.protocol.calls import Command
from streamjobs.protocol.replies import Fate, fate, word
from tests.client.words import command
from tests.servers import Server, find_servers

XADD = command("XADD", "q", "*", "a", "1")
IN_SCRIPT = command("EVAL", "return redis.call('XADD', KEYS[1], '*', 'a', '1')", 1, "q")
ENDLESS = command("EVAL", "while true do end", 0)
TRIES = 100_000
"""Requests until a condition holds; each takes some 20 µs."""


@pytest.fixture(scope="module", params=list(find_servers().items()), ids=lambda item: item[0])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server whose settings the tests change, and put back."""
    with Server(request.param[1], args=["--lua-time-limit", "5"]) as server:
        yield server


@pytest.fixture
def admin(server: Server) -> Iterator[Connections]:
    """Connections of the default user."""
    connections = Connections(server.url)
    connections.sync().run(command("FLUSHALL"))
    yield connections
    connections.close()


@contextmanager
def setting(admin: Connections, name: str, value: str) -> Iterator[None]:
    """Change a setting of the server for a while."""
    [_, before] = admin.sync().run(command("CONFIG", "GET", name))
    admin.sync().run(command("CONFIG", "SET", name, value))
    yield
    admin.sync().run(command("CONFIG", "SET", name, before))


@contextmanager
def replica(admin: Connections) -> Iterator[None]:
    """Make the server the replica of one that does not exist, for a while."""
    admin.sync().run(command("REPLICAOF", "127.0.0.1", 1))
    yield
    admin.sync().run(command("REPLICAOF", "NO", "ONE"))


@contextmanager
def client(server: Server, name: str, *rules: str) -> Iterator[Connections]:
    """Connect as a user with these rights on top of all that workers need."""
    admin, password = Connections(server.url), "pw"
    admin.sync().run(command("ACL", "SETUSER", name, "reset", "on", f">{password}", *rules))
    connections = Connections(server.url.replace("unix://", f"unix://{name}:{password}@"))
    yield connections
    connections.close()
    admin.close()


def outcome(connections: Connections, request: Command[Any]) -> tuple[str, type[StreamJobsError]]:
    """Return the word and the kind of the error that a request ends with."""
    [error] = connections.sync().run_all([request])
    assert isinstance(error, Unavailable | Rejected), error
    assert (fate(error.word) is Fate.NOT_EXECUTED) == isinstance(error, Unavailable)
    return error.word, type(error)


def both(connections: Connections) -> list[tuple[str, type[StreamJobsError]]]:
    """Return the outcome of an XADD sent plainly, and from a script."""
    return [outcome(connections, XADD), outcome(connections, IN_SCRIPT)]


def test_memory_full(admin: Connections) -> None:
    with setting(admin, "maxmemory", "1"):
        assert both(admin) == [("OOM", Unavailable)] * 2


def test_replica(admin: Connections) -> None:
    with replica(admin):
        assert both(admin) == [("READONLY", Unavailable)] * 2


def test_replica_without_its_master(admin: Connections) -> None:
    with setting(admin, "replica-serve-stale-data", "no"), replica(admin):
        read = command("XLEN", "q")
        assert outcome(admin, read) == ("MASTERDOWN", Unavailable)
        assert outcome(admin, IN_SCRIPT) == ("MASTERDOWN", Unavailable)


def test_too_few_replicas(admin: Connections) -> None:
    with setting(admin, "min-replicas-to-write", "1"):
        assert both(admin) == [("NOREPLICAS", Unavailable)] * 2


def test_key_of_another_type(admin: Connections) -> None:
    admin.sync().run(command("SET", "q", "x"))

    assert both(admin) == [("WRONGTYPE", Rejected)] * 2


def test_no_group(admin: Connections) -> None:
    read = ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "q", ">")
    script = "return redis.call('XREADGROUP', 'GROUP', 'g', 'c', 'STREAMS', KEYS[1], '>')"

    assert outcome(admin, command(*read)) == ("NOGROUP", Unavailable)
    assert outcome(admin, command("EVAL", script, 1, "q")) == ("NOGROUP", Unavailable)


def test_unknown_command(admin: Connections) -> None:
    assert outcome(admin, command("NOSUCH", "x")) == ("UNKNOWN_COMMAND", Rejected)
    assert outcome(admin, command("EVAL", "return redis.call('NOSUCH')", 0)) == ("UNKNOWN_COMMAND", Rejected)


def test_wrong_number_of_arguments(admin: Connections) -> None:
    assert outcome(admin, command("XADD", "q")) == ("ARITY", Rejected)
    assert outcome(admin, command("EVAL", "return redis.call('XADD', 'q')", 0)) == ("ARITY", Rejected)


def test_bug_in_a_script(admin: Connections) -> None:
    assert outcome(admin, command("EVAL", "return nosuch.field", 0)) == ("ERR", Rejected)
    assert outcome(admin, command("EVAL", "return (", 0)) == ("ERR", Rejected)


def test_unknown_hash(admin: Connections) -> None:
    assert outcome(admin, command("EVALSHA", "0" * 40, 0)) == ("NOSCRIPT", Unavailable)


@pytest.mark.parametrize("rules", [("~*", "+@all", "-xadd"), ("~other", "+@all")], ids=["command", "key"])
def test_missing_right(server: Server, rules: tuple[str, ...]) -> None:
    with client(server, "limited", *rules) as connections:
        assert both(connections) == [("NOPERM", Rejected)] * 2


def test_missing_right_to_load_scripts(server: Server) -> None:
    with client(server, "reader", "~*", "+@read", "+client") as connections:
        assert outcome(connections, IN_SCRIPT) == ("NOPERM", Rejected)


def test_wrong_password(server: Server) -> None:
    connections = Connections(server.url.replace("unix://", "unix://nobody:wrong@"))

    assert outcome(connections, XADD) == ("WRONGPASS", Rejected)


def test_no_password(server: Server, admin: Connections) -> None:
    with setting(admin, "requirepass", "pw"):
        assert outcome(Connections(server.url), XADD) == ("NOAUTH", Rejected)


def test_database_that_is_not_there(server: Server) -> None:
    assert outcome(Connections(f"{server.url}?db=999"), XADD) == ("ERR", Rejected)


def test_endless_script(server: Server, admin: Connections) -> None:
    """The others are told to come again; the killed one has written nothing."""
    seen: list[tuple[str, type[StreamJobsError]]] = []
    culprit = Connections(server.url)
    thread = threading.Thread(target=lambda: seen.append(outcome(culprit, ENDLESS)))
    thread.start()
    first = until(admin, lambda reply: isinstance(reply, Unavailable))
    others = both(admin)
    admin.sync().run(command("SCRIPT", "KILL"))
    thread.join()
    culprit.close()

    assert first.word == "BUSY"
    assert others == [("BUSY", Unavailable)] * 2
    assert seen == [("KILLED", Unavailable)]


def test_failing_snapshots(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    with Server(server.binary, args=["--dir", str(folder)]) as broken:
        connections = Connections(broken.url)
        connections.sync().run_all([XADD, command("CONFIG", "SET", "save", "3600 1")])
        folder.rmdir()
        connections.sync().run(command("BGSAVE"))
        until(connections, lambda reply: isinstance(reply, Unavailable))

        assert both(connections) == [("MISCONF", Unavailable)] * 2
        connections.close()


def test_server_that_loads_its_files(server: Server) -> None:
    # Requests are answered while it loads, every 2 MiB.
    args = ["--key-load-delay", "3000", "--rdbcompression", "no"]
    with Server(server.binary, args=args) as slow:
        connections = Connections(slow.url)
        fill = "for i = 1, 100 do redis.call('SET', 'k' .. i, string.rep('x', 102400) .. i) end"
        connections.sync().run_all([command("EVAL", fill, 0), command("SAVE")])
        restart = threading.Thread(target=slow.restart)
        restart.start()
        error = until(connections, lambda reply: getattr(reply, "word", "") == "LOADING")
        restart.join()

        assert isinstance(error, Unavailable)
        assert isinstance(until(connections, lambda reply: isinstance(reply, bytes)), bytes)
        connections.close()


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (("XGROUP", "DESTROY", "q", "g"), "NOGROUP"),
        (("REPLICAOF", "127.0.0.1", 1), "UNBLOCKED"),
        (("CLIENT", "UNBLOCK", "ID", "ERROR"), "UNBLOCKED"),
    ],
    ids=["group destroyed", "demoted", "unblocked"],
)
async def test_blocked_reader(server: Server, event: tuple[str | int, ...], expected: str) -> None:
    connections = Connections(server.url)
    reader, other = connections.aio(block_ms=60_000), connections.aio()
    await other.run_all([command("FLUSHALL"), command("XGROUP", "CREATE", "q", "g", 0, "MKSTREAM")])
    number = await reader.run(command("CLIENT", "ID"))
    read = command("XREADGROUP", "GROUP", "g", "c", "BLOCK", 60_000, "STREAMS", "q", ">")
    reading = asyncio.create_task(reader.run(read))
    while b"blocked_clients:1\r" not in await other.run(command("INFO", "clients")):
        await asyncio.sleep(0)
    await other.run(command(*(number if part == "ID" else part for part in event)))

    with pytest.raises(Unavailable) as caught:
        await reading

    assert caught.value.word == expected
    await other.run(command("REPLICAOF", "NO", "ONE"))
    await connections.aclose()


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("MOVED 1 127.0.0.1:7001", "MOVED"),
        ("ASK 1 127.0.0.1:7001", "ASK"),
        ("TRYAGAIN Multiple keys request during rehashing of slot", "TRYAGAIN"),
        ("CLUSTERDOWN Hash slot not served", "CLUSTERDOWN"),
        ("CROSSSLOT Keys in request don't hash to the same slot", "CROSSSLOT"),
        ("EXECABORT Transaction discarded because of previous errors.", "EXECABORT"),
        ("UNBLOCKED the stream key no longer exists", "UNBLOCKED"),
        ("ERR invalid password", "WRONGPASS"),
        ("ERR something new: OOMPH or OOM-like", "ERR"),
        ("", "ERR"),
    ],
)
def test_replies_that_are_hard_to_get(reply: str, expected: str) -> None:
    assert word(reply) == expected


def until(connections: Connections, settled: Callable[[Any], bool]) -> Any:
    """Repeat an XADD until its outcome is as wanted, and return that."""
    reply = None
    for _ in range(TRIES):
        [reply] = connections.sync().run_all([XADD])
        if settled(reply):
            return reply
    raise AssertionError(f"after {TRIES} requests the outcome is still {reply!r}")
