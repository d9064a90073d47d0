"""Counts are said as people say them."""

import pytest

from streamjobs.core.wording import plural


@pytest.mark.parametrize(("number", "said"), [(0, "0 slots"), (1, "1 slot"), (2, "2 slots"), (12_418, "12,418 slots")])
def test_one_has_no_s(number: int, said: str) -> None:
    assert plural(number, "slot") == said
