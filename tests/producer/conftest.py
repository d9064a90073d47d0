"""An app with one kind on each backend, and a look at what its queue holds."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

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


@pytest.fixture
def failpoint() -> Iterator[Any]:
    """Arms failpoints, and disarms them after the test."""
    from streamjobs.core import failpoints

    names: list[str] = []

    def arm(name: str, action: Any) -> None:
        names.append(name)
        failpoints.arm(name, action)

    yield arm
    for name in names:
        failpoints.arm(name, None)
