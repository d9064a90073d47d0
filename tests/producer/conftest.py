"""An app with one kind on each backend, and a look at what its queue holds."""

from collections.abc import AsyncIterator, Iterator

import pytest

from streamjobs import StreamJobs
from tests.producer.support import Queue, make_app


@pytest.fixture
async def app(url: str, namespace: str) -> AsyncIterator[StreamJobs]:
    app = make_app(url, namespace)
    yield app
    await app.aclose()


@pytest.fixture
def queue(request: pytest.FixtureRequest, backend_url: str, namespace: str) -> Iterator[Queue]:
    """What the backend holds, seen without the app under test."""
    queue = Queue(backend_url, namespace)
    yield queue
    queue.close()
