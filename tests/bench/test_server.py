"""The benchmark's server ends with whoever started it, however that ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from benchmarks.server import ServerError, running
from tests.servers import find_servers

ROOT = Path(__file__).resolve().parents[2]
OWNER = """
import sys
from benchmarks.server import running
with running() as url:
    print(url, flush=True)
    sys.stdin.read()
"""


def folder_of(url: str) -> Path:
    return Path(url.removeprefix("unix://")).parent


def test_the_server_answers_saves_nothing_and_is_gone_afterwards() -> None:
    with running() as url:
        with redis.Redis.from_url(url, decode_responses=True) as client:
            assert client.ping()
            assert client.config_get("save") == {"save": ""}
            assert client.config_get("appendonly") == {"appendonly": "no"}
            pid = client.info("server")["process_id"]

    assert not folder_of(url).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(("name", "binary"), find_servers().items())
def test_any_server_can_be_started_with_the_same_settings(name: str, binary: Path) -> None:
    with running("--appendonly", "yes", "--appendfsync", "always", tcp=True, binary=binary) as url:
        with redis.Redis.from_url(url, decode_responses=True) as client:
            about = client.info("server")
            assert about.get("valkey_version", about["redis_version"]).startswith(name.rpartition("-")[2])
            assert client.config_get("save") == {"save": ""}
            assert client.config_get("appendfsync") == {"appendfsync": "always"}


def test_what_is_no_program_is_not_started(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")

    for path in (tmp_path, tmp_path / "text", tmp_path / "nothing"):
        with pytest.raises(ServerError, match=f"{path}: no program"), running(binary=path):
            pass


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_owner_takes_its_server_along(how: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        url = owner.stdout.readline().strip()
        with redis.Redis.from_url(url) as client:
            waiting = client.connection_pool.make_connection()
            waiting.connect()
            owner.send_signal(how)
            owner.wait(10)
            with pytest.raises(redis.ConnectionError):  # which the server's end brings, not a timeout
                waiting.read_response(timeout=10)
            waiting.disconnect()
