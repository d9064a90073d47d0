"""Pre-fork servers: an app that was used before the fork works in the parent and in each child."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.producer.forking import MANY, WAYS
from tests.producer.support import Queue

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
@pytest.mark.parametrize("way", WAYS)
def test_a_fork_enqueues_each_job_once(server_url: str, namespace: str, queue: Queue, way: str) -> None:
    """Two processes that sent under one producer id would lose jobs, or take each other's replies."""
    children = 2
    # The parent's loop has ended without closing its connections, as that of a pre-fork server does.
    python = [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning"]

    ran = subprocess.run(
        [*python, "-m", "tests.producer.forking", server_url, namespace, way, str(children)],
        cwd=ROOT, capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONDEVMODE": ""},
    )  # fmt: skip

    assert (ran.returncode, ran.stderr) == (0, "")
    told = ran.stdout.split()
    assert len(told) == MANY * (children + 2)
    assert sorted(told) == sorted(f"q:{one}" for one in queue.waiting())
    assert len(set(queue.bodies())) == len(told)
    assert len(queue.producers()) >= children + 1
