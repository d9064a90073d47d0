"""What comes from the stream, whoever wrote it: good entries run, bad ones go dead with their bytes."""

import asyncio
import socket
from typing import Any

import pytest

from streamjobs import Context, Fixed, Retry, State, StreamJobs
from streamjobs.core.decide import PARKED_FOR_MS
from streamjobs.protocol.keys import describe
from tests.worker.support import FAST, Flag, Queue, drain, make_app, messages


@pytest.fixture
def note(app: StreamJobs) -> list[Any]:
    """Registers the kind `note`, and returns what its runs were given."""
    seen: list[Any] = []

    @app.job(name="note")
    async def note(n: int, text: str = "") -> None:
        seen.append((n, text))

    return seen


BAD: list[tuple[str, list[bytes | str], bytes, bytes]] = [
    ("no kind", ["body", '{"n":1}'], b"no field kind", b'{"n":1}'),
    ("empty kind", ["kind", "", "body", '{"n":1}'], b"no field kind", b'{"n":1}'),
    ("no body", ["kind", "note"], b"arguments: ", b""),
    ("empty body", ["kind", "note", "body", ""], b"arguments: ", b""),
    ("other fields alone", ["a", "b"], b"no field kind", b""),
    ("invalid JSON", ["kind", "note", "body", '{"n":'], b"arguments: ", b'{"n":'),
    ("invalid UTF-8", ["kind", "note", "body", b'{"n":"\xff\xfe"}'], b"arguments: ", b'{"n":"\xff\xfe"}'),
    ("no object", ["kind", "note", "body", "[1]"], b"arguments: ", b"[1]"),
    ("wrong type", ["kind", "note", "body", '{"n":"1"}'], b"arguments: ", b'{"n":"1"}'),
    ("unknown argument", ["kind", "note", "body", '{"n":1,"m":2}'], b"arguments: ", b'{"n":1,"m":2}'),
    ("unknown version", ["kind", "note", "body", '{"n":1}', "meta", '{"v":9}'], b"version 9", b'{"n":1}'),
    ("invalid meta", ["kind", "note", "body", '{"n":1}', "meta", b"\xff"], b"meta: ", b'{"n":1}'),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "why", "body"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
async def test_case_C7_what_cannot_be_decoded_is_dead_with_its_bytes_and_the_worker_goes_on(
    app: StreamJobs, queue: Queue, note: list[Any], fields: list[bytes | str], why: bytes, body: bytes
) -> None:
    queue.add(*fields)
    await app.kind("note").options(result_ttl=0).enqueue(7)

    await drain(app)

    [dead] = queue.dead()
    assert note == [(7, "")]
    assert (dead["reason"], dead["body"], why in dead["error"]) == (b"undecodable", body, True)
    assert queue.totals()["dead"] == 1
    assert queue.counts() == {"waiting": 0, "scheduled": 0, "retries": 0, "dead": 1}


ODD: list[tuple[str, list[str]]] = [
    ("no meta", ["kind", "note", "body", '{"n":5}']),
    ("empty meta", ["kind", "note", "body", '{"n":5}', "meta", ""]),
    ("other order", ["meta", "{}", "body", '{"n":5}', "kind", "note"]),
    ("further fields", ["trace", "x", "kind", "note", "body", '{"n":5}', "more", "y"]),
    ("white space", ["kind", "note", "body", ' { "n" : 5 } ']),
]


@pytest.mark.parametrize("fields", [row[1] for row in ODD], ids=[row[0] for row in ODD])
async def test_an_entry_from_elsewhere_runs_like_any_other(
    app: StreamJobs, queue: Queue, note: list[Any], fields: list[str]
) -> None:
    queue.add(*fields)

    await drain(app)

    assert note == [(5, "")]
    assert queue.counts() == {"waiting": 0, "scheduled": 0, "retries": 0, "dead": 0}


async def test_a_plain_XADD_over_a_raw_socket_runs(
    server_url: str, namespace: str, queue: Queue, backend_url: str
) -> None:
    app, seen = make_app(server_url, namespace), []

    @app.job(name="note")
    async def note(n: int) -> None:
        seen.append(n)

    words = ["XADD", f"{namespace}:{{q}}:stream", "*", "kind", "note", "body", '{"n":1}']
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(server_url.removeprefix("unix://"))
        line.sendall(f"*{len(words)}\r\n".encode() + b"".join(f"${len(w)}\r\n{w}\r\n".encode() for w in words))
        assert line.recv(100).startswith(b"$")

    await drain(app)
    await app.aclose()
    assert seen == [1]


async def test_ids_of_somebodys_own_choice_do_no_harm(app: StreamJobs, queue: Queue, note: list[Any]) -> None:
    """Such as 5-1: the id of an entry is not always a time in 13 digits."""
    queue.add("kind", "note", "body", '{"n":1}', entry="5-1")
    queue.add("kind", "note", "body", '{"n":"x"}', entry="6-0")
    await app.kind("note").options(result_ttl=0).enqueue(2)

    await drain(app)

    assert note == [(1, ""), (2, "")]
    assert queue.counts() == {"waiting": 0, "scheduled": 0, "retries": 0, "dead": 1}


async def test_a_kind_that_nobody_knows_is_parked_and_run_by_a_worker_that_does(
    app: StreamJobs, queue: Queue, url: str, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    handle = await app.send("from.the.next.release", {"n": 1}, result_ttl=60)
    app.job(name="other")(lambda: None)
    await drain(app)

    status = await handle.status()
    assert (status.state, status.retrying, status.attempt, status.meta.parks) == (State.SCHEDULED, False, 1, 1)
    assert status.unknown
    [said] = messages(caplog)
    assert said.startswith("kind 'from.the.next.release' of queue q is not registered here: ")

    newer = make_app(url, namespace)

    @newer.job(name="from.the.next.release")
    async def new(ctx: Context[Any], n: int) -> list[int]:
        return [n, ctx.attempt]

    async with newer.worker(options=FAST):
        assert await newer.handle(handle.id).result(timeout=10) == [1, 1]
    await newer.aclose()
    assert queue.counts() == {"waiting": 0, "scheduled": 0, "retries": 0, "dead": 0}


async def test_a_kind_that_nobody_knew_for_a_day_is_dead(app: StreamJobs, queue: Queue) -> None:
    parks = 6 + PARKED_FOR_MS // 60_000
    queue.add("kind", "long.gone", "body", b"\x00 not even JSON", "meta", f'{{"p":{parks}}}')

    await drain(app)

    [dead] = queue.dead()
    assert (dead["reason"], dead["kind"], dead["body"]) == (b"unknown_kind", b"long.gone", b"\x00 not even JSON")
    assert dead["attempts"] == b"0"


async def test_case_H1_a_body_is_the_same_bytes_through_every_move(app: StreamJobs, queue: Queue) -> None:
    body = b'{"a":393087288629462191,"b":9223372036854775807,"c":1e400,"d":"\\u00e4\\u0000","e":1.0, "f":[ ]}'
    runs = Flag()

    @app.job(name="refuses", retry=Retry(max_attempts=2, backoff=Fixed(0.001)))
    async def refuses(a: int, b: int, c: Any, d: str, e: float, f: list[int]) -> None:
        runs.raise_()

    queue.add("kind", "elsewhere", "body", body)
    queue.add("kind", "refuses", "body", body.replace(b"1e400", b'"1e400"'))
    await drain(app)
    parked = queue.command("HVALS", queue.keys.bodies)

    assert runs.count == 1
    assert body in parked[0]


async def test_case_H1_numbers_come_to_the_handler_as_they_were(app: StreamJobs) -> None:
    @app.job(retry=Retry(max_attempts=2, backoff=Fixed(0.001)))
    async def same(ctx: Context[Any], a: int, b: int, c: str) -> list[Any]:
        if ctx.attempt == 1:
            raise ValueError("once")
        return [a, b, c]

    async with app.worker(options=FAST):
        handle = await same.options(delay=0.01).enqueue(393087288629462191, 2**63 - 1, "1e400")
        assert await handle.result(timeout=10) == [393087288629462191, 2**63 - 1, "1e400"]


async def test_case_H4_text_and_kinds_of_any_script_go_round(app: StreamJobs, caplog: pytest.LogCaptureFixture) -> None:
    @app.job(name="größe.発送")
    async def echo(text: str) -> str:
        return text

    @app.job(name="ошибка", retry=Retry(max_attempts=1))
    async def fails(text: str) -> None:
        raise ValueError(text)

    text = "\U0001f600\x00\u202bשלום\n" + "ä" * 100_000
    async with app.worker(options=FAST):
        assert await (await echo.enqueue(text)).result(timeout=10) == text
        handle = await fails.enqueue(text[:20])
        with pytest.raises(Exception, match="exhausted"):
            await handle.result(timeout=10)

    assert any("ошибка" in line for line in messages(caplog))


async def test_case_G1_after_many_jobs_nothing_is_left(app: StreamJobs, queue: Queue, note: list[Any]) -> None:
    plain, keyed = app.kind("note").options(result_ttl=0), app.kind("note").options(result_ttl=0, dedupe_key="k")
    await app.enqueue_many([plain.call(n) for n in range(3000)] + [keyed.call(1)])
    await app.enqueue_many(app.kind("note").options(result_ttl=0, delay=0.01).call(n) for n in range(300))

    await asyncio.gather(drain(app, concurrency=100), drain(app, concurrency=100))
    # A burst does not wait for what is scheduled.
    while queue.counts()["scheduled"]:
        await drain(app)
    await drain(app)

    assert len(note) == 3301
    assert (queue.length(), queue.pending(), queue.totals()["done"]) == (0, [], 3301)
    assert kinds_of_keys(queue) <= {
        "stream",
        "ids",
        "config",
        "totals",
        "workers",
        "metrics",
        "producer",
        "queues",
        "promoter",
    }


def kinds_of_keys(queue: Queue) -> set[str | None]:
    """Return what the keys of the namespace are; None stands for one that is not documented."""
    cursor, found = b"0", set()
    while True:
        cursor, keys = queue.command("SCAN", cursor, "MATCH", f"{queue.keys.namespace}:*", "COUNT", 1000)
        found |= {describe(key.decode()) for key in keys}
        if cursor == b"0":
            return found


async def test_case_G2_what_was_enqueued_before_the_first_worker_runs(
    app: StreamJobs, queue: Queue, note: list[Any]
) -> None:
    await app.enqueue_many(app.kind("note").call(n) for n in range(100))

    await drain(app)

    assert sorted(n for n, _ in note) == list(range(100))


async def test_case_E1_a_dedupe_key_is_free_as_soon_as_its_job_has_ended(app: StreamJobs, queue: Queue) -> None:
    @app.job(retry=Retry(max_attempts=1))
    async def once(fail: bool) -> None:
        if fail:
            raise ValueError("no")

    keyed = once.options(dedupe_key="user:42")
    ids = set()
    async with app.worker(options=FAST):
        for fail in (False, True, False):
            handle = await keyed.enqueue(fail)
            ids.add(handle.id)
            assert not handle.duplicate
            await asyncio.gather(handle.result(timeout=10), return_exceptions=True)

    assert len(ids) == 3
    assert queue.command("EXISTS", queue.keys.dedupe("user:42")) == 0


async def test_case_E10_a_duplicate_of_a_running_job_is_that_job(app: StreamJobs) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    @app.job
    async def waits() -> str:
        started.set()
        await go_on.wait()
        return "done"

    keyed = waits.options(dedupe_key="k")
    async with app.worker(options=FAST):
        first = await keyed.enqueue()
        await started.wait()
        second = await keyed.enqueue()
        assert (second.id, second.duplicate, (await second.status()).state) == (first.id, True, State.RUNNING)
        go_on.set()

        assert await second.result(timeout=10) == await first.result(timeout=10) == "done"
