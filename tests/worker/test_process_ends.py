"""The ends of processes for handlers: killed where they must end, and their death hurts nobody but their own job."""

import asyncio
import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest

from streamjobs import JobFailed, StreamJobs
from streamjobs.kind import Kind
from streamjobs.worker import pool
from tests.worker import in_process
from tests.worker.processes import alive, lines, until
from tests.worker.support import FAST, WITHIN_S, Queue, messages

pytestmark = pytest.mark.slow


async def test_case_I9_at_its_deadline_it_is_killed_with_what_it_has_started(
    processes: StreamJobs, queue: Queue, file: str
) -> None:
    async with processes.worker(options=FAST, pool=1):
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

    assert took < 0.5 + 1
    assert queue.totals()["retried"] == 1
    assert not alive(its_child)


async def test_one_that_is_killed_from_outside_is_retried_and_no_other_is_hurt(
    processes: StreamJobs, queue: Queue, file: str
) -> None:
    async with processes.worker(options=FAST, pool=2):
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
    processes: StreamJobs, queue: Queue, file: str
) -> None:
    async with processes.worker(options=FAST, pool=2):
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
    ],
)
async def test_however_a_process_ends_its_job_is_not_stuck(
    processes: StreamJobs, kind: object, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with processes.worker(options=FAST):
        handle = await kind.enqueue()  # type: ignore[attr-defined]
        await until(lambda: any(text in message for message in messages(caplog)))
        await handle.cancel()


async def test_what_it_has_forked_does_not_hide_its_end(
    processes: StreamJobs, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    try:
        async with processes.worker(options=FAST):
            handle = await in_process.forks.enqueue(file)
            await until(lambda: any("exit code 4" in message for message in messages(caplog)))
            await handle.cancel()
    finally:
        os.kill(int(lines(file)[0]), signal.SIGKILL)


async def test_a_stop_kills_what_outlives_the_grace_time_and_gives_it_back(
    processes: StreamJobs, queue: Queue, file: str
) -> None:
    async with processes.worker(options=FAST, grace=0.2):
        await in_process.waits.enqueue(file)
        await until(lambda: lines(file))

    assert not alive(int(lines(file)[0]))
    assert queue.totals().get("retried", 0) == 0
    # Uncharged, and another worker starts it at once.
    async with processes.worker(options=FAST):
        await until(lambda: queue.totals().get("done") == 1)


async def test_a_lost_lease_kills(processes: StreamJobs, queue: Queue, file: str) -> None:
    async with processes.worker(options=FAST):
        handle = await in_process.waits.enqueue(file)
        await until(lambda: lines(file))
        [claim] = queue.steal()
        await until(lambda: not alive(int(lines(file)[0])))

        assert (await handle.status()).worker == "thief"
        assert queue.pending()[0][0] == claim.entry
        assert await handle.cancel()


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

    # Far less than it would take by itself.
    assert monotonic() - began < 5


async def test_one_that_died_while_it_was_idle_is_nobodys_fault(processes: StreamJobs, queue: Queue) -> None:
    async with processes.worker(options=FAST, pool=1):
        for _ in range(3):
            pid = await (await in_process.pid.enqueue()).result(timeout=WITHIN_S)
            os.kill(pid, signal.SIGKILL)
        await (await in_process.pid.enqueue()).result(timeout=WITHIN_S)

    assert queue.totals().get("retried", 0) == 0


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


async def test_a_signal_that_is_meant_for_the_worker_ends_no_job(processes: StreamJobs, queue: Queue) -> None:
    """As a service manager sends it to every process of a service."""
    async with processes.worker(options=FAST, pool=1):
        pid = await (await in_process.pid.enqueue()).result(timeout=WITHIN_S)
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(pid, number)
        assert await (await in_process.pid.enqueue()).result(timeout=WITHIN_S) == pid
