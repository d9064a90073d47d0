"""An app and its queue on each backend, and on real servers only; and groups of worker processes there."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from streamjobs import StreamJobs
from tests.worker import in_process
from tests.worker.bench import Gate
from tests.worker.groups import Barrier, Group, Start
from tests.worker.support import Queue, make_app


@pytest.fixture
async def app(url: str, namespace: str) -> AsyncIterator[StreamJobs]:
    app = make_app(url, namespace)
    yield app
    await app.aclose()


@pytest.fixture
async def real(server_url: str, namespace: str) -> AsyncIterator[StreamJobs]:
    """As `app`, on real servers only."""
    app = make_app(server_url, namespace)
    yield app
    await app.aclose()


@pytest.fixture
async def processes(server_url: str, namespace: str) -> AsyncIterator[StreamJobs]:
    """The app whose handlers run in processes."""
    in_process.app.use(server_url, namespace=namespace)
    yield in_process.app
    await in_process.app.aclose()


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Where handlers in other processes note something."""
    return str(tmp_path / "notes")


@pytest.fixture
def queue(backend_url: str, namespace: str) -> Iterator[Queue]:
    """What the backend holds, seen without the app under test."""
    queue = Queue(backend_url, namespace)
    yield queue
    queue.close()


@pytest.fixture
async def gate(app: StreamJobs, queue: Queue) -> AsyncIterator[Gate]:
    queue.make_group()
    gate = Gate(app)
    yield gate
    gate.go_on.set()


@pytest.fixture
def barrier(tmp_path: Path) -> Iterator[Barrier]:
    barrier = Barrier(tmp_path / "barrier")
    yield barrier
    barrier.open()


@pytest.fixture
def start(server_url: str, namespace: str, barrier: Barrier) -> Iterator[Start]:
    """Start a group with these further words on its command line."""
    environment = {
        **os.environ,
        "STREAMJOBS_URL": server_url,
        "STREAMJOBS_TEST_NAMESPACE": namespace,
        "STREAMJOBS_TEST_BARRIER": str(barrier.path),
    }
    with ExitStack() as stack:

        def begin(*words: str, app: str = "tests.worker.supervised:app") -> Group:
            group = Group(environment, "-A", app, *words)
            stack.callback(group.close)
            return group

        yield begin
        # A test that failed must not wait for the grace time.
        barrier.open()


@pytest.fixture
def sender(server_url: str, namespace: str) -> Iterator[StreamJobs]:
    app = make_app(server_url, namespace)
    yield app
    app.close()
