"""The document holds what its schema promises, and the table shows it in 80 columns."""

from pathlib import Path

import msgspec
import pytest

from benchmarks import document, table
from benchmarks.document import Document, Machine, Result, Soak
from benchmarks.measure import Spread
from tests.cli.schema import load, problems

RESULT = Result(
    scenario="enqueue",
    variant="many_sync",
    jobs=200_000,
    repeats=5,
    jobs_per_s=Spread(1_234_567.0, 1_200_000.0, 1_250_000.0),
    client_us_per_job=2.104,
    server_us_per_job=1.5,
    bare_jobs_per_s=Spread(1_530_000.0, 1_500_000.0, 1_600_000.0),
    bare_client_us_per_job=0.9,
    bare_server_us_per_job=1.41,
    ratio_to_bare=0.434,
    ratio_spread=Spread(0.434, 0.41, 0.45),
    bytes_per_waiting_job=150.2,
    baseline_doubtful=False,
)
SOAK = Soak(
    seed=123_456,
    seconds=300.0,
    jobs=75_012,
    least_jobs_per_s=248,
    duplicated=1_412,
    reclaimed=1_623,
    refused=1_210,
    unknown=512,
    duplicates_refused=1_803,
    limited=1_377,
    slots=299,
    effects_skipped=640,
    dead=371,
    kills=30,
    pauses=15,
    cuts=15,
    flushes=5,
    restarts=5,
    stops=5,
    longest_recovery_s=1.262,
    longest_recovery_after="kill",
)


def finished(*results: Result | Soak) -> Document:
    return Document(
        machine=Machine("Some CPU", 2, 8_000_000_000, "Linux 6.1 x86_64", "CPython 3.11.7", 0.5),
        command=["python", "-m", "benchmarks", "run", "enqueue"],
        started_at=document.now(),
        versions={"server": "valkey 9.1.2", "redis": "8.1.0", "hiredis": "3.5.0", "msgspec": "0.23.0"},
        commit="0123456789abcdef0123456789abcdef01234567+",
        results=list(results),
    )


def test_the_document_has_the_fields_of_its_schema() -> None:
    found = msgspec.json.decode(finished(RESULT).encode())

    assert found["schema"] == "streamjobs.bench"
    assert found["version"] == 1
    assert {"cpu", "cores", "python", "system"} <= found["machine"].keys()
    (result,) = found["results"]
    assert (result["scenario"], result["variant"]) == ("enqueue", "many_sync")
    assert result["jobs_per_s"] == {"median": 1_234_567.0, "min": 1_200_000.0, "max": 1_250_000.0}
    assert result["client_us_per_job"] == 2.104
    assert result["server_us_per_job"] == 1.5
    assert result["bare_client_us_per_job"] == 0.9
    assert result["ratio_to_bare"] == 0.434
    assert result["bytes_per_waiting_job"] == 150.2
    assert result["baseline_doubtful"] is False
    assert result["void"] is None


def test_documents_fit_their_schema() -> None:
    void = Result(scenario="drain", variant="async_noop", jobs=1, repeats=1, void="entries left: 3")
    broken = msgspec.structs.replace(SOAK, lost=1, findings=["I1: lost"], void="no refusal")

    found = msgspec.json.decode(finished(RESULT, void, SOAK, broken).encode())

    assert problems(found, load("streamjobs.bench")) == []
    assert {field for result in found["results"] for field in result} == set(
        load("streamjobs.bench")["properties"]["results"]["items"]["properties"]
    )


def test_a_soak_stands_only_if_nothing_was_found_and_it_was_hard_enough() -> None:
    changed = msgspec.structs.replace

    assert SOAK.wrong == []
    assert changed(SOAK, stuck=2).wrong == ["stuck 2"]
    assert changed(SOAK, findings=["I6: two copies"], lost=1).wrong == ["I6: two copies", "lost 1"]
    assert changed(SOAK, void="no refusal").wrong == ["is void: no refusal"]


def test_this_machine_can_be_described() -> None:
    machine = document.machine()

    assert machine.cores >= 1
    assert machine.python.startswith("CPython 3.") or machine.python
    assert document.versions("valkey 9")["server"] == "valkey 9"
    assert document.now().endswith("Z")


@pytest.mark.parametrize("commit", [None, "abc"])
def test_a_commit_is_named_only_where_there_is_a_checkout(
    commit: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "__file__", str(tmp_path / "benchmarks" / "document.py"))
    if commit:
        (tmp_path / ".git").mkdir()  # not a repository: git says so, and we say nothing

    assert document.commit() is None


def test_the_table_fits_80_columns() -> None:
    void = Result(scenario="drain", variant="async_noop", jobs=1, repeats=1, void="entries left: 3")
    doubtful = msgspec.structs.replace(RESULT, baseline_doubtful=True)

    broken = msgspec.structs.replace(
        SOAK, lost=1, findings=["I1: " + "lost " * 30 + "\n    an event"], void="no refusal"
    )

    text = table.render(finished(RESULT, doubtful, void, SOAK, broken))

    assert max(map(len, text.splitlines())) <= 80, text
    assert "1,234,567 (1,200,000-1,250,000)" in text
    assert "0.43" in text
    assert "DOUBTFUL" in text
    assert "VOID: entries left: 3" in text
    assert "chaos soak: 300 s of faults, seed 123456" in text
    assert "  lost 0  invented 0  stuck 0\n" in text
    assert "  longest recovery 1.26 s after a kill\n" in text
    assert "  WRONG: I1: lost" in text
    assert "  WRONG: is void: no refusal\n" in text
