"""Run mutants, each in a copy of the tree: first the smoke, which it must pass, then its scenario.

That must fail by an assertion which names the invariant. A crash, or a wait that ends elsewhere, does
not count.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from xml.etree import ElementTree

import msgspec

from tests.faults.mutants.catalogue import MUTANTS, Mutant

ROOT = Path(__file__).parents[3]
COPIED = ("streamjobs", "lua", "tests")
SCENARIOS = "tests/faults/scenarios"
SMOKE = "test_smoke.py::test_five_hundred_jobs_end_as_their_handlers_say"
AT_ONCE = 2
WITHIN_S = 60.0
"""No smoke and no scenario takes this long; what is stuck in one is given up after a fifth of it."""
TEARDOWN_S = 15.0


class Verdict(msgspec.Struct, frozen=True):
    """What became of a mutant."""

    name: str
    wrong: str
    smoke: bool
    """Whether it passed."""
    scenario: str
    caught_by: str
    """The finding; empty where it was not caught."""
    instead: str = ""
    """What happened instead, and the last lines of it."""


class Outcome(msgspec.Struct, frozen=True):
    """How a test ended."""

    passed: bool
    failure: str
    """What its assertion said; empty where none failed."""
    output: str


def plant(mutant: Mutant, folder: Path) -> None:
    """Copy the tree into a folder, with the mutant in it.

    Raises:
        ValueError: the old text of an edit does not occur exactly once.
    """
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for edit in mutant.edits:
        path = folder / edit.path
        text = path.read_text("utf-8")
        if (times := text.count(edit.old)) != 1:
            raise ValueError(f"{mutant.name}: {edit.path} has {times} times {edit.old!r}, not once")
        path.write_text(text.replace(edit.old, edit.new), "utf-8")


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of processes that are to import from a copy."""
    return {**os.environ, "PYTHONPATH": str(folder), "PYTHONDEVMODE": "1"}


def judge(mutant: Mutant) -> Verdict:
    """Run the smoke and the scenario of a mutant."""
    with tempfile.TemporaryDirectory(prefix="sj-mutant-") as name:
        folder = Path(name)
        plant(mutant, folder)
        smoke = _run(SMOKE, folder)
        outcome = _run(mutant.scenario, folder) if smoke.passed else smoke
    line = finding(mutant, outcome.failure) if smoke.passed else ""
    instead = "" if line else f"{_what_happened(outcome)}\n{outcome.output[-3000:]}"
    return Verdict(mutant.name, mutant.wrong, smoke.passed, mutant.scenario, line, instead)


def finding(mutant: Mutant, failure: str) -> str:
    """Return the line of a failure that names the mutant's invariant as it should; empty for none."""
    for line in failure.splitlines():
        _, known, text = line.partition(f"{mutant.invariant}: ")
        if known and mutant.finding in text:
            return f"{mutant.invariant}: {text[text.index(mutant.finding) :]}"
    return ""


def _what_happened(outcome: Outcome) -> str:
    if outcome.passed:
        return "its scenario passed"
    return f"failed by: {outcome.failure.splitlines()[0]}" if outcome.failure else "no assertion failed"


def _run(scenario: str, folder: Path) -> Outcome:
    """Run one test in a copy. Told to end when its time is over, it still ends what it has started."""
    report, output = folder / "report.xml", folder / "output"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", "-m", "faults"]
    command += [f"--basetemp={folder / 'tmp'}", f"--junitxml={report}", f"{SCENARIOS}/{scenario}"]
    with output.open("wb") as file:
        process = subprocess.Popen(command, cwd=folder, env=environment(folder), stdout=file, stderr=file)
        for patience_s, then in ((WITHIN_S, signal.SIGINT), (TEARDOWN_S, signal.SIGKILL)):
            try:
                process.wait(patience_s)
            except subprocess.TimeoutExpired:
                process.send_signal(then)
        process.wait()
    return Outcome(process.returncode == 0, _failure(report), output.read_text("utf-8", "replace"))


def _failure(report: Path) -> str:
    if not report.exists():
        return ""
    # What went wrong outside of the test itself is an <error>.
    texts = (one.text or "" for one in ElementTree.parse(report).iter("failure"))
    return "\n".join(line[1:].strip() for text in texts for line in text.splitlines() if line.startswith("E "))


def rows(verdict: Verdict) -> Iterator[str]:
    """Yield what the table says of a mutant."""
    smoke = "passed" if verdict.smoke else "FAILED"
    yield f"{verdict.name:<26}{smoke:<8}{verdict.caught_by or 'NOT CAUGHT'}"
    yield f"  {verdict.wrong}"
    yield f"  {verdict.scenario}"


def main(words: Sequence[str] | None = None) -> int:
    """Run mutants and print the table; return 0 if all were caught, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.mutants", description=__doc__)
    parser.add_argument("name", nargs="*", help="a mutant; all without one")
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    given = parser.parse_args(words)
    if unknown := sorted(set(given.name) - set(MUTANTS)):
        parser.error(f"no mutant {', '.join(unknown)}; there are {', '.join(MUTANTS)}")
    chosen = [MUTANTS[name] for name in given.name] or list(MUTANTS.values())
    began = monotonic()
    verdicts = []
    if not given.json:
        print(f"{'MUTANT':<26}{'SMOKE':<8}CAUGHT BY\n  WRONG\n  SCENARIO", flush=True)
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        for judged in [pool.submit(judge, mutant) for mutant in chosen]:
            verdict = judged.result()
            verdicts.append(verdict)
            if not given.json:
                print(*rows(verdict), sep="\n", flush=True)
            if verdict.instead:
                print(f"{verdict.name}: {verdict.instead}", file=sys.stderr, flush=True)
    finally:
        pool.shutdown(cancel_futures=True)
    caught = sum(bool(verdict.caught_by) for verdict in verdicts)
    if given.json:
        print(msgspec.json.format(msgspec.json.encode(verdicts)).decode())
    else:
        print(f"{caught} of {len(chosen)} caught, in {monotonic() - began:.0f} s")
    return 0 if caught == len(chosen) else 1
