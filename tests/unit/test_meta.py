"""What travels with a job: all that we write can be read again, and what nobody of us writes is refused."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamjobs import Latest, Retry, UntilDone, UntilStarted, Window
from streamjobs.core.codec import DecodeFailed, decode_meta, encode_meta
from streamjobs.core.cron import NEVER_MS
from streamjobs.core.decide import decide
from streamjobs.core.job import Bury, Claim, Crashed, Meta, Outcome, Raised, Snooze, Snoozed, TimedOut, Unknown
from streamjobs.core.job import Retry as Again
from streamjobs.core.names import MAX_DELAY_MS
from streamjobs.core.options import MAX_RESULT_TTL_MS, EnqueueOptions
from streamjobs.core.states import State
from streamjobs.kind import make_meta
from streamjobs.operate.jobs import JobStatus, attempts
from streamjobs.operate.replay import _Letter
from streamjobs.protocol.keys import QueueKeys
from streamjobs.worker import endings
from streamjobs.worker.execution import Execution, WorkerQueue

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=80)
TEN_YEARS = timedelta(milliseconds=MAX_DELAY_MS)
SPANS = st.timedeltas(timedelta(milliseconds=1), TEN_YEARS)
INSTANTS = st.integers(1, NEVER_MS - 1).map(lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms))
OPTIONS = st.builds(
    EnqueueOptions,
    dedupe_key=st.none() | TEXTS.filter(lambda text: len(text.encode()) <= 256),
    headers=st.none() | st.dictionaries(TEXTS, TEXTS, max_size=3),
    expires=st.none() | SPANS | INSTANTS,
    when_expired=st.sampled_from(["dead", "drop"]),
)
MODES = st.none() | st.sampled_from([UntilDone(), UntilStarted(), Latest()]) | st.builds(Window, SPANS)
OUTCOMES: st.SearchStrategy[Outcome] = st.sampled_from(
    [
        Raised("E: \ud800", "other"),
        Raised("E: x" * 500, "other", after_ms=MAX_DELAY_MS),
        Raised("E: slow down", "rate_limited", uncharged=True),
        TimedOut(1),
        Snoozed(MAX_DELAY_MS),
        Crashed("killed by SIGKILL"),
        Unknown(),
        Raised("E: never", "bug", permanent=True),
    ]
)
STARTS = st.sampled_from(
    ["", "w@1764412345678/1", "w@0/1 v@1764412345678/2", "w@soon/1", f"w@{'9' * 30}/1", "w@-5/1", "²@²/²"]
)
"""Starts that never ended, as the server has them, and as somebody else may have written them."""
LOCAL_IDS = st.sampled_from(["1764412345678-0", "d1764412345678-12", "0-1", f"{2**64 - 1}-{2**64 - 1}"])
POLICY = Retry(max_attempts=1000, max_crashes=1000)
QUEUE = WorkerQueue(QueueKeys("n", "q"), 15_000)


def goes_on(meta: Meta, local: str, outcome: Outcome, starts: str, deliveries: int) -> bytes:
    """Return the meta with which a job goes on after this, or is replayed if it is dead."""
    marks = len(starts.split()) - 1
    claim = Claim(local.removeprefix("d").encode(), b"k", b"{}", b"", deliveries=deliveries, marks=marks, starts=starts)
    execution = Execution(claim, QUEUE, meta=msgspec.structs.replace(meta, id=local))
    decision = decide(outcome, meta, POLICY, 0.5)
    if isinstance(decision, Again | Snooze):
        return endings.postponement(execution, decision, "me", 1_764_412_345_678).meta
    assert isinstance(decision, Bury)
    death = endings.death(execution, decision, "me", 1_764_412_345_678)
    status = JobStatus(f"q:{local}", "q", State.DEAD, meta=meta, history=attempts(death.history))
    assert status.history
    return _Letter(status, None).replay().meta


@given(OPTIONS, st.integers(0, MAX_RESULT_TTL_MS), MODES, LOCAL_IDS, st.data())
def test_all_that_we_write_can_be_read_again(
    options: EnqueueOptions, ttl_ms: int, mode: Any, local: str, data: st.DataObject
) -> None:
    meta = make_meta(options, ttl_ms, mode)

    assert decode_meta(encode_meta(meta)) == meta

    for outcome in data.draw(st.lists(OUTCOMES, max_size=8)):
        raw = goes_on(meta, local, outcome, data.draw(STARTS), data.draw(st.integers(1, 5)))
        meta = decode_meta(raw)
        assert encode_meta(meta) == raw
        assert meta.id == local


COUNTERS = ["g", "f", "c", "pc", "s", "r", "p"]


@pytest.mark.parametrize("name", [*COUNTERS, "dw", "rt", "e", "ea"])
def test_a_number_out_of_its_range_is_refused(name: str) -> None:
    for number in ("-1", "9223372036854775807", "9" * 4300, "1.5", '"1"'):
        with pytest.raises(DecodeFailed, match="^meta: .*" + name):
            decode_meta(f'{{"{name}":{number}}}'.encode())


@pytest.mark.parametrize("name", COUNTERS)
def test_counters_may_be_as_large_as_any_reader_is_exact(name: str) -> None:
    assert decode_meta(f'{{"{name}":{2**53}}}'.encode())
    with pytest.raises(DecodeFailed):
        decode_meta(f'{{"{name}":{2**53 + 1}}}'.encode())


@pytest.mark.parametrize("local", ["abc", "1", "1-", "-1", "1-1\n", "x1-1", "d", "1-1-1", "٣-٣", "9" * 21 + "-1"])
def test_an_id_that_no_server_gives_is_refused(local: str) -> None:
    with pytest.raises(DecodeFailed, match=r"^meta: id .* is none"):
        decode_meta(msgspec.json.encode({"id": local}))


def test_an_empty_id_is_none() -> None:
    assert decode_meta(b'{"id":""}').id == ""
