"""Peers: BullMQ on Node, whose adapter is not Python, and which is optional."""

import json
import os
import shutil
import struct
import subprocess
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import msgspec
import pytest

from benchmarks.peers import bout as bouts
from benchmarks.peers.bout import LACKING, Added
from benchmarks.peers.catalogue import OURS, PEERS
from benchmarks.peers.environments import NotInstalled, python_of, version_of
from benchmarks.peers.match import Terms, play

ADAPTER = Path(bouts.__file__).parent / "adapters" / "bullmq_node.cjs"
NODE = next(one for one in PEERS if one.name == "bullmq-node")
with_node = pytest.mark.skipif(not (shutil.which("node") and shutil.which("npm")), reason="there is no Node with npm")

TERMS = {
    "url": "", "fast": True, "timed": False, "text": "x", "callers": 3, "portion": 4, "paceNs": 2_000_000, "timerNs": 0,
}  # fmt: skip
BULLMQ = """
const { appendFileSync } = require('node:fs')
const add = job => appendFileSync('added', JSON.stringify(job) + '\\n')
exports.Queue = class {
  async getJobCounts () {}
  async add (name, data, opts) { add({ name, data, opts }) }
  async addBulk (jobs) { jobs.forEach(add) }
  async close () {}
}
exports.Worker = class { constructor (name, run) { run({ data: { number: 1 } }) } on () {} }
"""
"""Writes down what is added, and runs one job."""


def node(folder: Path, *words: str, **terms: Any) -> subprocess.CompletedProcess[str]:
    """Run the adapter beside something that looks like BullMQ."""
    (folder / "bullmq.js").write_text(BULLMQ)
    return subprocess.run(
        ["node", str(ADAPTER), *words, json.dumps(TERMS | terms)],
        cwd=folder,
        env=os.environ | {"NODE_PATH": str(folder), "PEER_MARKS": "marks"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@with_node
@pytest.mark.parametrize("way", ["one_awaited", "together", "bulk", "fill", "paced"])
def test_each_job_is_added_once(tmp_path: Path, way: str) -> None:
    done = node(tmp_path, way, "10")
    jobs = [json.loads(line) for line in (tmp_path / "added").read_text().splitlines()]

    assert [job["data"]["text"] for job in jobs] == ["x"] * 10
    assert jobs[0]["opts"] == {"removeOnComplete": True}
    numbers = sorted(job["data"]["number"] for job in jobs)
    if way == "paced":
        # They say when they were sent, or due.
        assert 17_000_000 < numbers[-1] - numbers[0] < 60_000_000_000
    else:
        assert numbers == list(range(10))
        assert msgspec.json.decode(done.stdout, type=Added).jobs == 10


@with_node
def test_a_job_that_runs_leaves_a_byte_or_how_long_ago_it_was_sent(tmp_path: Path) -> None:
    before = perf_counter_ns()
    node(tmp_path, "drain", "0", timed=True)
    [found] = struct.unpack("<q", (tmp_path / "marks").read_bytes())
    node(tmp_path, "drain", "0")

    # It was sent when the clock of all processes stood at 1.
    assert before < found + 1 < perf_counter_ns()
    assert (tmp_path / "marks").read_bytes()[8:] == b"."


@with_node
def test_what_it_lacks_is_said(tmp_path: Path) -> None:
    lacking = node(tmp_path, "one", "1")

    assert lacking.returncode == 1
    assert lacking.stderr == f"{LACKING}its calls are asynchronous\n"


def test_without_node_it_is_not_there_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    # Each run of peers has ours.
    rows = play([msgspec.structs.replace(NODE, name=OURS)], Terms(1, 1, 0.1, 0.1), tmp_path)

    assert [row.failed for row in rows] == ["not installed: there is no Node with npm on this machine"] * 2
    assert not any(tmp_path.iterdir())


def test_its_version_is_read_where_npm_installs(tmp_path: Path) -> None:
    about = tmp_path / "node_modules" / "bullmq" / "package.json"
    about.parent.mkdir(parents=True)
    about.write_text('{"name": "bullmq", "version": "6.7.0"}')

    assert version_of(NODE, tmp_path / "bin" / "python") == "6.7.0"


@with_node
@pytest.mark.slow
def test_why_npm_fails_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotInstalled, match="npm error code ENOENT"):
        python_of(msgspec.structs.replace(NODE, packages=("./no-such-folder",)), tmp_path)
    assert not list(tmp_path.rglob("streamjobs-peer"))
