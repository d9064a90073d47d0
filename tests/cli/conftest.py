"""Fixtures for the tests of the command line."""

import pytest

from streamjobs.cli.settings import GENERAL, WORKER
from tests.cli.support import Line


@pytest.fixture
def line(server_url: str, namespace: str) -> Line:
    """A command line on each real server in turn."""
    return Line(server_url, namespace)


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing of this machine's environment decide."""
    for name in GENERAL | WORKER:
        monkeypatch.delenv(f"STREAMJOBS_{name.upper()}", raising=False)
    for name in ("REDIS_URL", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
