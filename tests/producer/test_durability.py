"""Levels of durability on real servers: who is asked, who must answer, and what is told when too few do."""

import itertools
import secrets
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamjobs import Handle, InvalidOption, JobOptions, OutcomeUnknown, Rejected, StreamJobs
from streamjobs.core.durability import Durability, parse
from tests.conftest import BINARIES
from tests.faults.proxy import Act, Proxy, Rule
from tests.producer.support import SOON_S, AsyncCaller, Caller, MakeCaller, Queue, make_app
from tests.servers import Server

pytestmark = pytest.mark.slow

MakeServer = Callable[..., Server]


class Submitter(Caller):
    """Enqueues by `submit`."""

    def __init__(self, app: StreamJobs) -> None:
        super().__init__(app)
        self._producer = app.producer()

    def enqueue(self, n: int = 0, **options: Any) -> Handle[Any]:
        call = self.app.kind("note").options(**options).call(n)
        return self._producer.submit(call).result(SOON_S)

    def close(self) -> None:
        self._producer.close()
        super().close()


@pytest.fixture(params=[Caller, AsyncCaller, Submitter], ids=["sync", "aio", "submit"])
def callers(request: pytest.FixtureRequest) -> Iterator[MakeCaller]:
    """Makes callers of each sort; all must tell the same."""
    made: list[Caller] = []

    def make(url: str, **options: Any) -> Caller:
        made.append(request.param(make_app(url, "ns", **options)))
        return made[-1]

    yield make
    for caller in made:
        caller.close()


@pytest.fixture(params=list(BINARIES))
def binary(request: pytest.FixtureRequest) -> Path:
    return BINARIES[request.param]


@pytest.fixture
def servers(binary: Path) -> Iterator[MakeServer]:
    """Starts servers of one engine, and ends them."""
    made: list[Server] = []

    def start(*args: str) -> Server:
        # The delay is for several replicas to share a snapshot, and would be a wait of 5 s.
        made.append(Server(binary, args=["--repl-diskless-sync-delay", "0", *args], tcp=True))
        return made[-1].start()

    yield start
    for server in made:
        server.close()


@pytest.fixture
def always(servers: MakeServer) -> Server:
    """A server that can confirm what is on its disk, at once."""
    server = servers("--appendonly", "yes", "--appendfsync", "always")
    with server.client() as client:
        if client.execute_command("COMMAND INFO", "waitaof") == [None]:
            pytest.skip("this server has no WAITAOF")
    return server


def follow(servers: MakeServer, primary: Server, count: int = 1) -> list[Server]:
    """Start replicas of a server, and wait until they follow it."""
    replicas = [servers("--replicaof", "127.0.0.1", str(primary.port)) for _ in range(count)]
    with primary.client() as client:
        # Not before they are connected does a wait count them.
        client.set("follow", secrets.token_hex(4))
        assert client.execute_command("WAIT", count, 20_000) == count
        client.delete("follow")
    return replicas


def calls(server: Server, command: str) -> int:
    """Return how often a server has run a command."""
    with server.client() as client:
        return int(client.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})["calls"])


@pytest.fixture
def look() -> Iterator[Callable[[Server], Queue]]:
    """Looks into the queue on a server."""
    made: list[Queue] = []

    def look(server: Server) -> Queue:
        made.append(Queue(server.url, "ns"))
        return made[-1]

    yield look
    for queue in made:
        queue.close()


Look = Callable[[Server], Queue]


def test_fsync_waits_for_the_disk(callers: MakeCaller, always: Server, look: Look) -> None:
    caller = callers(always.url)

    first = caller.enqueue(1, durability="fsync")
    second = caller.enqueue(2, durability="fsync")
    later = caller.enqueue(3, durability="fsync", delay=3600)

    assert [first.id, second.id] == [f"q:{one}" for one in look(always).waiting()]
    assert later.id == f"q:{look(always).scheduled()[0]}"
    # Each lane asked whether the server can, and then once for each batch; once more where it lacked the script.
    assert calls(always, "waitaof") in (5, 6, 7)
    assert calls(always, "wait") == 0


