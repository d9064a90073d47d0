"""A field for each scenario: on the test process's own server, or on one that the scenario may harm."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults import server_faults
from tests.faults.field import Field
from tests.faults.proxy import Proxy
from tests.servers import Server

SEED = int(os.environ.get("STREAMJOBS_TEST_SEED") or random.SystemRandom().randrange(10**6))
HERE = Path(__file__).parent
LONG = ("case_A3", "every_minute_of_the_servers_clock", "case_B10", "C9_a_rate_limited_job", "every_minute_beside_60")
"""Parts of the names of those that take long: begun last they would keep one process busy while the other rests."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every scenario, so that only who asks for faults gets them; begin with the long ones."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.faults)
    items.sort(key=lambda item: not any(part in item.name for part in LONG))


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Callable[[Path], Server]]:
    """The server of all scenarios that leave it as it was: one per test process, empty for each."""
    running: list[Server] = []

    def get(binary: Path) -> Server:
        if not running:
            running.append(Server(binary, args=server_faults.ARGS).start())
        return running[0]

    yield get
    for server in running:
        server.close()


@pytest.fixture
def backend_url(shared_server: Callable[[Path], Server], server_binary: Path) -> None:
    """Start the shared server before the checks for what a test leaves behind look around."""
    shared_server(server_binary)


@pytest.fixture
def server_args() -> tuple[str, ...]:
    """What a scenario's server is started with; scenarios that need more say so by parametrizing this."""
    return ()


@pytest.fixture
def server(
    shared_server: Callable[[Path], Server], server_binary: Path, server_args: tuple[str, ...]
) -> Iterator[Server]:
    """The scenario's server: of its own if it asks for arguments, which it does too when it will kill it."""
    if server_args:
        with Server(server_binary, args=(*server_faults.ARGS, *server_args)) as own:
            yield own
    else:
        server = shared_server(server_binary)
        yield server
        server_faults.flush_all(server)


@pytest.fixture
def field(server: Server, tmp_path: Path) -> Iterator[Field]:
    """The scene; its processes end with the test."""
    print(f"seed {SEED}: repeat with STREAMJOBS_TEST_SEED={SEED}")
    field = Field(server, tmp_path, SEED)
    yield field
    field.close()


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """A way to the scenario's server that can fail."""
    with Proxy(server.url) as proxy:
        yield proxy
