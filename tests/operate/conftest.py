"""The store of the scripts' tests, seen by operators."""

from collections.abc import Iterator

import pytest

from tests.store.support import Store


@pytest.fixture
def store(url: str, namespace: str) -> Iterator[Store]:
    """One queue on each backend in turn."""
    store = Store(url, namespace)
    yield store
    store.close()
