"""doctor: each thing that can be wrong with a server is named, on each server at hand, and nothing is changed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamjobs.core.rights import RIGHTS
from streamjobs.core.roles import Role
from tests.cli.support import Line, error_line
from tests.conftest import BINARIES
from tests.servers import Server

Own = Callable[..., Line]
Findings = dict[str, dict[str, Any]]


@pytest.fixture(params=list(BINARIES))
def binary(request: pytest.FixtureRequest) -> Path:
    """Each server program in turn."""
    return BINARIES[request.param]


@pytest.fixture
def own(binary: Path) -> Iterator[Own]:
    """Start a server of the test's own with these arguments; return a command line there."""
    servers: list[Server] = []

    def start(*args: str) -> Line:
        servers.append(Server(binary, args=args).start())
        return Line(servers[-1].url, "ns")

    yield start
    for server in servers:
        server.close()


def client(line: Line) -> Any:
    """Return a connection of the driver's own."""
    import redis

    return redis.Redis.from_url(line.url)


def findings(line: Line, *words: str, exit: int = 0) -> Findings:
    """Return what the doctor finds, by check; of several of one check the last."""
    return {one["check"]: one for one in line.json("doctor", *words, exit=exit)["findings"]}


def bad(found: Findings) -> set[str]:
    """Return the checks that fail."""
    return {name for name, one in found.items() if one["level"] == "fail"}


DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


def test_a_fit_server_has_no_failure_and_no_warning_but_for_its_version(own: Own) -> None:
    line = own(*DURABLE)

    found = findings(line)

    assert {name: one["level"] for name, one in found.items() if one["level"] != "ok"}.keys() <= {"known holes"}
    assert found["persistence"]["what"] == "append-only file, synced always: the end of the process loses nothing"
    with client(line) as server:
        assert server.keys("*") == []


