"""examples/incident: the verdicts over time, with the right reasons; and what died is one line, and is replayed."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.demo.test_demo import EXAMPLE, environment

PHASES = ["start", "calm", "bug, flood", "outage", "recovery", "mended", "replay"]


def happened(folder: Path) -> tuple[list[dict[str, Any]], str]:
    """Let it happen, as a user starts it; return what the watch said, look by look, and what was printed."""
    done = subprocess.run(
        [sys.executable, "-m", "examples.incident", "--folder", str(folder)],
        cwd=EXAMPLE.parents[1],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return json.loads((folder / "story.json").read_text()), done.stdout


# Not a fault made in one process, but as slow as one.
@pytest.mark.slow
def test_verdicts_over_time(tmp_path: Path) -> None:
    story, printed = happened(tmp_path / "incident")

    ends = {look["phase"]: (look["health"], look["why"]) for look in story}
    assert list(ends) == PHASES
    assert ends["calm"] == ("ok", {})
    assert ends["bug, flood"] == ("degraded", {"reports": ["oldest"], "shop": ["dead"]})
    # By when the reports of the flood are built depends on the machine.
    assert ends["outage"][0] == "critical"
    assert ends["outage"][1]["shop"] == ["oldest", "failures", "dead"]
    assert ends["recovery"] == ("degraded", {"shop": ["dead"]})
    assert ends["replay"] == ("ok", {})
    assert {look["phase"] for look in story if look["health"] == "critical"} <= {"outage", "recovery"}

    said = " ".join(printed.split())
    assert "most by http_5xx" in said
    assert "all 8 slots are busy" in said
    assert "wait for a rate or a concurrency" in said
    [group] = re.findall(r"^ +(\d+)  receipts\.print  exhausted  ValueError", printed, re.MULTILINE)
    assert printed.count("receipts.print  ") == 1
    assert f"would replay {group} jobs of shop" in printed
    assert f"replayed {group} jobs of shop" in printed
    waited = re.search(r"that floods waited up to ([\d.]+)s, those of others up to ([\d.]+)s", printed)
    assert waited, printed
    assert float(waited[1]) > 2 * float(waited[2])
    assert not Path(json.loads((tmp_path / "incident" / "server" / "server.json").read_text())["socket"]).exists()
