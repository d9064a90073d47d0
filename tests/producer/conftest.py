"""An app with one kind on each backend, and a look at what its queue holds."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from streamjobs import StreamJobs
from tests.producer.support import Gate, MakeApp, Queue, make_app


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
def apps(namespace: str) -> Iterator[MakeApp]:
    """Makes apps, and closes them."""
    made: list[StreamJobs] = []

    def make(url: str, **options: Any) -> StreamJobs:
        made.append(make_app(url, namespace, **options))
        return made[-1]

    yield make
    for app in made:
        app.close()


@pytest.fixture
def gate(failpoint: Any) -> Iterator[Gate]:
    """A gate before whatever is sent in this test."""
    gate = Gate()
    failpoint("producer.before_send", gate)
    yield gate
    gate.open()
