"""Handlers in processes: killed where they must end, and nobody but their own job is hurt by what they do."""

import asyncio
import importlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from time import monotonic

import pytest

from streamjobs import InvalidOption, JobCancelled, JobFailed, Retry, StreamJobs
from streamjobs.kind import Kind
from streamjobs.worker import pool
from tests.worker import in_process
from tests.worker.support import FAST, WITHIN_S, Queue, make_app, messages, pause


@pytest.fixture
async def app(server_url: str, namespace: str) -> AsyncIterator[StreamJobs]:
    in_process.app.use(server_url, namespace=namespace)
    yield in_process.app
    await in_process.app.aclose()


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "notes")


async def until(true: Callable[[], object]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(WITHIN_S):
        while not true():
            await pause(0.01)


def lines(file: str) -> list[str]:
    return Path(file).read_text().split() if Path(file).exists() else []


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_runs_in_other_processes_which_are_reused(app: StreamJobs) -> None:
    async with app.worker(options=FAST, pool=2):
        handles = [await in_process.pid.enqueue() for _ in range(20)]
        pids = {await handle.result(timeout=WITHIN_S) for handle in handles}

    assert os.getpid() not in pids
    assert len(pids) <= 2
    assert not any(map(alive, pids))


async def test_arguments_and_results_are_of_their_types(app: StreamJobs) -> None:
    when = datetime(2030, 1, 1, tzinfo=UTC)
    async with app.worker(options=FAST):
        handle = await in_process.add.enqueue(when, Decimal("1.10"), days=2)
        assert await handle.result(timeout=WITHIN_S) == (datetime(2030, 1, 3, tzinfo=UTC), Decimal("2.20"))


async def test_a_result_that_is_too_large_makes_the_job_dead_one_that_is_not_kept_never(
    app: StreamJobs, queue: Queue
) -> None:
    async with app.worker(options=FAST):
        assert len(await (await in_process.large.enqueue(200_000)).result(timeout=WITHIN_S)) == 200_000
        with pytest.raises(JobFailed, match="the result cannot be kept: what was returned: 300002 bytes") as caught:
            await (await in_process.large.enqueue(300_000)).result(timeout=WITHIN_S)
        await in_process.unkept.enqueue()
        await until(lambda: queue.totals().get("done") == 2)

    assert caught.value.reason == "permanent"
    assert b'"k":"bug"' in queue.dead()[0]["history"]


async def test_the_context_knows_its_run(app: StreamJobs) -> None:
    async with app.worker(options=FAST):
        handle = await in_process.look.options(headers={"a": "b"}).enqueue(7)
        seen = await handle.result(timeout=WITHIN_S)

    kind = "tests.worker.in_process.look"
    assert seen == [handle.id, kind, "q", 1, 8, 1, {"a": "b"}, None, handle.id, 7]


@pytest.mark.parametrize(
    ("how", "reason", "text", "errors"),
    [
        ("strange", "exhausted", "Strange: what is this", "ours"),
        ("permanent", "permanent", "Permanent: never", "other"),
        ("exit", "exhausted", "SystemExit: 3", "other"),
        ("wrong", "exhausted", "a wrong delay", "bug"),
        ("lost", "exhausted", "ValueError", "validation"),
    ],
)
async def test_what_it_raises_is_judged_where_it_is(
    app: StreamJobs, queue: Queue, how: str, reason: str, text: str, errors: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with app.worker(options=FAST):
        with pytest.raises(JobFailed, match=text) as caught:
            await (await in_process.fails.enqueue(how)).result(timeout=WITHIN_S)

    assert caught.value.reason == reason
    assert f'"k":"{errors}"'.encode() in queue.dead()[0]["history"]
    # With the traceback, as it was there.
    assert "in_process.py" in caplog.text


async def test_it_can_steer_its_job(app: StreamJobs, queue: Queue, file: str) -> None:
    async with app.worker(options=FAST):
        assert await (await in_process.snoozes.enqueue(file)).result(timeout=WITHIN_S) == 1
        with pytest.raises(JobCancelled):
            await (await in_process.fails.enqueue("cancel")).result(timeout=WITHIN_S)
        await in_process.fails.enqueue("limited")
        await until(lambda: queue.totals().get("snoozed", 0) >= 3)


async def test_what_it_prints_and_logs_is_the_workers(
    app: StreamJobs, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async with app.worker(options=FAST):
        handle = await in_process.talks.enqueue()
        await handle.result(timeout=WITHIN_S)

    said = [
        record for record in caplog.records if record.name in ("a.library", f"streamjobs.job.{in_process.talks.name}")
    ]
    assert [record.getMessage() for record in said] == ["from a library", "from the job"]
    assert {record.__dict__["job_id"] for record in said} == {handle.id}
    out, err = capfd.readouterr()
    assert "to stdout" in err
    assert "to stderr" in err
    assert not out


async def test_effects_are_guarded_and_jobs_sent_where_the_worker_works(app: StreamJobs, file: str) -> None:
    async with app.worker(options=FAST):
        assert await (await in_process.guarded.enqueue(file)).result(timeout=WITHIN_S)
        assert not await (await in_process.guarded.enqueue(file)).result(timeout=WITHIN_S)
        sent = await (await in_process.sends.enqueue()).result(timeout=WITHIN_S)
        assert await app.handle(sent).result(timeout=WITHIN_S)

    assert lines(file) == ["had"]


async def test_case_I9_at_its_deadline_it_is_killed_with_what_it_has_started(
    app: StreamJobs, queue: Queue, file: str
) -> None:
    async with app.worker(options=FAST, pool=1):
        # So that its deadline is all that is waited for.
        await (await in_process.pid.enqueue()).result(timeout=WITHIN_S)
        handle = await in_process.hangs.enqueue(file)
        await until(lambda: lines(file))
        started = monotonic()
        pid, its_child = map(int, lines(file))
        assert alive(its_child)
        await until(lambda: not alive(pid))
        took = monotonic() - started
        assert await handle.result(timeout=WITHIN_S) != pid

    assert 0.3 < took < 0.5 + 1
    assert queue.totals()["retried"] == 1
    assert not alive(its_child)


async def test_one_that_is_killed_from_outside_is_retried_and_no_other_is_hurt(
    app: StreamJobs, queue: Queue, file: str
) -> None:
    async with app.worker(options=FAST, pool=2):
        victim = await in_process.waits.enqueue(file)
        await until(lambda: lines(file))
        sibling = await in_process.waits.options(queue="q").enqueue(file + "2")
        await until(lambda: lines(file + "2"))
        [pid] = map(int, lines(file))
        os.kill(pid, signal.SIGKILL)
        assert await victim.result(timeout=WITHIN_S) != pid
        assert (await sibling.status()).attempt == 1
        os.kill(int(lines(file + "2")[0]), signal.SIGKILL)
        await sibling.result(timeout=WITHIN_S)

    assert queue.totals()["retried"] == 2


async def test_a_poison_job_is_dead_after_three_crashes_and_delays_nobody(
    app: StreamJobs, queue: Queue, file: str
) -> None:
    async with app.worker(options=FAST, pool=2):
        poison = await in_process.poison.enqueue(file)
        others = [await in_process.pid.enqueue() for _ in range(10)]
        others.append(await in_process.in_the_loop.enqueue())
        with pytest.raises(JobFailed, match="its process ended with exit code 3") as caught:
            await poison.result(timeout=WITHIN_S)
        for other in others:
            await other.result(timeout=WITHIN_S)
            assert (await other.status()).attempt <= 1

    # Also where a failure would have been its last.
    assert (caught.value.reason, lines(file)) == ("crash_limit", ["1", "2", "3"])
    [dead] = queue.dead()
    assert (dead["attempts"], dead["history"].count(b'"k":"crash"')) == (b"3", 3)
    assert queue.totals()["retried"] == 2


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (in_process.segfault, "its process was killed by SIGSEGV"),
        (in_process.cuts_its_line, "its process ended with exit code 1"),
        (in_process.forks, "its process ended with exit code 4"),
    ],
)
async def test_however_a_process_ends_its_job_is_not_stuck(
    app: StreamJobs, kind: object, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with app.worker(options=FAST):
        handle = await kind.enqueue()  # type: ignore[attr-defined]
        await until(lambda: any(text in message for message in messages(caplog)))
        await handle.cancel()


async def test_a_process_is_replaced_after_so_many_jobs(app: StreamJobs) -> None:
    async with app.worker(options=FAST, pool=1, max_jobs_per_process=2):
        pids = [await (await in_process.pid.enqueue()).result(timeout=WITHIN_S) for _ in range(4)]
        await until(lambda: not alive(pids[0]))

    assert pids[0] == pids[1] != pids[2] == pids[3]


async def test_a_process_that_holds_too_much_is_replaced(app: StreamJobs) -> None:
    async with app.worker(options=FAST, pool=1, max_process_bytes=200_000_000):
        grown = [await (await in_process.grows.enqueue(n)).result(timeout=WITHIN_S) for n in (1, 300_000_000, 1)]

    assert grown[0] == grown[1] != grown[2]


async def test_a_process_whose_threads_do_not_end_is_replaced_all_the_same(app: StreamJobs) -> None:
    async with app.worker(options=FAST, pool=1, max_jobs_per_process=1):
        pid = await (await in_process.stays.enqueue()).result(timeout=WITHIN_S)
        await until(lambda: not alive(pid))


async def test_a_stop_kills_what_outlives_the_grace_time_and_gives_it_back(
    app: StreamJobs, queue: Queue, file: str
) -> None:
    async with app.worker(options=FAST, grace=0.2):
        await in_process.waits.enqueue(file)
        await until(lambda: lines(file))

    assert not alive(int(lines(file)[0]))
    assert queue.totals().get("retried", 0) == 0
    # Uncharged, and another worker starts it at once.
    async with app.worker(options=FAST):
        await until(lambda: queue.totals().get("done") == 1)


async def test_a_lost_lease_kills(app: StreamJobs, queue: Queue, file: str) -> None:
    async with app.worker(options=FAST):
        handle = await in_process.waits.enqueue(file)
        await until(lambda: lines(file))
        [claim] = queue.steal()
        await until(lambda: not alive(int(lines(file)[0])))

        assert (await handle.status()).worker == "thief"
        assert queue.pending()[0][0] == claim.entry
        assert await handle.cancel()


async def test_jobs_that_find_no_free_process_are_left_to_others_and_hold_up_no_other_queue(
    app: StreamJobs, queue: Queue, file: str
) -> None:
    async with app.worker(["q", "other"], options=FAST, pool=1):
        blocking = await in_process.waits.enqueue(file)
        await until(lambda: lines(file))
        waiting = [await in_process.pid.enqueue() for _ in range(30)]
        async with app.worker(["q"], options=FAST, pool=1):
            here = {await handle.result(timeout=WITHIN_S) for handle in waiting}
        await (await in_process.in_the_loop.options(queue="other").enqueue()).result(timeout=WITHIN_S)
        assert len(here) == 1
        os.kill(int(lines(file)[0]), signal.SIGKILL)
        await blocking.result(timeout=WITHIN_S)


async def test_what_returns_an_awaitable_fails(app: StreamJobs) -> None:
    async with app.worker(options=FAST):
        with pytest.raises(JobFailed, match="something to be awaited"):
            await (await in_process.awaitable.enqueue()).result(timeout=WITHIN_S)


async def test_one_that_its_module_does_not_register_fails_with_the_reason(server_url: str, namespace: str) -> None:
    app = make_app(server_url, namespace)

    @app.job(name="hidden", process=True, retry=Retry(max_attempts=1))
    def hidden() -> None: ...

    async with app.worker(options=FAST):
        with pytest.raises(JobFailed, match="does not register it") as caught:
            await (await hidden.enqueue()).result(timeout=WITHIN_S)
    await app.aclose()

    assert caught.value.reason == "exhausted"


async def test_what_cannot_work_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch, namespace: str) -> None:
    def plain() -> None: ...

    async def works() -> None: ...

    app = make_app("memory://", namespace)
    with pytest.raises(InvalidOption, match="this one is async"):
        app.job(process=True)(works)
    app.job(process=True)(plain)
    with pytest.raises(InvalidOption, match="memory:// is seen by one process alone"):
        await app.make_worker(options=FAST).run()
    app.use("redis://localhost:1/0")
    monkeypatch.setattr(plain, "__module__", "__main__")
    with pytest.raises(InvalidOption, match="in a module of its own"):
        await app.make_worker(options=FAST).run()


async def test_when_its_worker_is_killed_it_ends_at_once(server_url: str, namespace: str, file: str) -> None:
    """A busy one too, that holds the interpreter's lock."""
    app = in_process.app
    app.use(server_url, namespace=namespace)
    await in_process.hangs.enqueue(file)
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "streamjobs", "worker", "-A", "tests.worker.in_process:app"),
        *("--url", server_url, "--namespace", namespace, "--pool", "1"),
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        await until(lambda: lines(file))
        os.kill(worker.pid, signal.SIGKILL)
        began = monotonic()
        await until(lambda: not alive(int(lines(file)[0])))
    finally:
        with suppress(ProcessLookupError):
            worker.kill()
        await worker.wait()
        await app.aclose()

    assert monotonic() - began < 0.3


