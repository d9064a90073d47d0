"""As many processes as can run at the same time."""

import os
import subprocess
import sys

import pytest

from streamjobs.core.cpus import cpus

affine = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system binds no process to CPUs")


@affine
def test_those_that_the_process_may_run_on_are_counted() -> None:
    program = (
        "import os; from streamjobs.core.cpus import cpus; before = cpus();"
        "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]); print(before, cpus())"
    )

    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert said.split() == [str(len(os.sched_getaffinity(0))), "1"]


def test_there_is_always_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "process_cpu_count", lambda: None, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)

    assert cpus() == 1
