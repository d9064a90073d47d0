"""What all tests share: real servers, a namespace for each test, and checks for what a test leaves behind."""

import multiprocessing.resource_tracker
import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from streamjobs.core import failpoints
from tests.leaks import check_keys
from tests.servers import Server, find_servers

BINARIES = find_servers()
TESTS = Path(__file__).parent
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts tests in the background has them ignore it, and with them whatever they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
APART = ("security", "bench")
"""Folders whose tests `make slow` runs."""
AGAIN = ("worker", "cli", "producer", "operate")
"""Folders whose tests take long on fakeredis. Where there is a real server, they run there each time, and on
fakeredis with `make slow`."""

settings.register_profile(
    "streamjobs",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("streamjobs")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what takes long."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        callspec = getattr(item, "callspec", None)
        on = callspec.params.get("url") if callspec else None
        if folder in APART or (BINARIES and folder in AGAIN and on == "memory"):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def server_named() -> Iterator[Callable[[str], Server]]:
    """Return the session's server of an engine, started when first asked for: one per test process."""
    running: dict[str, Server] = {}

    def get(name: str) -> Server:
        if name not in running:
            running[name] = Server(BINARIES[name]).start()
        return running[name]

    yield get
    for server in running.values():
        server.close()


@pytest.fixture(params=["memory", *BINARIES])
def url(request: pytest.FixtureRequest, server_named: Callable[[str], Server]) -> str:
    """The address of each backend in turn: fakeredis and every real server at hand."""
    return "memory://" if request.param == "memory" else server_named(request.param).url


@pytest.fixture(params=list(BINARIES))
def server_url(request: pytest.FixtureRequest, server_named: Callable[[str], Server]) -> str:
    """The address of each real server in turn."""
    return server_named(request.param).url


@pytest.fixture
def server_binary() -> Path:
    """The binary for tests that start, kill or freeze a server of their own."""
    if not BINARIES:
        pytest.skip("no server binary at hand")
    return next(iter(BINARIES.values()))


@pytest.fixture
def namespace() -> str:
    """A namespace that no other test has: tests share servers and never flush them."""
    return f"t{secrets.token_hex(6)}"


@pytest.fixture
def backend_url(request: pytest.FixtureRequest) -> str | None:
    """The address that this test works on, or None for a test without a server."""
    address = next((name for name in ("url", "server_url") if name in request.fixturenames), None)
    return None if address is None else request.getfixturevalue(address)


@pytest.fixture(autouse=True)
def _nothing_left_running(backend_url: str | None) -> Iterator[None]:
    """Fail a test that leaves a thread or a child process behind; the session's server is there before."""
    threads, children = set(threading.enumerate()), _children()
    yield
    left = [thread for thread in threading.enumerate() if thread not in threads]
    for thread in left:
        thread.join(timeout=2)
    alive = [thread.name for thread in left if thread.is_alive()]
    assert not alive, f"threads left running: {alive}"
    processes = {pid: _command(pid) for pid in _children() - children - _trackers()}
    assert not processes, f"child processes left (ended ones were not waited for): {processes}"


@pytest.fixture(autouse=True)
def _no_keys_left(request: pytest.FixtureRequest, backend_url: str | None) -> Iterator[None]:
    """After a test on a backend: only documented keys are there, those that must expire do, and they go."""
    if backend_url is None or "namespace" not in request.fixturenames:
        yield
        return
    namespace = request.getfixturevalue("namespace")
    yield
    problems = check_keys(backend_url, namespace)
    assert not problems, "keys left by this test:\n" + "\n".join(problems)


def _children() -> set[int]:
    """Return the ids of this process's children, ended but unwaited ones included; none off Linux."""
    found: set[int] = set()
    for listing in Path("/proc/self/task").glob("*/children"):
        try:
            found.update(map(int, listing.read_text().split()))
        except OSError:
            # That thread has just ended.
            continue
    return found


def _trackers() -> set[int]:
    """Return the helper that multiprocessing starts once and keeps until the process ends."""
    tracker = getattr(multiprocessing.resource_tracker, "_resource_tracker", None)
    pid = getattr(tracker, "_pid", None)
    return {pid} if isinstance(pid, int) else set()


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "ended"
    return b" ".join(words).decode("utf-8", "replace").strip() or "ended"


@pytest.fixture
def failpoint() -> Iterator[Callable[[str, Callable[[], None]], None]]:
    """Arms failpoints, and disarms them after the test."""
    names: list[str] = []

    def arm(name: str, action: Callable[[], None]) -> None:
        names.append(name)
        failpoints.arm(name, action)

    yield arm
    for name in names:
        failpoints.arm(name, None)
