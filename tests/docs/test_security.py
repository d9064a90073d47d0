"""docs/security.md is true: its module is imported, and what it calls secret is not shown. Its rules for users are
tried by tests/security/test_acl.py.
"""

from pathlib import Path

import pytest

from tests.cli.support import Line
from tests.docs.blocks import write_files

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "security.md"


def test_secrets_are_hidden_as_it_says(
    server_url: str, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [_] = write_files(DOCUMENT, tmp_path)
    monkeypatch.setenv("STREAMJOBS_URL", server_url)
    monkeypatch.syspath_prepend(str(tmp_path))
    line = Line(server_url, namespace)

    job = line("enqueue", "-A", "secrets_app:app", "accounts.open", "Ada", "s3cret").stdout.strip()

    assert line.json("job", "show", job)["args"] == {"name": "Ada", "password": "***"}
    assert line.json("job", "show", job, "--reveal")["args"] == {"name": "Ada", "password": "s3cret"}
