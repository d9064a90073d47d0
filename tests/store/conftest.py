"""A queue on each backend in turn."""

from collections.abc import Iterator

import pytest

from tests.store.support import Store


@pytest.fixture
def store(url: str, namespace: str) -> Iterator[Store]:
    """An empty queue with its group, on fakeredis and on every real server at hand."""
    store = Store(url, namespace)
    store.make_group()
    yield store
    store.close()


@pytest.fixture
def bare(url: str, namespace: str) -> Iterator[Store]:
    """A queue of which nothing exists yet, not even the stream."""
    store = Store(url, namespace)
    yield store
    store.close()


@pytest.fixture
def real(server_url: str, namespace: str) -> Iterator[Store]:
    """An empty queue with its group, on real servers only."""
    store = Store(server_url, namespace)
    store.make_group()
    yield store
    store.close()
