"""The store of the scripts' tests, seen by operators."""

from collections.abc import Iterator

import pytest

from streamjobs.protocol import intake
from tests.store.support import Store


@pytest.fixture
def store(url: str, namespace: str) -> Iterator[Store]:
    """One queue on each backend in turn."""
    store = Store(url, namespace)
    yield store
    store.close()


@pytest.fixture
def joined(store: Store) -> Store:
    """A queue that has been announced, with its group."""
    store.run(intake.announce(store.keys.namespace, ["q"]))
    store.make_group()
    return store