def test_a_bulk_is_confirmed_batch_by_batch(callers: MakeCaller, always: Server, look: Look) -> None:
    caller = callers(always.url)
    caller.enqueue(0, durability="fsync")
    before = calls(always, "waitaof")
    note = caller.app.kind("note").options(durability="fsync")

    handles = caller.app.enqueue_many_sync(note.call(n) for n in range(1200))

    assert [one.id for one in handles if isinstance(one, Handle)] == [f"q:{one}" for one in look(always).waiting()[1:]]
    assert calls(always, "waitaof") - before in (3, 4)


def test_memory_asks_for_nothing(callers: MakeCaller, servers: MakeServer) -> None:
    server = servers()

    callers(server.url).enqueue(1)
    callers(server.url).enqueue(2, durability="memory")

    assert (calls(server, "wait"), calls(server, "waitaof")) == (0, 0)


def test_without_an_append_only_file_nothing_is_enqueued(callers: MakeCaller, servers: MakeServer, look: Look) -> None:
    server = servers()
    caller = callers(server.url)

    for _ in range(2):
        with pytest.raises(Rejected, match=r"nothing was enqueued.*set appendonly yes|Redis 7\.2 or later"):
            caller.enqueue(1, durability="fsync")

    assert look(server).waiting() == []
    assert caller.enqueue(2).id == f"q:{look(server).waiting()[0]}"


@pytest.mark.parametrize("level", ["fsync", "replicas:1"])
def test_memory_servers_refuse_it(callers: MakeCaller, level: str) -> None:
    caller = callers("memory://")

    with pytest.raises(Rejected, match=f"durability='{level}': nothing was enqueued, it has no WAIT"):
        caller.enqueue(1, durability=level)

    assert isinstance(caller.enqueue(2), Handle)


def test_a_file_that_is_switched_off_leaves_a_doubt_until_it_is_on_again(
    callers: MakeCaller, always: Server, look: Look
) -> None:
    caller = callers(always.url, enqueue_timeout=0.3)
    caller.enqueue(1, durability="fsync")
    with always.client() as client:
        client.config_set("appendonly", "no")
        with pytest.raises(OutcomeUnknown) as caught:
            caller.enqueue(2, durability="fsync")
        with pytest.raises(Rejected, match="set appendonly yes"):
            caller.enqueue(3, durability="fsync")
        client.config_set("appendonly", "yes")

    assert caller.retry(caught.value).id == f"q:{look(always).waiting()[1]}"
    assert len(look(always).waiting()) == 2


def test_replicas_that_are_there_confirm(callers: MakeCaller, servers: MakeServer, look: Look) -> None:
    primary = servers()
    [replica] = follow(servers, primary)

    handle = callers(primary.url).enqueue(1, durability="replicas:1")

    assert [handle.id] == [f"q:{one}" for one in look(replica).waiting()]
    assert calls(primary, "wait") >= 2


def test_without_a_replica_the_outcome_is_unknown_and_the_retry_waits_for_one(
    callers: MakeCaller, servers: MakeServer, look: Look
) -> None:
    primary = servers()
    caller = callers(primary.url, enqueue_timeout=0.4)

    with pytest.raises(OutcomeUnknown, match="the server has the job, but 0 of 1 replicas have confirmed it") as caught:
        caller.enqueue(1, durability="replicas:1")
    with pytest.raises(OutcomeUnknown, match="0 of 1") as again:
        caller.retry(caught.value)
    [replica] = follow(servers, primary)
    handles = [caller.retry(error) for error in (caught.value, again.value)]

    assert {handle.id for handle in handles} == {f"q:{look(primary).waiting()[0]}"}
    assert len(look(primary).waiting()) == 1
    assert look(replica).waiting() == look(primary).waiting()


