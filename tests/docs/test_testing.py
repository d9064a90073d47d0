"""docs/testing.md is true: its tests pass, in a folder of their own, as those of a user would."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.blocks import write_files

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "testing.md"


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    files = write_files(DOCUMENT, tmp_path)
    written = "\n".join((tmp_path / name).read_text("utf-8") for name in files)
    own = {key: value for key, value in os.environ.items() if not key.startswith(("STREAMJOBS_", "REDIS_", "PYTEST_"))}
    settings = ("-o", "asyncio_default_fixture_loop_scope=function", "-p", "no:valkey", "-p", "no:cacheprovider")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "--rootdir", ".", *settings],
        cwd=tmp_path,
        env={**own, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    # One of them is there for two names.
    assert f"{len(re.findall(r'def test_', written)) + 1} passed" in done.stdout