async def test_one_that_died_while_it_was_idle_is_nobodys_fault(app: StreamJobs, queue: Queue) -> None:
    async with app.worker(options=FAST, pool=1):
        for _ in range(3):
            pid = await (await in_process.pid.enqueue()).result(timeout=WITHIN_S)
            os.kill(pid, signal.SIGKILL)
        await (await in_process.pid.enqueue()).result(timeout=WITHIN_S)

    assert queue.totals().get("retried", 0) == 0


async def test_what_was_claimed_beyond_the_processes_is_given_back_once(app: StreamJobs, queue: Queue) -> None:
    handles = [await in_process.pid.enqueue() for _ in range(40)]
    async with app.worker(options=FAST, concurrency=10, pool=2):
        for handle in handles:
            await handle.result(timeout=WITHIN_S)

    assert queue.totals()["released"] <= 8
    assert queue.totals()["done"] == 40


@pytest.fixture
def module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, namespace: str
) -> Iterator[Callable[[str], Kind[[], None]]]:
    """A kind whose module does this when a process imports it."""
    name = f"module_{namespace}"

    def make(what: str) -> Kind[[], None]:
        (tmp_path / f"{name}.py").write_text(
            "import os, threading\n"
            "from streamjobs import Retry\n"
            "from tests.worker.support import make_app\n"
            f"if os.getpid() != {os.getpid()}:\n"
            f"    {what}\n"
            "app = make_app('redis://localhost:1/0', 'nowhere')\n"
            "@app.job(name='made', process=True, retry=Retry(max_attempts=1))\n"
            "def made() -> None: pass\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        kind: Kind[[], None] = importlib.import_module(name).made
        return kind

    yield make
    sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("raise ValueError('not today')", "importing module_.* failed in its process: ValueError: not today"),
        ("os._exit(5)", "its process ended with exit code 5 before it ran anything"),
        ("threading.Event().wait(60)", "its process was not ready within 0.5 s"),
    ],
)
async def test_a_module_that_cannot_be_imported_in_a_process_fails_its_jobs(
    server_url: str,
    namespace: str,
    queue: Queue,
    module: Callable[[str], Kind[[], None]],
    what: str,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if "wait" in what:
        monkeypatch.setattr(pool, "READY_WITHIN_S", 0.5)
    kind = module(what)
    app = sys.modules[f"module_{namespace}"].app
    app.use(server_url, namespace=namespace)
    async with app.worker(options=FAST):
        with pytest.raises(JobFailed, match=text):
            await (await kind.enqueue()).result(timeout=WITHIN_S)
    await app.aclose()


async def test_a_stop_while_a_process_starts_leaves_nothing(
    server_url: str, namespace: str, queue: Queue, module: Callable[[str], Kind[[], None]], tmp_path: Path
) -> None:
    notes = str(tmp_path / "notes")
    kind = module(f"open({notes!r}, 'w').write(str(os.getpid())); threading.Event().wait(60)")
    app = sys.modules[f"module_{namespace}"].app
    app.use(server_url, namespace=namespace)
    async with app.worker(options=FAST, grace=0.1):
        handle = await kind.enqueue()
        await until(lambda: lines(notes))
    assert not alive(int(lines(notes)[0]))
    assert (await handle.status()).attempt == 1
    await handle.cancel()
    await app.aclose()
