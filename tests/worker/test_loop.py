"""The event loop of a worker that has a process to itself."""

import asyncio
import os
import signal
import sys

import pytest

from streamjobs import InvalidOption, MissingExtra, StreamJobs
from streamjobs.core.options import WorkerOptions
from streamjobs.worker.loop import name_of
from tests.worker import in_process
from tests.worker.groups import Start
from tests.worker.support import FAST


def loop_of_a_run(namespace: str, **changes: object) -> str:
    """Return in whose loop a handler ran."""
    app, seen = StreamJobs("memory://", namespace=namespace), []

    @app.job
    async def looks() -> None:
        seen.append(name_of(asyncio.get_running_loop()))

    looks.enqueue_sync()
    assert app.run_worker(options=FAST.changed({"burst": True, **changes})) == 0
    [name] = seen
    return name


def test_a_worker_of_its_own_process_takes_uvloop_where_it_is(namespace: str) -> None:
    pytest.importorskip("uvloop")

    assert loop_of_a_run(namespace) == "uvloop"
    assert loop_of_a_run(namespace, loop="uvloop") == "uvloop"
    assert loop_of_a_run(namespace, loop="asyncio") == "asyncio"


def test_a_worker_takes_asyncio_where_uvloop_is_not(
    namespace: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)

    with caplog.at_level("INFO", "streamjobs.worker"):
        assert loop_of_a_run(namespace) == "asyncio"

    assert "slots, in a loop of asyncio" in caplog.text
    with pytest.raises(MissingExtra, match=r"pip install 'streamjobs\[uvloop\]'"):
        loop_of_a_run(namespace, loop="uvloop")


def test_a_loop_that_there_is_not_is_refused() -> None:
    with pytest.raises(InvalidOption, match="loop='gevent': use auto, asyncio, uvloop"):
        WorkerOptions(loop="gevent")  # type: ignore[arg-type]


async def test_a_worker_in_a_program_takes_its_loop(namespace: str, caplog: pytest.LogCaptureFixture) -> None:
    app = StreamJobs("memory://", namespace=namespace)

    with caplog.at_level("INFO", "streamjobs.worker"):
        async with app.worker(["q"], FAST) as worker:
            await worker.ready.wait()
    await app.aclose()

    assert "serves q with 10 slots, in a loop of asyncio" in caplog.text


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_handlers_run_in_processes_of_a_group_of_their_own(server_url: str, namespace: str, loop: str) -> None:
    """So that a kill takes what they have started too; each loop starts them in its own way."""
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    app = in_process.app
    app.use(server_url, namespace=namespace)
    handle = app.kind("group").enqueue_sync()

    assert app.run_worker(options=FAST.changed({"burst": True, "loop": loop})) == 0

    pid, group = handle.result_sync(timeout=0)
    assert pid == group != os.getpgrp()
    app.close()


def test_children_work_and_stop_in_uvloop(start: Start) -> None:
    pytest.importorskip("uvloop")
    group = start("-w", "2", "--loop", "uvloop")
    for _ in range(2):
        group.await_line(r"serves .*, in a loop of uvloop")

    group.signal(signal.SIGTERM)

    assert group.end() == 0
