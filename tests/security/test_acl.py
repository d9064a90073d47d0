"""The rights that docs/security.md gives to each role are enough for all it does, and for nothing else."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.exceptions import NoPermissionError

from streamjobs import (
    Cancel,
    Concurrency,
    Context,
    Fixed,
    JobCancelled,
    JobFailed,
    Latest,
    Permanent,
    QueueFull,
    Rate,
    Rejected,
    Retry,
    Snooze,
    State,
    StreamJobs,
    UntilStarted,
    Window,
)
from streamjobs.core.rights import ASKING, RIGHTS, Rights, rules
from streamjobs.core.roles import Role
from tests.cli.support import Line
from tests.cli.test_cron import HOURLY, NIGHTLY, Workers
from tests.worker.support import FAST, Queue, make_app

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text("utf-8")

Login = Callable[[Rights], str]


@pytest.fixture
def login(server_url: str, namespace: str) -> Iterator[Login]:
    """Make a user with these rights in the namespace and no others; return the URL for it."""
    admin = redis.Redis.from_url(server_url)
    names: list[str] = []

    def make(rights: Rights) -> str:
        names.append(f"u{secrets.token_hex(4)}")
        admin.execute_command("ACL", "SETUSER", names[-1], "reset", ">pw", *rules(rights, namespace).split())
        return server_url.replace("unix://", f"unix://{names[-1]}:pw@")

    yield make
    for name in names:
        admin.execute_command("ACL", "DELUSER", name)
    admin.close()


@pytest.fixture
def queue(server_url: str, namespace: str) -> Iterator[Queue]:
    """What the server holds, seen by its administrator."""
    queue = Queue(server_url, namespace)
    yield queue
    queue.close()


@pytest.fixture
async def app_of(namespace: str) -> AsyncIterator[Callable[[str], StreamJobs]]:
    """Make an app as a user."""
    apps: list[StreamJobs] = []

    def make(url: str) -> StreamJobs:
        apps.append(make_app(url, namespace))
        return apps[-1]

    yield make
    for app in apps:
        await app.aclose()


@pytest.mark.parametrize("role", Role)
def test_the_page_has_the_rules(role: Role) -> None:
    assert f"ACL SETUSER {role} >PASSWORD {rules(RIGHTS[role], 'sj')}\n" in PAGE


def test_the_page_has_the_rules_to_ask() -> None:
    own = RIGHTS[Role.PRODUCER]
    more = Rights(ASKING.commands - own.commands, tuple(key for key in ASKING.keys if key not in own.keys), ("done",))
    added = rules(more, "sj").removeprefix("on resetkeys resetchannels -@all ").replace("~sj:queues ", "")

    assert f"ACL SETUSER {Role.PRODUCER} {added}\n" in PAGE


AppOf = Callable[[str], StreamJobs]

EVERYBODY = [
    *(["FLUSHALL"], ["FLUSHDB"], ["CONFIG", "GET", "*"], ["CONFIG", "SET", "maxmemory", "1"], ["KEYS", "*"]),
    *(["LASTSAVE"], ["SHUTDOWN", "NOSAVE"], ["ACL", "LIST"], ["MONITOR"], ["SCRIPT", "FLUSH"]),
    *(["CLIENT", "KILL", "ID", "0"], ["REPLICAOF", "NO", "ONE"], ["MODULE", "LIST"], ["SAVE"], ["SCAN", "0"]),
    *(["GET", "elsewhere"], ["DEL", "elsewhere"], ["EVAL", "return 1", "0"], ["RENAME", "@stream", "@x"]),
    *(["XTRIM", "@stream", "MAXLEN", "0"], ["XGROUP", "DESTROY", "@stream", "workers"]),
]
"""What nobody may do; `@` stands for the beginning of the queue's keys, `@@` for the list of queues."""
OTHERS = {
    Role.PRODUCER: [
        *(["XREADGROUP", "GROUP", "workers", "me", "STREAMS", "@stream", ">"], ["XRANGE", "@stream", "-", "+"]),
        *(["XACK", "@stream", "workers", "0-1"], ["XDEL", "@stream", "0-1"], ["DEL", "@stream"]),
        *(["XLEN", "@dead"], ["XADD", "@dead", "*", "a", "b"], ["GET", "@result:1-0"], ["HGETALL", "@bodies"]),
        *(["HDEL", "@config", "lease_ms"], ["PUBLISH", "@done", "x"], ["SMEMBERS", "@@"], ["INFO"]),
    ],
    Role.WORKER: [["XSETID", "@stream", "9-0"], ["XAUTOCLAIM", "@stream", "workers", "me", "0", "0"]],
    Role.OPERATOR: [
        ["XREADGROUP", "GROUP", "workers", "me", "STREAMS", "@stream", ">"],
        ["XCLAIM", "@stream", "workers", "me", "0", "0-1"],
    ],
    Role.MONITOR: [
        *(["EVALSHA", "0" * 40, "0"], ["SCRIPT", "LOAD", "return 1"], ["XADD", "@stream", "*", "a", "b"]),
        *(["SADD", "@@", "x"], ["HSET", "@config", "paused", "0-0"], ["XREVRANGE", "@dead", "+", "-"]),
        *(["GET", "@result:1-0"], ["HGETALL", "@bodies"], ["SUBSCRIBE", "@done"], ["XDEL", "@dead", "0-1"]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("role", Role)
def test_what_a_role_does_not_need_is_denied(login: Login, queue: Queue, namespace: str, role: Role) -> None:
    user = redis.Redis.from_url(login(RIGHTS[role]))
    for words in EVERYBODY + OTHERS[role]:
        sent = [word.replace("@@", f"{namespace}:queues").replace("@", queue.keys.base) for word in words]
        with pytest.raises(NoPermissionError):
            user.execute_command(*sent)
    user.close()


def test_rules_for_one_queue_keep_out_of_the_others(login: Login, server_url: str, namespace: str) -> None:
    admin = redis.Redis.from_url(server_url)
    admin.execute_command("ACL", "SETUSER", "one", "reset", ">pw", *rules(RIGHTS[Role.WORKER], namespace, "q").split())
    try:
        user = redis.Redis.from_url(server_url.replace("unix://", "unix://one:pw@"))
        assert user.xlen(f"{namespace}:{{q}}:stream") == 0
        with pytest.raises(NoPermissionError):
            user.xlen(f"{namespace}:{{other}}:stream")
        user.close()
    finally:
        admin.execute_command("ACL", "DELUSER", "one")
        admin.close()


def test_a_producer_may_enqueue_in_every_way_and_no_more(login: Login, queue: Queue, app_of: AppOf) -> None:
    app = app_of(login(RIGHTS[Role.PRODUCER]))
    app.queue("q", max_waiting=50)
    send = app.send_sync
    handles = [
        send("k", {"n": 1}),
        send("k", {"n": 1}, delay=5),
        send("k", dedupe_key="a"),
        send("k", dedupe_key="b", dedupe=UntilStarted()),
        send("k", dedupe_key="c", dedupe=Window(60)),
        *(send("k", dedupe_key="d", dedupe=Latest(), delay=delay) for delay in (5, None)),
        send("k", dedupe_key="d", dedupe=Latest()),
        send("k", expires=5, headers={"a": "b"}),
    ]
    kind = app.job(name="k")(lambda: None)

    many = app.enqueue_many_sync(kind.call() for _ in range(100))

    assert [handle.duplicate for handle in handles] == [False] * 6 + [True] * 2 + [False]
    assert isinstance(many[-1], QueueFull)
    assert queue.length() == 50
    with pytest.raises(Rejected, match="NOPERM"):
        handles[0].status_sync()


async def test_who_may_ask_too_hears_of_its_jobs(login: Login, queue: Queue, app_of: AppOf, server_url: str) -> None:
    asker, runner = app_of(login(RIGHTS[Role.PRODUCER] | ASKING)), app_of(server_url)
    runner.job(name="add")(add)

    waiting = await asker.send("add", {"a": 1, "b": 2}, result_ttl=60)
    assert (await waiting.status()).state is State.WAITING
    later = await asker.send("add", {"a": 1}, delay=60)
    assert (await later.status()).state is State.SCHEDULED
    result = asyncio.create_task(waiting.result(timeout=10))
    async with runner.worker(options=FAST):
        assert await result == 3
    assert await asyncio.to_thread(waiting.result_sync) == 3


async def add(a: int, b: int = 0) -> int:
    return a + b


def register(app: StreamJobs) -> None:
    """Register a kind for each way in which a job can go."""
    first: set[str] = set()
    again = Retry(max_attempts=2, backoff=Fixed(0.01))

    @app.job(name="all", retry=again, rate=Rate(1000), concurrency=Concurrency(1, key="n"))
    async def everything(ctx: Context[Any], n: int, how: str) -> str:
        began = ctx.id in first
        first.add(ctx.id)
        match how:
            case "retry" if not began:
                raise ValueError("once")
            case "snooze" if not began:
                raise Snooze(0.01)
            case "cancel":
                raise Cancel("by itself")
            case "refuse":
                raise Permanent("no")
            case "once" | "first":
                async with ctx.once(how, first=how == "first") as effect:
                    effect.value = n
            case "enqueue":
                return str(await (await app.kind("add").options(delay=0.01).enqueue(n)).result(timeout=10))
        return how

    app.job(name="add")(add)


async def test_a_worker_may_do_all_that_can_happen_to_a_job(
    login: Login, queue: Queue, app_of: AppOf, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_of(login(RIGHTS[Role.WORKER]))
    register(app)
    app.every(1, args={"a": 1})(app.kind("add"))
    kind = app.kind("all")
    queue.make_group()
    # Claims of a worker that died, some of which it had started before.
    handles = [await kind.enqueue(n, "dead") for n in range(3)]
    queue.crash(3)
    ways = ["plain", "retry", "snooze", "cancel", "refuse", "once", "first", "enqueue"]

    async with app.worker(["q*"], options=FAST), app.worker(options=FAST):
        handles += [await kind.enqueue(n % 3, how) for n, how in enumerate(ways)]
        for number, mode in enumerate((UntilStarted(), Latest(), Window(60))):
            keyed = kind.options(dedupe=mode, dedupe_key=f"k{number}")
            handles += [await keyed.enqueue(9, str(number)) for _ in range(3)]
        handles.append(await kind.options(expires=0.02, delay=0.01, when_expired="drop").enqueue(1, "late"))
        ended = await asyncio.gather(*(one.result(timeout=10) for one in handles), return_exceptions=True)
        queue.command("XGROUP", "DESTROY", queue.keys.stream, "workers")
        assert await (await kind.enqueue(1, "after")).result(timeout=10) == "after"

    assert {type(one) for one in ended} <= {str, JobCancelled, JobFailed}
    said = [record.getMessage() for record in caplog.records]
    assert not [text for text in said if "NOPERM" in text or "refuses " in text], said


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.MONITOR])
def test_who_looks_may_look(login: Login, server_url: str, namespace: str, role: Role) -> None:
    Line(server_url, namespace).enqueue("tests.greet", "Ada")
    line = Line(login(RIGHTS[role]), namespace)

    line("stats", exit=1)
    for words in (
        *(["queue", "list"], ["queue", "show", "default"], ["queue", "limit", "default"]),
        *(["workers", "list"], ["cron", "list", "--all"]),
    ):
        line(*words)
    findings = {one["check"]: one for one in line.json("doctor", "--role", role.value)["findings"]}
    assert findings["rights"]["level"] == "ok"
    unseen = {"slow log", "leaked keys"} | ({"types of keys"} if role is Role.MONITOR else set())
    assert {name for name, one in findings.items() if one["level"] == "unknown"} == unseen


def test_an_operator_may_do_what_the_command_line_can(login: Login, server_url: str, namespace: str) -> None:
    admin, line = Line(server_url, namespace), Line(login(RIGHTS[Role.OPERATOR]), namespace)
    admin.enqueue("tests.fail", "x", "--dedupe-key", "k")
    admin.enqueue("tests.refuse", "--arg", "n=1")
    later = [line.enqueue("add", "1", "--delay", "1h", "--dedupe", "latest", "--dedupe-key", f"d{n}") for n in range(3)]
    waiting = line.enqueue("other.greet", "Ada")
    crons = Workers(admin)
    crons.start("a", NIGHTLY, HOURLY)

    line("job", "list")
    for words in (["pause"], ["resume"], ["show"], ["purge", "--yes", "--kind", "none"]):
        line("queue", words[0], "default", *words[1:])
    line("workers", "list")
    line("workers", "prune")
    line("queue", "limit", "math", "--rate", "5/m", "--concurrency", "3", "--max-waiting", "100")
    line("queue", "limit", "math", "--reset")
    line("job", "show", later[0])
    line("job", "reschedule", later[0], "--delay", "2h")
    line("job", "run-now", later[1])
    line("job", "cancel", later[2], waiting)
    for words in (["next", "nightly"], ["run", "nightly"], ["pause", "nightly"], ["resume", "nightly"]):
        line("cron", *words)
    crons.close()
    admin.work()
    [failed] = line.json("dead", "list", "--kind", "tests.fail")["jobs"]
    line("dead", "groups")
    line("dead", "show", failed["id"])
    line("dead", "replay", "--id", failed["id"], "--yes")
    admin.work()
    line("dead", "purge", "--yes")
    assert line.json("dead", "list")["jobs"] == []
    line("queue", "delete", "default", "--yes", "--force")


@pytest.mark.parametrize(
    "words",
    [["queue", "pause", "default"], ["dead", "list"], ["job", "show", "default:1-0"], ["enqueue", "k"]],
    ids=" ".join,
)
def test_a_monitor_may_change_nothing_and_read_no_job(
    login: Login, server_url: str, namespace: str, words: list[str]
) -> None:
    Line(server_url, namespace).enqueue("tests.greet", "Ada")
    line = Line(login(RIGHTS[Role.MONITOR]), namespace)

    refused = line(*words, exit=2).stderr

    assert "NOPERM" in refused
    assert "give the URL's user this right, or name another user" in refused
    assert "pw@" not in refused
