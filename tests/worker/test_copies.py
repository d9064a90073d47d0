"""A handler that forks: its copy ends where the handler does, and does nothing of the worker's work."""

import os
import subprocess
import sys

import pytest

from streamjobs import StreamJobs
from tests.worker import in_process
from tests.worker.processes import lines
from tests.worker.support import FAST, ROOT, WITHIN_S, Queue


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_copy_of_a_worker_runs_no_jobs(queue: Queue, server_url: str, file: str, kind: str) -> None:
    words = [server_url, queue.keys.namespace, file, kind]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.worker.copies", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONDEVMODE": "", "PYTHONWARNINGS": "ignore"},
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("a process that a handler forked ends where the handler does") == 1
    assert sorted(int(line.split(":")[0]) for line in lines(file)) == list(range(20))
    assert len({line.split(":")[1] for line in lines(file)}) == 1
    assert queue.totals()["done"] == 21


async def test_a_copy_of_a_process_reports_nothing(processes: StreamJobs, queue: Queue) -> None:
    async with processes.worker(options=FAST, pool=1):
        first = await in_process.comes_back.enqueue()
        others = [await in_process.mirror.enqueue(n) for n in range(5)]
        assert await first.result(timeout=WITHIN_S) == "parent"
        assert [await one.result(timeout=WITHIN_S) for one in others] == list(range(5))

    assert queue.totals()["done"] == 6


async def test_words_that_nobody_understands_are_a_crash(processes: StreamJobs) -> None:
    async with processes.worker(options=FAST, pool=1):
        handle = await in_process.speaks_over_it.enqueue()
        assert await handle.result(timeout=WITHIN_S) == 2