def test_case_F10_allkeys_lru_fails(own: Own) -> None:
    line = own(*DURABLE, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")

    found = findings(line, exit=1)

    assert bad(found) == {"eviction policy"}
    assert "deletes whole queues when its memory is full" in found["eviction policy"]["what"]
    assert found["eviction policy"]["advice"] == "set maxmemory-policy noeviction there"


def test_no_persistence_is_warned_of_and_fails_only_if_that_is_asked_for(own: Own) -> None:
    line = own()

    found = findings(line)

    assert found["persistence"]["level"] == "warn"
    assert found["persistence"]["what"] == "none: a restart of the server loses every job"
    assert "appendonly yes" in found["persistence"]["advice"]
    line("doctor", "--strict", exit=1)


def test_a_node_of_a_cluster_fails(own: Own) -> None:
    line = own("--cluster-enabled", "yes")

    found = findings(line, exit=1)["version"]

    assert found["level"] == "fail"
    assert "part of a cluster" in found["what"]


def test_a_replica_fails(own: Own) -> None:
    line = own("--replicaof", "127.0.0.1", "1")

    found = findings(line, exit=1)

    assert bad(found) == {"role"}
    assert "this is a replica" in found["role"]["what"]
    assert found["rights"]["level"] == "unknown"


def test_a_key_of_a_wrong_type_fails(own: Own) -> None:
    line = own(*DURABLE)
    line("enqueue", "k", "-Q", "q")
    with client(line) as server:
        server.set("ns:{q}:scheduled", "mine")
        server.zadd("ns:{q}:bodies", {"a": 1})

    found = findings(line, exit=1)

    assert bad(found) == {"types of keys"}
    assert found["types of keys"]["what"] == (
        "ns:{q}:scheduled is a string, not a zset, ns:{q}:bodies is a zset, not a hash"
    )


def test_a_list_of_queues_of_a_wrong_type_fails(own: Own) -> None:
    line = own(*DURABLE)
    with client(line) as server:
        server.set("ns:queues", "mine")

    assert "ns:queues is not a set" in findings(line, exit=1)["types of keys"]["what"]


def test_memory_that_is_98_percent_full_fails(own: Own) -> None:
    line = own(*DURABLE)
    with client(line) as server:
        for n in range(200):
            server.set(f"ballast:{n}", b"x" * 100_000)
        server.config_set("maxmemory", int(server.info("memory")["used_memory"] / 0.985))

    found = findings(line, exit=1)

    assert bad(found) == {"memory"}
    assert found["memory"]["what"].startswith("98 % full: ")


def login(line: Line, *rules: str) -> Line:
    """Return the command line as a user of these rights."""
    with client(line) as server:
        server.execute_command("ACL", "SETUSER", "jobs", "reset", "on", ">pw", *rules)
    return Line(line.url.replace("unix://", "unix://jobs:pw@"), line.namespace)


@pytest.mark.parametrize("may_ask", [True, False], ids=["asked", "tried"])
def test_a_user_without_a_command_that_workers_need_fails(own: Own, may_ask: bool) -> None:
    """Where the server can be asked (7.0 and later, with the right to ask), it is; else the command is tried."""
    ask = [] if may_ask else ["-acl"]
    line = login(own(*DURABLE), "~*", "&*", "+@all", "-xclaim", "-xdel", *ask)

    found = findings(line, exit=1)

    assert bad(found) == {"rights"}
    assert found["rights"]["what"] == "a worker may not use XCLAIM, XDEL"
    assert found["rights"]["advice"] == "give the URL's user these rights"


def test_a_user_without_XAUTOCLAIM_lacks_nothing(own: Own) -> None:
    line = login(own(*DURABLE), "~*", "&*", "+@all", "-xautoclaim")

    assert findings(line)["rights"]["level"] == "ok"


@pytest.mark.parametrize("may_ask", [True, False], ids=["asked", "tried"])
@pytest.mark.parametrize(
    ("role", "rules", "denied"),
    [
        ("producer", ["-xadd", "-lpush"], "a producer may not use LPUSH, XADD"),
        ("producer", ["-set"], "a producer may not use SET"),
        ("operator", ["-del", "-xrevrange"], "an operator may not use DEL, XREVRANGE"),
        ("monitor", ["-xinfo"], "a monitor may not use XINFO|CONSUMERS, XINFO|GROUPS"),
        ("monitor", ["-@write"], ""),
    ],
)
def test_each_role_needs_rights_of_its_own(own: Own, may_ask: bool, role: str, rules: list[str], denied: str) -> None:
    admin = own(*DURABLE)
    line = login(admin, "~*", "&*", "+@all", *rules, *([] if may_ask else ["-acl"]))

    found = findings(line, "--role", role, exit=1 if denied else 0)

    assert found["rights"]["what"] == (denied or f"all that a {role} needs")
    with client(admin) as server:
        assert all(server.ttl(key) > 0 for key in server.keys("*"))


@pytest.mark.parametrize("may_ask", [True, False], ids=["asked", "tried"])
def test_a_producer_without_the_commands_of_durability_is_told_and_lacks_nothing(own: Own, may_ask: bool) -> None:
    """Most enqueues take none."""
    ask = [] if may_ask else ["-acl"]
    line = login(own(*DURABLE), "~*", "&*", "+@all", "-wait", "-waitaof", *ask)

    found = findings(line, "--role", "producer")["rights"]

    assert (found["level"], found["what"]) == ("ok", "all that a producer needs, but WAIT, WAITAOF for durability=")
    assert findings(line)["rights"]["what"] == "all that a worker needs"


@pytest.mark.parametrize("may_ask", [True, False], ids=["asked", "tried"])
def test_a_key_that_is_out_of_reach_is_named(own: Own, may_ask: bool) -> None:
    admin = own(*DURABLE)
    admin("enqueue", "k", "-Q", "q")
    ask = [] if may_ask else ["-acl"]
    others = [f"~ns:{{q}}:{name}" for name in RIGHTS[Role.PRODUCER].keys if name not in ("scheduled", "dedupe:*")]
    line = login(admin, "~ns:queues", *others, "&*", "+@all", *ask)

    what = findings(line, "--role", "producer", exit=1)["rights"]["what"]

    assert what == "a producer may not use ns:{q}:dedupe:probe, ns:{q}:scheduled"


def test_what_a_user_may_not_see_is_neither_good_nor_bad(own: Own) -> None:
    deaf = ["-info", "-slowlog", "-scan", "-config", "-type", "-xinfo", "-smembers"]
    line = login(own(*DURABLE), "~*", "&*", "+@all", *deaf)

    found = findings(line, "--role", "producer")

    unknown = {name for name, one in found.items() if one["level"] == "unknown"}
    assert unknown == {
        *("role", "version", "eviction policy", "known holes", "memory", "persistence", "replicas"),
        *("slow log", "backlog", "leaked keys"),
    }
    shown = line("doctor", "--role", "producer").stdout
    assert "?     slow log         this user may not read it" in shown


def test_jobs_that_nobody_will_run_are_warned_of(own: Own) -> None:
    line = own(*DURABLE)
    line("enqueue", "k", "-Q", "q", "--count", "3")

    found = findings(line)

    assert found["backlog"]["what"] == "queue q: 3 jobs waiting, and no worker is subscribed"
    assert found["backlog"]["advice"] == "start one: streamjobs worker -A APP -Q q"
    line("queue", "pause", "q")
    assert findings(line)["backlog"]["advice"] == "streamjobs queue resume q"


def test_jobs_of_dead_workers_and_those_handed_out_too_often_are_warned_of(own: Own) -> None:
    line = own(*DURABLE)
    line("enqueue", "k", "-Q", "q", "--count", "2")
    with client(line) as server:
        server.xgroup_create("ns:{q}:stream", "workers", "0")
        [[_, [(entry, _), _]]] = server.xreadgroup("workers", "w1", {"ns:{q}:stream": ">"})
        server.xclaim("ns:{q}:stream", "workers", "w1", 0, [entry], retrycount=31, justid=True)

    found = findings(line)

    assert found["claims"]["what"] == f"queue q: handed out more than 20 times: {entry.decode()} (31 times)"


def test_leaked_keys_and_queues_without_a_name_are_warned_of(own: Own) -> None:
    line = own(*DURABLE)
    with client(line) as server:
        server.set("ns:{q}:dedupe:k", "1-0")
        server.set("ns:{q}:dedupe:good", "1-0", px=60_000)
        server.set("ns:mine", "x")
        server.xadd("ns:{q}:stream", {"kind": "k", "body": "{}"})
        server.set("other:{q}:dedupe:k", "1-0")

    said = str(line.json("doctor")["findings"])

    assert "1 key that should expire and never will: ns:{q}:dedupe:k" in said
    assert "1 key in this namespace that we never made: ns:mine" in said
    assert "missing in the list of queues, so that nobody sees them: q" in said


def test_a_walk_has_an_end_and_says_so(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    from streamjobs.operate import checkup

    monkeypatch.setattr(checkup, "ROUNDS_MOST", 1)
    line = own(*DURABLE)
    with client(line) as server:
        pipe = server.pipeline()
        for n in range(3000):
            pipe.set(f"other:{n}", "")
        pipe.execute()

    assert findings(line)["leaked keys"]["what"].endswith("(of about 1,000 on the server; it has more)")


def test_slow_scripts_of_ours_are_named_and_their_arguments_are_not(own: Own) -> None:
    line = own(*DURABLE, "--slowlog-log-slower-than", "0")
    line("enqueue", "k", "--arg", "password=s3cret", "-Q", "q")
    with client(line) as server:
        # The log is short: what the doctor asks for would push that out.
        server.config_set("slowlog-log-slower-than", "-1")
    assert findings(line)["slow log"]["level"] == "ok"

    from streamjobs.core import fitness

    fitness.SLOW_MS, before = 0.0, fitness.SLOW_MS
    try:
        what = findings(line)["slow log"]["what"]
    finally:
        fitness.SLOW_MS = before
    assert "enqueue " in what
    assert "s3cret" not in what


def test_a_queue_of_a_later_version_fails(own: Own) -> None:
    line = own(*DURABLE)
    line("enqueue", "k", "-Q", "q")
    with client(line) as server:
        server.hset("ns:{q}:config", "schema", "2")

    assert findings(line, exit=1)["schema"]["what"].startswith("queue q is laid out by schema 2")


def test_text_fits_the_screen_and_says_what_to_do(own: Own) -> None:
    line = own("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")

    shown = line("doctor", exit=1).stdout

    assert max(map(len, shown.splitlines())) <= 80
    assert "\nFAIL  eviction policy  the server deletes whole queues" in shown
    assert "→ set maxmemory-policy noeviction there" in shown
    assert ", namespace ns: 1 FAIL, " in shown.splitlines()[-1]


def test_hostile_names_of_keys_do_not_steer_the_terminal(own: Own) -> None:
    line = own(*DURABLE)
    with client(line) as server:
        server.set("ns:\x1b[2J\u202e", "x")

    shown = line("doctor").stdout

    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\\x1b[2J" in shown


def test_no_server_is_unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjobs.cli.settings.PATIENCE_S", 0.1)
    line = Line(f"unix://{tmp_path}/none", "ns")

    assert "cannot reach" in error_line(line("doctor", exit=3))


def test_memory_url_is_looked_over_as_far_as_it_goes() -> None:
    found = json.loads(Line("memory://doctor", "ns")("doctor", "--json").stdout)["findings"]

    assert {one["level"] for one in found} == {"ok", "unknown"}
