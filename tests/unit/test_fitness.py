"""How fit a server is: how full, what it may lose, how far away, whose clock is wrong."""

import pytest

from streamjobs.core import fitness
from streamjobs.core.fitness import Settings
from streamjobs.core.server import Level, ServerFacts, schema, transport

GIB = 1 << 30


@pytest.mark.parametrize(
    ("used", "limit", "machine", "level", "said"),
    [
        (98, 100, 1000, Level.FAIL, "98 % full"),
        (95, 100, 0, Level.FAIL, "95 % full"),
        (94, 100, 0, Level.WARN, "94 % full"),
        (85, 100, 0, Level.WARN, "85 % full"),
        (84, 100, 0, Level.OK, "84 % full"),
        (200, 100, 0, Level.FAIL, "200 % full"),
        (98, 0, 100, Level.FAIL, "there is no maxmemory"),
        (50, 0, 100, Level.OK, "there is no maxmemory"),
        (50, None, 100, Level.OK, "50 % full"),
        (50, None, 0, Level.OK, "without a limit"),
        (0, 100, 100, Level.UNKNOWN, ""),
    ],
)
def test_memory(used: int, limit: int | None, machine: int, level: Level, said: str) -> None:
    found = fitness.memory(
        ServerFacts(used_bytes=used * GIB, limit_bytes=limit and limit * GIB, machine_bytes=machine * GIB)
    )

    assert found.level is level
    assert said in found.what
    assert bool(found.advice) == (level in (Level.WARN, Level.FAIL))


@pytest.mark.parametrize(
    ("appends", "sync", "save", "level", "said"),
    [
        (True, "always", "", Level.OK, "loses nothing"),
        (True, "everysec", "3600 1", Level.OK, "about 2 s"),
        (True, None, None, Level.OK, "if synced every second: it does not say"),
        (True, "no", "", Level.WARN, "half a minute"),
        (False, "everysec", "", Level.WARN, "none: a restart of the server loses every job"),
        (False, None, "3600 1 300 100", Level.WARN, "save 3600 1 300 100"),
        (False, None, None, Level.WARN, "or all if it makes none"),
        (None, None, None, Level.UNKNOWN, ""),
    ],
)
def test_persistence(appends: bool | None, sync: str | None, save: str | None, level: Level, said: str) -> None:
    found = fitness.persistence(ServerFacts(appends=appends), Settings(sync, save))

    assert found.level is level
    assert said in found.what
    assert bool(found.advice) == (level is Level.WARN)


@pytest.mark.parametrize("sync", ["everysec", None])
def test_what_fsync_means_on_valkey_is_said_where_it_syncs_once_a_second(sync: str | None) -> None:
    """It answers WAITAOF before."""
    said = "confirmed before the sync"

    assert said in fitness.persistence(ServerFacts("valkey", appends=True), Settings(sync)).what
    assert said not in fitness.persistence(ServerFacts("redis", appends=True), Settings(sync)).what
    assert said not in fitness.persistence(ServerFacts("valkey", appends=True), Settings("always")).what


def test_a_disk_that_cannot_be_written_is_a_failure_whatever_is_set() -> None:
    found = fitness.persistence(ServerFacts(appends=True, failing=("its last snapshot",)), Settings("always"))

    assert (found.level, "its last snapshot" in found.what) == (Level.FAIL, True)


@pytest.mark.parametrize(
    ("count", "good", "least", "level", "said"),
    [
        (0, None, 0, Level.OK, "nothing takes over"),
        (2, None, 0, Level.WARN, "none is waited for"),
        (2, None, None, Level.WARN, "none is waited for"),
        (2, 2, 1, Level.OK, "2 of 2 near"),
        (1, 1, 1, Level.WARN, "after a failover"),
        (1, 0, 1, Level.FAIL, "0 of 1 replicas are near enough"),
        (3, 1, 2, Level.FAIL, "with fewer than 2"),
        (0, 0, None, Level.FAIL, "fewer than asked for"),
        (None, None, None, Level.UNKNOWN, ""),
    ],
)
def test_replicas(count: int | None, good: int | None, least: int | None, level: Level, said: str) -> None:
    found = fitness.replicas(ServerFacts(replicas=count, good_replicas=good), Settings(least_replicas=least))

    assert found.level is level
    assert said in found.what
    assert bool(found.advice) == (level in (Level.WARN, Level.FAIL))


def test_latency_goes_by_the_middle_one() -> None:
    assert fitness.latency([0.001, 0.5, 0.001]).level is Level.OK
    far = fitness.latency([0.03, 0.02, 0.04])
    assert (far.level, "30.0 ms a round trip (40.0 at most of 3)" in far.what) == (Level.WARN, True)


@pytest.mark.parametrize(
    ("ahead_s", "unsure_s", "level", "said"),
    [
        (0.2, 0.0, Level.OK, ""),
        (-0.9, 0.0, Level.OK, ""),
        (3600.0, 0.001, Level.WARN, "3,600.0 s ahead of"),
        (-90.0, 0.0, Level.WARN, "90.0 s behind"),
        (4.0, 3.5, Level.OK, ""),
    ],
)
def test_clock(ahead_s: float, unsure_s: float, level: Level, said: str) -> None:
    found = fitness.clock(ahead_s, unsure_s)

    assert (found.level, said in found.what) == (level, True)


def test_slow_calls_of_ours_are_named_the_worst_first() -> None:
    assert fitness.slow_log({}).level is Level.OK
    assert fitness.slow_log({"promote": [9.9]}).level is Level.OK
    found = fitness.slow_log({"promote": [12.0, 3.0, 77.4], "enqueue": [400.0]})
    assert found.level is Level.WARN
    assert found.what.endswith("enqueue 1 time, up to 400 ms, promote 2 times, up to 77 ms")


@pytest.mark.parametrize(
    ("scheme", "host", "password", "certificate", "level"),
    [
        ("unix", "", False, False, Level.OK),
        ("memory", "", False, False, Level.OK),
        ("embedded", "", False, False, Level.OK),
        ("redis", "localhost", False, False, Level.OK),
        ("redis", "LOCALHOST.", False, False, Level.OK),
        ("redis", "127.0.0.1", False, False, Level.OK),
        ("redis", "127.8.8.8", False, False, Level.OK),
        ("redis", "::1", False, False, Level.OK),
        ("redis", "10.0.0.1", False, False, Level.WARN),
        ("redis", "cache-1", True, False, Level.WARN),
        ("redis", "localhost.example.org", False, False, Level.WARN),
        ("redis", "0.0.0.0", False, False, Level.WARN),
        ("rediss", "cache-1", False, False, Level.WARN),
        ("rediss", "cache-1", True, False, Level.OK),
        ("rediss", "cache-1", False, True, Level.OK),
    ],
)
def test_threat_T3_what_others_could_read_or_change_is_warned_of(
    scheme: str, host: str, password: bool, certificate: bool, level: Level
) -> None:
    found = transport(scheme, host, password=password, certificate=certificate)

    assert found.level is level
    assert bool(found.advice) == (level is Level.WARN)


def test_a_schema_that_is_not_known_is_named() -> None:
    assert schema({"a": "", "b": "1"}).level is Level.OK
    found = schema({"a": "", "b": "2"})
    assert (found.level, "queue b is laid out by schema 2" in found.what) == (Level.FAIL, True)
