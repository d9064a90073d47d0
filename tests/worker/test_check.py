"""A worker looks at its server before it starts: it ends, waits or warns before a job is put at risk."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from streamjobs import Refused, Rejected, State, StreamJobs
from streamjobs.core import server as judges
from streamjobs.protocol import scripts
from streamjobs.worker.worker import Worker
from tests.servers import Server
from tests.worker.support import FAST, WITHIN_S, Queue, make_app, messages, within

FULL_OF = ("--maxmemory", "100mb", "--maxmemory-policy")
ENOUGH = "resetchannels ~sj:* &sj:* +@all -@admin -@dangerous +info".replace("sj:", "ns:")
"""What docs/cli.md names for a worker's user, in the namespace of these tests."""

Own = Callable[..., Server]


@pytest.fixture
def own(server_binary: Path) -> Iterator[Own]:
    """Start a server of the test's own with these arguments."""
    servers: list[Server] = []

    def start(*args: str) -> Server:
        servers.append(Server(server_binary, args=args).start())
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
async def echo_app() -> AsyncIterator[Callable[[str], StreamJobs]]:
    apps: list[StreamJobs] = []

    def make(url: str) -> StreamJobs:
        app = make_app(url, "ns")
        app.job(name="echo")(echo)
        apps.append(app)
        return app

    yield make
    for app in apps:
        await app.aclose()


Make = Callable[[str], StreamJobs]


async def echo(n: int) -> int:
    return n


async def works(app: StreamJobs) -> bool:
    """Say whether a job is done by a worker that has started."""
    result: int = await (await app.kind("echo").enqueue(7)).result(timeout=10)
    return result == 7


def allow(server: Server, name: str, rules: str) -> str:
    """Make a user with these rights; return the URL for it."""
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", name, "reset", "on", ">pw", *rules.split())
    return server.url.replace("unix://", f"unix://{name}:pw@")


async def complaint(caplog: pytest.LogCaptureFixture) -> None:
    """Wait until the worker has logged that it cannot start."""
    async with asyncio.timeout(WITHIN_S):
        while not messages(caplog):
            await asyncio.sleep(0)


async def runs(worker: Worker) -> None:
    """Run a worker that must not start."""
    async with asyncio.timeout(WITHIN_S):
        await worker.run()


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
async def test_case_F10_a_server_that_deletes_when_it_is_full_is_refused(own: Own, echo_app: Make, policy: str) -> None:
    server = own(*FULL_OF, policy)
    worker = echo_app(server.url).make_worker(options=FAST)

    with pytest.raises(Refused, match=rf"{policy}\); set maxmemory-policy noeviction there, or .*--allow-eviction"):
        await runs(worker)

    assert not worker.ready.is_set()


async def test_case_F10_forced_it_starts_and_warns(own: Own, echo_app: Make, caplog: pytest.LogCaptureFixture) -> None:
    app = echo_app(own(*FULL_OF, "allkeys-lru").url)

    async with app.worker(options=FAST, allow_eviction=True):
        assert await works(app)

    [warning] = messages(caplog)
    assert "the server deletes whole queues when its memory is full (maxmemory-policy allkeys-lru)" in warning


async def test_case_F10_without_a_limit_nothing_is_deleted_and_it_only_warns(
    own: Own, echo_app: Make, caplog: pytest.LogCaptureFixture
) -> None:
    app = echo_app(own("--maxmemory-policy", "allkeys-lru").url)

    async with app.worker(options=FAST):
        assert await works(app)

    [warning] = messages(caplog)
    assert "with a maxmemory the server would delete whole queues" in warning


