"""What is on the server may be anything: whatever a command finds there, it ends in order and steers no terminal."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from streamjobs.cli.main import cli
from streamjobs.protocol.keys import QueueKeys, types
from tests.cli.support import APP, Line, error_line
from tests.security.corpus import BODIES, FIELDS, KINDS, MARKUP, METAS, STEERING
from tests.store.support import Store

READING = [
    ["stats"],
    ["doctor"],
    ["queue", "list"],
    ["queue", "limit", "q"],
    ["dead", "list"],
    ["dead", "groups"],
    ["dead", "export"],
    ["cron", "list", "--all"],
    ["job", "show", "q:1-1"],
    ["dead", "show", "q:1-1"],
    ["cron", "next", "c"],
    ["queue", "show", "q"],
    ["job", "list"],
    ["workers", "list"],
    ["workers", "show", "w"],
]
DELETE = ["queue", "delete", "q", "--yes", "--force"]
WRITING = [
    ["queue", "pause", "q"],
    ["queue", "resume", "q"],
    ["queue", "limit", "q", "--rate", "5/s", "--max-waiting", "5"],
    ["job", "cancel", "q:1-1"],
    ["job", "run-now", "q:1-1"],
    ["job", "reschedule", "q:1-1", "--delay", "5"],
    ["cron", "run", "c"],
    ["cron", "pause", "c"],
    ["cron", "resume", "c"],
    ["enqueue", "k", "-Q", "q"],
    ["enqueue", "k", "-Q", "q", "--delay", "5", "--dedupe-key", "k"],
    ["dead", "replay", "--yes"],
    ["dead", "purge", "--yes"],
    ["workers", "prune"],
    ["queue", "purge", "q", "--yes"],
    DELETE,
]
CHANGING = [
    ["queue", "pause", "q"],
    ["job", "cancel", "q:1-1"],
    ["enqueue", "k", "-Q", "q"],
    ["dead", "replay", "--yes"],
]
"""A few of them that touch most keys."""


@pytest.fixture
def store(server_url: str, namespace: str) -> Iterator[Store]:
    store = Store(server_url, namespace)
    store.make_group()
    store.command("SADD", f"{namespace}:queues", "q")
    yield store
    store.close()


def ends_in_order(store: Store, server_url: str, words: list[str]) -> Result:
    """Run a command; check its exit code, its lines and its characters."""
    where = ["--url", server_url, "--namespace", store.keys.namespace]
    result = CliRunner().invoke(cli, [*words, *where])
    assert "unexpected" not in result.stderr, (words, result.stderr[-1500:])
    assert "Traceback" not in result.stderr, words
    assert result.exit_code in (0, 1, 2, 4, 5), (words, result.stderr[-500:])
    for text in (result.stdout, result.stderr):
        assert all(c.isprintable() or c == "\n" for c in text), words
    if "--json" in words and result.stdout:
        for document in result.stdout.splitlines() if "export" in words else [result.stdout]:
            json.loads(document)
    return result


def read_all(store: Store, server_url: str, *more: list[str]) -> str:
    """Run every command that reads, as text and as JSON; return all that it showed."""
    shown = ""
    for words in [*READING, *more]:
        for how in ([], ["--json"]):
            shown += ends_in_order(store, server_url, [*words, *how]).stdout
    return shown


def ids(store: Store) -> list[list[str]]:
    """Return the commands that show each job which is there."""
    entries = [entry.decode() for entry, _ in store.entries()]
    dead = [row["id"].decode() for row in store.dead_rows() if "id" in row]
    found = [["job", "show", f"q:{one}"] for one in entries + dead]
    return found + [["dead", "show", f"q:{one}"] for one in dead]


def test_threat_T14_what_jobs_hold_steers_no_terminal(store: Store, server_url: str) -> None:
    """Kinds, bodies, metas, errors, reasons, names of workers: waiting, running and dead."""
    add = [["kind", kind, "body", "{}"] for kind in KINDS]
    add += [["kind", "echo", "body", body] for body in BODIES.values()]
    add += [["kind", "echo", "body", "{}", "meta", meta] for meta in METAS.values()]
    add += [list(fields) for fields in FIELDS.values()]  # type: ignore[misc]
    for fields in add:
        store.command("XADD", store.keys.stream, "*", *fields)
    for claim in store.claim(STEERING, 60):
        if claim.body[:1] == b"{":
            history = json.dumps([{"at": 1, "n": 1, "e": STEERING, "k": MARKUP, "w": STEERING}])
            row = ["id", claim.entry, "kind", claim.kind, "body", claim.body, "meta", claim.meta, "reason", STEERING]
            row += ["error", STEERING + MARKUP, "attempts", "1", "history", history, "died_at", "1"]
            store.command("HSET", store.keys.dead_ids, claim.entry, store.command("XADD", store.keys.dead, "*", *row))
    store.command("HSET", store.keys.totals, STEERING, 5)
    store.command("HSET", store.keys.limits, f"c:k:{STEERING}", "5")
    store.command("HSET", store.keys.workers, STEERING, "1 5")

    shown = read_all(store, server_url, *ids(store)[:40])

    assert "\\x1b[2J" in shown
    assert "<script>" in shown


def test_threat_T14_crons_steer_no_terminal(store: Store, server_url: str) -> None:
    one = {
        "name": STEERING,
        "kind": STEERING,
        "body": {},
        "schedule": "* * * * * UTC",
        "catch_up": "once",
        "jitter_ms": 0,
    }
    store.command("HSET", store.keys.cron_code, STEERING, json.dumps([one]))
    store.command("HSET", store.keys.cron, STEERING, f"1 1 1 1 1 1-1 {STEERING}", "c", "x", "d", "")

    read_all(store, server_url)


@pytest.mark.parametrize("name", sorted(types(QueueKeys("n", "q"))))
def test_a_key_of_another_type_is_named(store: Store, server_url: str, name: str) -> None:
    key = store.keys.base + name.removeprefix("n:{q}:")
    wrong = ["HSET", key, "a", "b"] if types(store.keys)[key] != "hash" else ["SET", key, "x", "PX", "60000"]
    store.command("DEL", key)
    store.command(*wrong)

    for words in READING + CHANGING:
        result = ends_in_order(store, server_url, words)
        if result.exit_code == 2 and words[0] != "job":
            assert "WRONGTYPE" in result.stderr, (words, result.stderr)
    assert key in ends_in_order(store, server_url, ["doctor"]).stdout
    ends_in_order(store, server_url, DELETE)
    store.command("DEL", key)


def test_a_key_of_another_type_hides_no_other_queue(store: Store, server_url: str) -> None:
    Line(server_url, store.keys.namespace)("enqueue", "kind", "-Q", "q")
    store.command("SADD", f"{store.keys.namespace}:queues", "wrong")
    key = QueueKeys(store.keys.namespace, "wrong").stream
    store.command("SET", key, "foo", "PX", 60_000)

    for words in (["stats"], ["stats", "--by", "kind"], ["stats", "--by", "worker"]):
        shown = ends_in_order(store, server_url, words)
        assert shown.exit_code == 1
        said = " ".join(shown.stdout.split())
        assert f"critical unreadable: {key} is of a wrong type (streamjobs doctor)" in said
        assert "no worker is subscribed (streamjobs worker -A APP -Q q)" in shown.stdout
    queues = json.loads(ends_in_order(store, server_url, ["stats", "--json"]).stdout)["queues"]
    assert [(one["queue"], one["waiting"], one["health"]) for one in queues] == [
        ("q", 1, "critical"),
        ("wrong", 0, "critical"),
    ]
    assert queues[1]["reasons"][0]["about"] == "unreadable"
    # Of the queue itself nothing is made out to be empty.
    shown = ends_in_order(store, server_url, ["queue", "show", "wrong"])
    assert (shown.exit_code, f"{key} is of a wrong type" in shown.stderr) == (1, True)
    assert ends_in_order(store, server_url, ["queue", "delete", "wrong", "--yes"]).exit_code == 5
    assert ends_in_order(store, server_url, ["queue", "purge", "wrong", "--dry-run"]).exit_code == 2
    prom = ends_in_order(store, server_url, ["stats", "--prom"]).stdout
    assert 'streamjobs_queue_health{queue="wrong"} 2' in prom
    jobs = ends_in_order(store, server_url, ["job", "list"])
    assert jobs.exit_code == 1
    assert "q:" in jobs.stdout
    assert f"queue wrong is left out: {key} is of a wrong type" in jobs.stderr


def test_a_queue_paused_at_no_entry_can_be_looked_at(store: Store, server_url: str) -> None:
    Line(server_url, store.keys.namespace)("enqueue", "kind", "-Q", "q")
    store.command("HSET", store.keys.config, "paused", "nope")

    for words in (["queue", "show", "q"], ["queue", "limit", "q"], ["queue", "purge", "q", "--yes"], ["job", "list"]):
        assert ends_in_order(store, server_url, words).exit_code == 0


ROTTEN: list[list[Any]] = [
    [
        "HSET",
        "config",
        "lease_ms",
        "soon",
        "paused",
        STEERING,
        "limited",
        "x",
        "max_waiting",
        "many",
        "schema",
        STEERING,
    ],
    ["HSET", "config", "limit:r:q", "x", "limit:c:q", "-1", "limit:", "", "limit:r:k:a b", "1 2 3", "redact:k", "1"],
    ["HSET", "limits", "r:q", "-1 0", "c:q", "-1", "r:k:a", "5 x", "r:k", "0 0"],
    ["HSET", "limits", "r:q", "x", "c:q", "", "x:y", "5", "", "", "c:k:a b c", "5"],
    ["HSET", "totals", "done", "x", "dead", "1.5", "", "", STEERING, "-1"],
    ["SET", "totals", STEERING, "PX", "60000"],
    ["HSET", "workers", "w", "x", "v", "", "u", "1", "t", "1 x", STEERING, b"\xff\xfe"],
    ["HSET", "cron", "c", "x", "d", "", STEERING, b"\xff", "e", "1 2 3 4 5 6", "f", "a b c d e f g"],
    ["HSET", "cron:code", "w", "{", "v", "[1]", "u", b"\xff", "t", '[{"name":"c"}]', "s", "[" * 5000],
    ["HSET", "cron:holds", "c", STEERING, "d", ""],
    ["HSET", "moved", "1-1", "nowhere", "2-2", STEERING],
    ["HSET", "bodies", "1-1", "x", "d1-1", "9:9:", "d2-2", b"\xff"],
    ["HSET", "dead:ids", "1-1", "nowhere", "2-2", "5-5"],
    ["HSET", "suspects", "1-1", "x", "2-2", ""],
    ["HSET", "latest", "1-1", "x", "1-1+", "x"],
    ["ZADD", "scheduled", "-inf", "1-1", "inf", "2-2", "-5", STEERING, "1e300", "d1-1", "0", ""],
    ["ZADD", "retries", "inf", "1-1", "5", STEERING],
    ["ZADD", "line", "0", "x", "0", "r:q\nx\ny"],
    ["ZADD", "slots", "0", "x", "0", "c:q\n1-1/x"],
    ["SADD", "released", "x", "1-1", STEERING],
    ["XADD", "dead", "*", "note", "hello"],
    ["XADD", "dead", "*", "id", STEERING, "reason", "?", "attempts", "many", "history", "{", "died_at", "soon"],
    ["XADD", "dead", "*", "id", "../../x", "kind", "k", "died_at", "9" * 30, "attempts", "9" * 5000, "newer", "x"],
    ["XADD", "dead", "*", "id", "1-1", "history", '[{"at":-5,"n":"x"}]', "meta", "[", "body", b"\xff"],
    ["XADD", "dead", "*", "id", "1-1", "history", '[{"at":99999999999999999}]', "died_at", "99999999999999999"],
    ["SET", "result:1-1", "x", "PX", "60000"],
    ["SET", "result:1-1", "{}", "PX", "60000"],
    ["SET", "result:1-1", '{"state":"?"}', "PX", "60000"],
    ["SET", "result:1-1", "[1]", "PX", "60000"],
    ["SET", "dedupe:k", STEERING, "PX", "60000"],
    ["SET", "promoter", STEERING, "PX", "60000"],
    ["RPUSH", "bell", STEERING],
    ["HSET", "workers", "w", "@now 5", "v", "@now x"],
]
"""Keys of the right type with anything in them, as somebody else, a bug or a future version may leave it."""


WRITTEN = {"config", "limits", "scheduled", "retries", "dead", "workers", "cron", "moved", "bodies"}
"""Keys on which it depends what commands change."""


@pytest.mark.parametrize("words", ROTTEN, ids=lambda words: f"{words[1]}-{str(words[2:])[:30]!r}")
def test_fields_of_others_are_survived(store: Store, server_url: str, words: list[Any]) -> None:
    command, name, *rest = words
    store.command("SET", store.keys.base + "result:5-5", "", "PX", 60_000)
    store.command(command, store.keys.base + name, *rest)

    for more in READING + WRITING if name in WRITTEN else READING:
        ends_in_order(store, server_url, more)


def test_names_of_queues_that_are_none_do_no_harm(store: Store, server_url: str) -> None:
    store.command("SADD", f"{store.keys.namespace}:queues", "", "a b", "{x}", STEERING, b"\xff", "q" * 500)

    read_all(store, server_url)
    for more in WRITING:
        ends_in_order(store, server_url, more)


def test_a_job_that_is_gone_between_two_looks(store: Store, server_url: str) -> None:
    line = Line(server_url, store.keys.namespace)
    line("enqueue", "-A", APP, "fail", "x", "-Q", "q")
    line.work("-Q", "q")
    [dead] = line.json("dead", "list")["jobs"]
    store.command("XTRIM", store.keys.dead, "MAXLEN", 0)

    for words in (
        ["dead", "show", dead["id"]],
        ["job", "show", dead["id"]],
        ["dead", "replay", "--id", dead["id"], "--yes"],
    ):
        assert ends_in_order(store, server_url, words).exit_code in (4, 5, 0), words


def test_a_limit_that_is_none_is_shown_as_broken(store: Store, server_url: str) -> None:
    store.command("HSET", store.keys.limits, "r:q", "-1 0")

    shown = ends_in_order(store, server_url, ["queue", "limit", "q"])

    assert (shown.exit_code, shown.stdout.split("\n")[1].split()[:3]) == (0, ["rate", "all", "broken"])


def test_a_word_without_a_utf8_form_is_refused_in_one_line(store: Store, server_url: str) -> None:
    line = Line(server_url, store.keys.namespace)
    line("enqueue", "kind", "-Q", "q")
    [entry] = [entry.decode() for entry, _ in store.entries()]

    for words in (
        ["enqueue", "-A", APP, "tests.greet", "\udcff"],
        ["job", "cancel", f"q:{entry}", "--reason", "\udcff"],
    ):
        result = line(*words, exit=2)
        assert "a string holds a lone surrogate" in error_line(result), words
    assert line("job", "list").stdout.count("waiting") == 1
