"""An app and its queue on each backend, and on real servers only."""

from collections.abc import AsyncIterator, Iterator

import pytest

from streamjobs import StreamJobs
from tests.worker.bench import Gate
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