async def test_a_fit_server_is_not_spoken_of(real: StreamJobs, queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    real.job(name="echo")(echo)

    async with real.worker(options=FAST):
        assert await works(real)

    assert messages(caplog) == []
    assert not any("not checked" in text for text in messages(caplog, "INFO"))


@pytest.mark.parametrize("read_only", ["yes", "no"])
async def test_a_replica_is_waited_for_until_it_is_promoted(
    own: Own, echo_app: Make, read_only: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Also one that takes writes: what is written there is lost."""
    server = own("--replicaof", "127.0.0.1", "1", "--replica-read-only", read_only)
    app = echo_app(server.url)
    worker = app.make_worker(options=FAST)
    running = asyncio.create_task(worker.run())
    await complaint(caplog)
    assert not worker.ready.is_set()
    with server.client() as client:
        assert client.keys("*") == []
        client.execute_command("REPLICAOF", "NO", "ONE")

    await within(worker.ready)
    assert await works(app)
    worker.stop()
    assert await running

    waited = [text for text in messages(caplog) if "trying on" in text]
    assert "this is a replica" in waited[0]
    assert len(waited) <= 2


@pytest.mark.parametrize("when", ["at start", "later"])
async def test_a_replica_is_left_for_the_server_that_its_name_leads_to_now(
    own: Own, echo_app: Make, tmp_path: Path, when: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a failover that leaves the old primary up: the connections to it stay open for ever."""
    old, new = own(), own()
    name = tmp_path / "primary"
    name.symlink_to(old.folder / "s")
    app = echo_app(f"unix://{name}")
    worker = app.make_worker(options=FAST)
    if when == "at start":
        demote(old)
    running = asyncio.create_task(worker.run())
    if when == "at start":
        await complaint(caplog)
    else:
        await within(worker.ready)
        assert await works(app)
        demote(old)
    name.unlink()
    name.symlink_to(new.folder / "s")

    await within(worker.ready)
    assert await works(app)
    worker.stop()
    assert await running
    with new.client() as client:
        assert client.exists("ns:{q}:totals")


def demote(server: Server) -> None:
    """Make a replica of it."""
    with server.client() as client:
        client.execute_command("REPLICAOF", "127.0.0.1", "1")


async def test_a_node_of_a_cluster_ends_it_at_once(own: Own, echo_app: Make) -> None:
    """What it would be answered there, MOVED or CLUSTERDOWN, passes by itself elsewhere."""
    app = echo_app(own("--cluster-enabled", "yes").url)

    with pytest.raises(Rejected, match=r"part of a cluster.*; name a primary in the URL that is in no cluster"):
        await runs(app.make_worker(options=FAST))


async def test_a_server_that_is_too_old_ends_it_at_once(
    real: StreamJobs, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges, "FLOORS", {"redis": (99, 1), "valkey": (99, 1)})
    real.job(name="echo")(echo)

    with pytest.raises(Rejected, match=r"\d is too old; use redis 99.1 or valkey 99.1, or a later one") as caught:
        await runs(real.make_worker(options=FAST))

    assert caught.value.word == "VERSION"


async def test_a_worker_starts_where_memory_is_full(own: Own, echo_app: Make) -> None:
    """It alone can free some."""
    server = own()
    app = echo_app(server.url)
    handle = await app.kind("echo").options(result_ttl=0).enqueue(1)
    with server.client() as client:
        client.config_set("maxmemory", "1")

    async with asyncio.timeout(10):
        worker = app.make_worker(options=FAST)
        running = asyncio.create_task(worker.run())
        await within(worker.ready)
        while (await handle.status()).state != State.FINISHED:
            await asyncio.sleep(0)
        worker.stop()
        assert await running


async def test_a_right_that_is_missing_ends_it_at_once_and_is_named(own: Own, echo_app: Make) -> None:
    """Else the job would run, could not be settled, and would run again until it counts as a crash."""
    server = own()
    url = allow(server, "poor", "~* &* +@all -xdel -xclaim")

    with pytest.raises(
        Rejected, match=r"a worker may not use XCLAIM, XDEL; give the URL's user these rights"
    ) as caught:
        await runs(echo_app(url).make_worker(options=FAST))

    assert caught.value.word == "NOPERM"
    assert "pw" not in str(caught.value)


async def test_waiting_for_the_bell_needs_a_right_too(own: Own, echo_app: Make) -> None:
    url = allow(own(), "deaf", "~* &* +@all -blpop")

    with pytest.raises(Rejected, match="refuses BLPOP: NOPERM"):
        await runs(echo_app(url).make_worker(options=FAST))


async def test_the_set_of_queues_needs_a_right_too(own: Own, echo_app: Make) -> None:
    url = allow(own(), "narrow", "~ns:{q}:* &* +@all")

    with pytest.raises(Rejected, match="refuses SREM: NOPERM"):
        await runs(echo_app(url).make_worker(options=FAST))


async def test_the_rights_that_the_docs_name_are_enough(own: Own, echo_app: Make) -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text("utf-8")
    assert ENOUGH.replace("ns:", "sj:") in page
    app = echo_app(allow(own(), "enough", ENOUGH))

    async with app.worker(options=FAST):
        assert await works(app)


async def test_a_server_that_does_not_tell_is_not_checked_and_said_so(
    own: Own, echo_app: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    app = echo_app(allow(own(), "silent", "~* &* +@all -info"))

    async with app.worker(options=FAST):
        assert await works(app)

    assert messages(caplog) == []
    [said] = [text for text in messages(caplog, "INFO") if "not checked" in text]
    assert said.endswith("does not tell its role, version, eviction policy: not checked")


async def test_a_queue_of_a_later_version_is_left_to_that(own: Own, echo_app: Make) -> None:
    server = own()
    app = echo_app(server.url)
    with server.client() as client:
        client.hset("ns:{q}:config", "schema", "2")

    with pytest.raises(Rejected, match=r"queue q is laid out by schema 2, .*; run a later version") as caught:
        await runs(app.make_worker(options=FAST))

    assert caught.value.word == "SCHEMA"
    with server.client() as client:
        assert client.keys("*") == [b"ns:{q}:config"]


async def test_a_pattern_passes_over_queues_of_later_versions(
    own: Own, echo_app: Make, caplog: pytest.LogCaptureFixture
) -> None:
    server = own()
    app = echo_app(server.url)
    with server.client() as client:
        client.hset("ns:{later}:config", "schema", "2")
        client.sadd("ns:queues", "later", "q")

    async with app.worker(["*"], options=FAST):
        assert await works(app)

    [warning] = messages(caplog)
    assert warning.startswith("not served: queue later is laid out by schema 2")
    with server.client() as client:
        assert not client.exists("ns:{later}:stream")


async def test_threat_T3_a_network_that_others_can_use_is_warned_of(
    server_binary: Path, echo_app: Make, caplog: pytest.LogCaptureFixture
) -> None:
    with Server(server_binary, tcp=True) as server:
        # Leads to this machine, and is no loopback address by itself.
        app = echo_app(server.url.replace("127.0.0.1", "0.0.0.0"))
        async with app.worker(options=FAST):
            assert await works(app)

    [warning] = messages(caplog)
    assert "anybody who reaches the server can read and change every job: no TLS, and no password" in warning


async def test_it_looks_once_and_not_again_after_the_server_was_away(own: Own, echo_app: Make) -> None:
    server = own("--appendonly", "yes")
    app = echo_app(server.url)

    async with app.worker(options=FAST):
        assert await works(app)
        await asyncio.to_thread(server.restart)
        assert await works(app)

    with server.client() as client:
        assert "cmdstat_info" not in client.info("commandstats")


async def test_a_worker_needs_no_more_files_once_it_has_started(
    own: Own, echo_app: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process without a free descriptor cannot read a script that it has not used before."""
    scripts.load.cache_clear()
    app = echo_app(own().url)

    async with app.worker(options=FAST):
        monkeypatch.setattr(scripts, "folder", lambda: Path("/nowhere"))
        assert await works(app)
