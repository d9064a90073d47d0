"""Two documents side by side: only what both have, and whether a difference is more than noise."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks.compare import Unreadable, load, render, rows
from benchmarks.document import Document, Result
from benchmarks.measure import Spread
from tests.bench.test_document import RESULT, SOAK, finished
from tests.cli.schema import load as schema
from tests.cli.schema import problems


def changed(result: Result, **fields: Any) -> Result:
    return msgspec.structs.replace(result, **fields)


FASTER = changed(
    RESULT,
    jobs_per_s=Spread(2_469_134.0, 2_400_000.0, 2_500_000.0),
    ratio_spread=Spread(0.45, 0.44, 0.47),
    figures={"ms late, p50": Spread(3.0, 2.0, 4.0), "new": Spread(1.0, 1.0, 1.0)},
)
OTHER = changed(RESULT, figures={"ms late, p50": Spread(0.0, 0.0, 0.0)})


def test_rows_are_what_both_measured_in_the_order_of_the_second() -> None:
    found = list(rows(finished(OTHER), finished(FASTER, changed(FASTER, variant="alone"))))

    assert [(row.what, row.by, row.apart) for row in found] == [
        ("jobs/s", 2.0, True),
        ("of the bare loop", 1.037, False),
        ("ms late, p50", None, True),
    ]


@pytest.mark.parametrize("void", [0, 1])
def test_a_void_result_is_not_compared(void: int) -> None:
    pair = [finished(RESULT), finished(RESULT)]
    pair[void] = finished(Result(scenario="enqueue", variant="many_sync", jobs=1, repeats=1, void="left: 3"))

    assert list(rows(*pair)) == []


def test_the_text_fits_80_columns_and_says_where_it_comes_from() -> None:
    elsewhere = finished(FASTER)
    machine = msgspec.structs.replace(elsewhere.machine, cpu="Another")
    elsewhere = msgspec.structs.replace(elsewhere, machine=machine)

    text = render(finished(OTHER), elsewhere)

    assert max(map(len, text.splitlines())) <= 80, text
    assert "two machines: compare the ratios" in text
    assert "enqueue many_sync\n  jobs/s" in text
    assert "1,234,567    2,469,134    2.00  apart\n" in text
    assert "two machines" not in render(finished(RESULT), finished(FASTER))
    assert "nothing was measured in both" in render(finished(RESULT), finished(SOAK))


def test_what_was_written_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(finished(RESULT, SOAK).encode())

    assert isinstance(load(file), Document)
    assert load(file).results == [RESULT, SOAK]
    file.write_text("{}")
    with pytest.raises(Unreadable, match=r"a\.json: not what `run --json FILE` writes"):
        load(file)


def test_rows_fit_their_schema() -> None:
    found = [msgspec.to_builtins(row) for row in rows(finished(OTHER), finished(FASTER))]
    document = {"schema": "streamjobs.bench.compare", "version": 1, "first": "a", "second": "b", "rows": found}

    assert problems(document, schema("streamjobs.bench.compare")) == []
