"""Bad input by enqueue and by XADD: refused with nothing done, or dead with its bytes, and nothing else is harmed."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamjobs import Fixed, JobOptions, RateLimited, Retry, Snooze, StreamJobs, UsageError
from tests.security.corpus import BODIES, FIELDS, KINDS, METAS, NAMES, VALUES
from tests.worker.support import Queue, drain, make_app, messages


@pytest.fixture
async def app(url: str, namespace: str) -> AsyncIterator[StreamJobs]:
    app = make_app(url, namespace, defaults=JobOptions(queue="q"))
    app.job(name="echo")(echo)
    yield app
    await app.aclose()


@pytest.fixture
def queue(url: str, namespace: str) -> Iterator[Queue]:
    queue = Queue(url, namespace)
    yield queue
    queue.close()


async def echo(value: Any = None) -> None: ...


async def refused(app: StreamJobs, **call: Any) -> bool:
    """Enqueue; say whether it was refused. Any other error than ours comes through."""
    send: Any = app.send
    try:
        await send(**{"kind": "echo", **call})
    except UsageError as error:
        said = str(error)
    else:
        return False
    assert "\n" not in said
    assert len(said) < 1000
    return True


# By enqueue.

ACCEPTED = {"2^63", "2^64", "4201 digits", "NUL", "steering", "markup", "bytes", "a set", "names that are no texts"}
"""Values that JSON has a form for."""


async def test_values_are_refused_or_arrive(app: StreamJobs, queue: Queue) -> None:
    arrived = {name for name, value in VALUES.items() if not await refused(app, arguments={"value": value})}

    assert arrived == ACCEPTED
    assert queue.length() == len(arrived)
    await drain(app)
    assert queue.counts() == {"waiting": 0, "scheduled": 0, "retries": 0, "dead": 0}


@pytest.mark.parametrize("arguments", [[1], 1, "x", {1: 2}, {"\ud800": 1}, {"other": 1}, {"value": 1, "more": 2}])
async def test_arguments_that_do_not_fit_are_refused(app: StreamJobs, queue: Queue, arguments: Any) -> None:
    assert await refused(app, arguments=arguments)
    assert queue.length() == 0


async def test_case_H8_names_of_queues_are_refused(app: StreamJobs, queue: Queue) -> None:
    for name in NAMES:
        assert await refused(app, queue=name), name
        with pytest.raises(UsageError):
            app.queue(name)
        with pytest.raises(UsageError):
            StreamJobs("memory://", namespace=name)
        with pytest.raises(UsageError):
            app.handle(f"{name}:1-1")
    assert queue.length() == 0


async def test_kinds_are_refused_or_wait_for_who_knows_them(app: StreamJobs, queue: Queue) -> None:
    taken = [kind for kind in KINDS if not await refused(app, kind=kind)]

    assert taken == [kind for kind in KINDS if kind.isprintable() and " " not in kind and len(kind.encode()) <= 200]
    await drain(app)
    assert queue.counts()["scheduled"] == len(taken) > 3


OPTIONS: list[dict[str, Any]] = [
    *({"delay": delay} for delay in (-1, float("nan"), float("inf"), 1e308, "5", True, 10**400)),
    *({"expires": expires} for expires in (-1, float("nan"), "soon")),
    *({"dedupe_key": key} for key in ("", "\ud800", "k" * 257, 5, b"k")),
    *({"headers": headers} for headers in ([], {"a": 1}, {"\ud800": "x"}, {"a": "x" * 5000}, "x")),
    *({"result_ttl": ttl} for ttl in (-1, 10**9, "1")),
    {"dedupe": "done"},
    {"no_such": 1},
]


async def test_options_are_refused(app: StreamJobs, queue: Queue) -> None:
    for options in OPTIONS:
        assert await refused(app, **options), options
    assert queue.length() == 0


async def test_one_bad_item_of_many_harms_no_other(app: StreamJobs, queue: Queue) -> None:
    kind = app.kind("echo")
    good = [kind.call(n) for n in range(3)]

    with pytest.raises(UsageError):
        kind.call(float("nan"))
    await app.enqueue_many(good)

    assert queue.length() == 3


# By XADD, into a worker.


async def contained(app: StreamJobs, queue: Queue, entries: int) -> dict[str, int]:
    """Let a worker work beside bad entries; check that nothing is lost or held up; return where all is."""
    await app.kind("echo").enqueue("good")
    await drain(app)
    counts = queue.counts()
    totals = queue.totals()
    assert counts["waiting"] == 0
    assert queue.pending() == []
    assert totals["done"] >= 1
    assert totals["done"] - 1 + counts["dead"] + counts["scheduled"] + totals.get("cancelled", 0) == entries
    return counts


RUN = {
    *("4300 digits", "a name twice", "NUL", "2^53+1", "2^64", "-0", "1.0", "at the limit", "steering", "markup"),
}
"""Bodies that are JSON objects which fit the handler."""


async def test_case_C7_bodies_are_run_or_dead_with_their_bytes(app: StreamJobs, queue: Queue) -> None:
    for body in BODIES.values():
        queue.add("kind", "echo", "body", body)

    await contained(app, queue, len(BODIES))

    dead = queue.dead()
    assert {row["reason"] for row in dead} == {b"undecodable"}
    assert max(len(row["error"]) for row in dead) < 1000
    assert sorted(row["body"] for row in dead) == sorted(body for name, body in BODIES.items() if name not in RUN)


async def fails() -> None:
    raise ValueError("on purpose")


async def is_limited() -> None:
    raise RateLimited("on purpose", after=3600)


async def puts_itself_off() -> None:
    raise Snooze(3600)


@pytest.mark.parametrize("kind", ["echo", "fails", "is_limited", "puts_itself_off", "nobody"])
async def test_case_C7_metas_do_no_harm(app: StreamJobs, queue: Queue, kind: str) -> None:
    app.job(name="fails", retry=Retry(max_attempts=2, backoff=Fixed(0.001)))(fails)
    app.job(name="is_limited")(is_limited)
    app.job(name="puts_itself_off")(puts_itself_off)
    for meta in METAS.values():
        queue.add("kind", kind, "body", "{}", "meta", meta)

    await contained(app, queue, len(METAS))


async def test_case_C7_fields_do_no_harm(app: StreamJobs, queue: Queue) -> None:
    for fields in FIELDS.values():
        queue.add(*fields)

    await contained(app, queue, len(FIELDS))


async def test_kinds_of_others_do_no_harm_and_forge_no_line_of_the_log(
    app: StreamJobs, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    for kind in KINDS:
        queue.add("kind", kind, "body", "{}")

    assert (await contained(app, queue, len(KINDS)))["scheduled"] == len(KINDS)
    assert not messages(caplog, "ERROR")


async def test_an_entry_of_16_MB_is_dead_and_holds_nothing_up(app: StreamJobs, queue: Queue) -> None:
    queue.add("kind", "echo", "body", b'{"value":"' + b"x" * (16 << 20) + b'"}')

    assert (await contained(app, queue, 1))["dead"] == 1
    queue.command("DEL", queue.keys.dead)


# Threat T2: a name leads to nothing but what was registered.

DOTTED = st.sampled_from(
    "os.system subprocess.run antigravity.geohash this.s turtledemo.main idlelib.run ctypes.CDLL __main__.app"
    " builtins.exec streamjobs.app.StreamJobs tests.security.test_bad_input.echo echo.__globals__ .echo"
    " echo. ..echo echo:echo importlib.import_module __import__('os').system lambda:0 {echo} %(echo)s".split()
)


@given(kinds=st.lists(DOTTED | st.from_regex(r"[a-z_]{1,8}(\.[a-z_]{1,8}){1,4}", fullmatch=True), max_size=8))
@settings(max_examples=20)
def test_threat_T2_no_kind_is_ever_imported_or_called(kinds: list[str]) -> None:
    # What the first worker of a process loads has nothing to do with kinds.
    asyncio.run(_run([]))
    loaded = set(sys.modules)

    assert asyncio.run(_run(kinds)) == []
    assert set(sys.modules) - loaded <= {"encodings.idna", "stringprep"}


async def _run(kinds: list[str]) -> list[Any]:
    """Let a worker meet jobs of these kinds; return what handlers saw."""
    app = make_app("memory://kinds", "t2", defaults=JobOptions(queue="q"))
    seen: list[Any] = []
    app.job(name="echo")(lambda value=None: seen.append(value))
    queue = Queue("memory://kinds", "t2")
    for kind in kinds:
        queue.add("kind", kind, "body", '{"value":1}')
    await drain(app)
    assert queue.counts()["scheduled"] == len(kinds)
    queue.command("FLUSHALL")
    queue.close()
    await app.aclose()
    return seen
