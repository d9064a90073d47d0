"""Numbers as people read them: those that only `stats` has; the others are tested beside the tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamjobs.core import text


@pytest.mark.parametrize(
    ("per_s", "shown"),
    [(0, "0"), (0.001, "<0.1"), (0.049, "<0.1"), (0.05, "0.1"), (0.33, "0.3"), (1, "1"), (9.94, "9.9"), (9.96, "10"),
     (14.4, "14"), (1930, "1,930"), (9999, "9,999"), (12_418, "12k"), (99_940, "100k"), (99_960, "100k"),
     (1_234_567, "1.2M")],
)  # fmt: skip
def test_rates(per_s: float, shown: str) -> None:
    assert text.rate(per_s) == shown


@given(st.floats(0, 1e9))
def test_rates_fit_five_characters(per_s: float) -> None:
    assert len(text.rate(per_s)) <= 5


@pytest.mark.parametrize(
    ("ms", "shown"),
    [(0, "0us"), (0.0045, "4us"), (0.45, "450us"), (0.9997, "1.0ms"), (1.25, "1.2ms"), (9.96, "10ms"), (80.2, "80ms"),
     (999.6, "1.0s"), (1234, "1.2s"), (1_082_000, "18m02s")],
)  # fmt: skip
def test_spans(ms: float, shown: str) -> None:
    assert text.span(ms) == shown


@pytest.mark.parametrize(
    ("ms", "shown"),
    [(0, "0s"), (5000, "5s"), (60_000, "1m"), (300_000, "5m"), (600_000, "10m"), (1_082_000, "18m02s"),
     (3_600_000, "1h"), (5_400_000, "1h30m"), (86_400_000, "1d"), (20_000, "20s")],
)  # fmt: skip
def test_brief_spans(ms: int, shown: str) -> None:
    assert text.brief(ms) == shown