def test_a_replica_that_is_lost_is_said(callers: MakeCaller, servers: MakeServer, look: Look) -> None:
    primary = servers()
    replicas = follow(servers, primary, 2)
    caller = callers(primary.url, enqueue_timeout=0.4)
    caller.enqueue(1, durability="replicas:2")
    replicas[0].kill9()

    with pytest.raises(OutcomeUnknown, match="1 of 2 replicas have confirmed it in time"):
        caller.enqueue(2, durability="replicas:2")

    caller.enqueue(3, durability="replicas:1")
    assert len(look(replicas[1]).waiting()) == 3


def test_a_replica_that_comes_in_time_is_waited_for(callers: MakeCaller, servers: MakeServer, look: Look) -> None:
    primary = servers()
    caller = callers(primary.url, enqueue_timeout=SOON_S)
    late = threading.Thread(target=lambda: follow(servers, primary))
    late.start()

    handle = caller.enqueue(1, durability="replicas:1")

    late.join()
    assert [handle.id] == [f"q:{one}" for one in look(primary).waiting()]


@pytest.mark.parametrize("times", [1, 3])
def test_a_lost_answer_of_the_wait_leaves_the_job_there_once(
    callers: MakeCaller, always: Server, look: Look, times: int
) -> None:
    with Proxy(always.url) as proxy:
        caller = callers(proxy.url)
        caller.enqueue(1, durability="fsync")
        cuts = proxy.add(Rule(Act.DROP, "waitaof", times=times))

        handle = caller.enqueue(2, durability="fsync")

    assert cuts.hits == times
    assert [f"q:{one}" for one in look(always).waiting()][1:] == [handle.id]


def test_a_script_that_had_to_be_loaded_is_waited_for_after_it_ran(callers: MakeCaller, servers: MakeServer) -> None:
    """The first wait was for nothing: it came before the script had run."""
    server = servers()
    follow(servers, server)
    caller = callers(server.url)
    caller.enqueue(1, durability="replicas:1")
    with server.client() as client, client.monitor() as monitor:
        said: Any = monitor.listen()
        with server.client() as other:
            other.script_flush()
        caller.enqueue(2, durability="replicas:1")
        with server.client() as other:
            other.echo("that is all")
        seen = itertools.takewhile(lambda one: "that is all" not in one, (one["command"] for one in said))
        commands = [command.split()[0] for command in seen]

    loading = commands.index("SCRIPT", commands.index("SCRIPT") + 1)
    assert "WAIT" in commands[:loading]
    assert [one for one in commands[loading:] if one in ("EVALSHA", "WAIT")] == ["EVALSHA", "WAIT"]


def test_each_level_has_its_own_numbers(callers: MakeCaller, always: Server, look: Look) -> None:
    caller = callers(always.url)
    for _ in range(2):
        caller.enqueue(1)
        caller.enqueue(2, durability="fsync")

    assert len(look(always).producers()) == 2


def test_a_kind_or_an_app_says_it_for_all(always: Server) -> None:
    app = StreamJobs(always.url, defaults=JobOptions(durability="fsync"))

    def noted(n: int) -> None: ...

    first, second = app.job(name="first")(noted), app.job(name="second", durability="memory")(noted)

    assert first.call(1).durability == "fsync"
    assert first.options(durability="memory").call(1).durability == "memory"
    assert second.call(1).durability == "memory"
    assert second.options(delay=1).call_named({"n": 1}).durability == "memory"
    assert app.send_sync("elsewhere", {}).queue == "default"
    assert calls(always, "waitaof") >= 2
    app.close()


@pytest.mark.parametrize("wrong", ["disk", "replicas", "replicas:0", "replicas:101", "replicas:x", "", 1])
def test_levels_that_there_are_not(wrong: Any) -> None:
    with pytest.raises(InvalidOption, match=r"durability=.*use 'memory', 'fsync', or 'replicas:N'"):
        JobOptions(durability=wrong)
    with pytest.raises(InvalidOption, match="durability"):
        make_app("memory://", "ns").kind("note").options(durability=wrong)


def test_levels_say_what_they_want() -> None:
    assert parse("memory") is None
    assert (parse("fsync"), parse("replicas:3")) == (Durability(), Durability(3))
    assert [level.wanted for level in (Durability(), Durability(3))] == [1, 3]
