"""No history of lanes lets too many run, breaks the order of a key, or leaves somebody waiting for ever."""

import os
import secrets

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import BINARIES
from tests.leaks import check_keys
from tests.model.history import run_histories
from tests.model.lanes import Lanes
from tests.store.support import CLOCK, Store, job_of


@pytest.mark.parametrize("server_url", list(BINARIES)[:1], indirect=True)
def test_every_history_keeps_the_limits_and_ends(server_url: str) -> None:
    run_histories(Lanes, server_url, 120)


@pytest.mark.parametrize("server_url", list(BINARIES)[:1], indirect=True)
@settings(max_examples=60, derandomize=bool(os.environ.get("CI")))
@given(
    burst=st.integers(1, 5),
    interval_us=st.integers(1_000, 400_000),
    gaps=st.lists(st.integers(0, 300), min_size=1, max_size=30),
)
def test_rates_are_those_of_the_reference(server_url: str, burst: int, interval_us: int, gaps: list[int]) -> None:
    """GCRA in Python's unbounded integers, without anybody waiting."""
    namespace = f"t{secrets.token_hex(6)}"
    store = Store(server_url, namespace)
    store.make_group()
    now, tat, own, reference = CLOCK, 0, [], []
    for claim, gap in zip(store.started(len(gaps)), gaps, strict=True):
        now += gap
        own += store.admit(claim, lanes=["r:q"], limits={"r:q": f"{burst} {interval_us}"}, clock=str(now))
        if own[-1] == "PARKED":
            store.cancel(job_of(claim))
            store.command("DEL", store.keys.line)
        begin = max(tat, now * 1000)
        allowed = begin - now * 1000 <= (burst - 1) * interval_us
        reference.append("GO" if allowed else "PARKED")
        tat = begin + interval_us if allowed else tat

    store.close()
    problems = check_keys(server_url, namespace)
    assert (own, problems) == (reference, [])
