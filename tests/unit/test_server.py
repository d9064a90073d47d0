"""What a server says of itself is judged: fit, to be warned of, unfit, or not told."""

import pytest

from streamjobs.core import server
from streamjobs.core.errors import Rejected, StreamJobsError, Unavailable
from streamjobs.core.server import Level, ServerFacts
from streamjobs.protocol.server import facts, info

VERSIONS = [
    ("redis", "6.2.5", Level.OK),
    ("redis", "6.2.14", Level.OK),
    ("redis", "7.0.0", Level.OK),
    ("redis", "255.255.255", Level.OK),
    ("redis", "10.0.0", Level.OK),
    ("redis", "6.2.4", Level.FAIL),
    ("redis", "6.0.16", Level.FAIL),
    ("redis", "6.2", Level.FAIL),
    ("valkey", "8.1.0", Level.OK),
    ("valkey", "9.1.2", Level.OK),
    ("valkey", "8.1.0-rc1", Level.OK),
    ("valkey", "8.0.6", Level.FAIL),
    ("valkey", "7.2.4", Level.FAIL),
    ("other", "1.0", Level.UNKNOWN),
    ("redis", "new", Level.UNKNOWN),
    ("", "", Level.UNKNOWN),
]


@pytest.mark.parametrize(("engine", "number", "level"), VERSIONS)
def test_versions(engine: str, number: str, level: Level) -> None:
    found = server.version(ServerFacts(engine, number))

    assert found.level is level
    if level is Level.FAIL:
        assert str(found) == f"{engine} {number} is too old; use redis 6.2.5 or valkey 8.1, or a later one"


@pytest.mark.parametrize("mode", ["sentinel", "cluster"])
def test_modes_in_which_no_jobs_can_be_kept(mode: str) -> None:
    found = server.version(ServerFacts("redis", "7.0.15", mode=mode))

    assert found.level is Level.FAIL
    assert str(found).startswith(f"redis 7.0.15 is {'a sentinel' if mode == 'sentinel' else 'part of a cluster'}, ")


@pytest.mark.parametrize(
    ("role", "level"),
    [("master", Level.OK), ("slave", Level.FAIL), ("", Level.UNKNOWN)],
    ids=["primary", "replica", ""],
)
def test_roles(role: str, level: Level) -> None:
    assert server.role(ServerFacts(role=role)).level is level


@pytest.mark.parametrize(
    ("policy", "limit_bytes", "level"),
    [
        ("noeviction", 0, Level.OK),
        ("noeviction", 100, Level.OK),
        ("allkeys-lru", 100, Level.FAIL),
        ("volatile-ttl", 100, Level.FAIL),
        ("of-the-future", 100, Level.FAIL),
        ("allkeys-lru", None, Level.FAIL),
        ("allkeys-lru", 0, Level.WARN),
        ("", 100, Level.UNKNOWN),
        ("", None, Level.UNKNOWN),
    ],
)
def test_case_F10_eviction(policy: str, limit_bytes: int | None, level: Level) -> None:
    found = server.eviction(ServerFacts(eviction=policy, limit_bytes=limit_bytes))

    assert found.level is level
    if level in (Level.FAIL, Level.WARN):
        assert policy in found.what
        assert ("whole queues" in found.what) == policy.startswith("allkeys")
        assert found.advice == "set maxmemory-policy noeviction there"


def test_rights_that_are_missing_are_named_once() -> None:
    assert server.rights([]).level is Level.OK
    assert str(server.rights(["XDEL", "DEL", "XDEL"])) == (
        "a worker may not use DEL, XDEL; give the URL's user these rights"
    )


def told(**lines: str) -> ServerFacts:
    """Decode what a server says."""
    text = "".join(f"{name}:{value}\r\n" for name, value in lines.items())
    return info().decode(f"# Server\r\n{text}\r\n# Memory\r\n".encode())


def test_facts_of_both_engines() -> None:
    memory = {"used_memory": "1024", "maxmemory": "0", "maxmemory_policy": "noeviction"}
    valkey = {"server_name": "valkey", "redis_version": "7.2.4", "valkey_version": "9.1.2"}

    assert told(redis_version="7.0.15", role="master", **memory) == ServerFacts(
        "redis", "7.0.15", "master", "noeviction", 1024, 0
    )
    assert told(**valkey, role="slave", executable="C:\\a:b") == ServerFacts("valkey", "9.1.2", "slave")
    assert told() == ServerFacts()


@pytest.mark.parametrize("word", ["NOPERM", "UNKNOWN_COMMAND"])
def test_what_a_server_keeps_to_itself_is_unknown(word: str) -> None:
    assert facts(Rejected("no", word=word)) == ServerFacts()


@pytest.mark.parametrize("error", [Unavailable("no", word="LOADING"), Rejected("no", word="WRONGPASS")])
def test_other_errors_are_not_taken_for_silence(error: StreamJobsError) -> None:
    with pytest.raises(type(error)):
        facts(error)
