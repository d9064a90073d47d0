"""The catalogue of mutants keeps up with the product, and the runner believes nothing but the right finding."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults import checker
from tests.faults.mutants import run
from tests.faults.mutants.catalogue import MUTANTS, Mutant

KNOWN = set(re.findall(r"\bI\d+b?\b", checker.__doc__ or ""))

each = pytest.mark.parametrize("mutant", MUTANTS.values(), ids=lambda mutant: mutant.name)


@each
def test_its_old_texts_are_in_the_product_once(mutant: Mutant) -> None:
    for edit in mutant.edits:
        assert edit.path.startswith(("streamjobs/", "lua/"))
        assert (run.ROOT / edit.path).read_text("utf-8").count(edit.old) == 1, edit
        assert edit.new != edit.old


@each
def test_its_scenario_is_there_and_its_invariant_is_one_of_the_checkers(mutant: Mutant) -> None:
    name, _, function = mutant.scenario.partition("::")

    assert f"def {function.partition('[')[0]}(" in (run.ROOT / run.SCENARIOS / name).read_text("utf-8")
    assert mutant.invariant in KNOWN


def test_a_process_in_a_copy_imports_the_mutant(tmp_path: Path) -> None:
    mutant = MUTANTS["siblings-blamed"]
    run.plant(mutant, tmp_path)
    show = "import streamjobs.protocol.scripts as s, streamjobs.worker.start as w; print(w.ALONE_FROM, s.folder())"
    command = [sys.executable, "-c", show]
    # From elsewhere: in the copy the current folder would do.
    said = subprocess.run(
        command, cwd=tmp_path.parent, env=run.environment(tmp_path), capture_output=True, text=True, check=True
    )

    assert said.stdout.split() == ["1000", str(tmp_path / "lua")]


def test_an_edit_whose_text_is_gone_is_refused(tmp_path: Path) -> None:
    mutant = MUTANTS["maxlen"]
    stale = Mutant("stale", "", (*mutant.edits, mutant.edits[0]), mutant.scenario, "I1", "lost")

    with pytest.raises(ValueError, match=r"stale: lua/enqueue.lua has 0 times"):
        run.plant(stale, tmp_path)


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run.main(["maxlen", "nonsense"])

    assert ended.value.code == 2
    assert "no mutant nonsense; there are failure-by-anyone, " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("failure", "found"),
    [
        ("AssertionError: jobs 1\nI16: q:1-1: stuck\nI1: q:1-0: lost: accepted, and neither ended nor there", True),
        ("AssertionError: jobs 1\nI16: q:1-1: stuck", False),
        ("AssertionError: jobs 1\nI1: q:1-0: something else", False),
        ("AssertionError: not within 12 s: the queue is drained", False),
        ("", False),
    ],
)
def test_only_the_right_finding_of_the_right_invariant_counts(failure: str, found: bool) -> None:
    line = run.finding(MUTANTS["maxlen"], failure)

    assert line == ("I1: lost: accepted, and neither ended nor there" if found else "")
