"""A server with its lab, for each file that measures."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from benchmarks.lab import Lab
from benchmarks.server import running


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """The lab of a fresh server, with its template started: no test leaves that behind."""
    with running() as url, closing(Lab(url)) as lab, lab.ready():
        yield lab
