"""Options are checked when they are made, not when they are needed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from streamjobs.core.errors import InvalidOption
from streamjobs.core.job import FRESH, Meta
from streamjobs.core.options import Batch, EnqueueOptions, JobOptions, WorkerOptions, result_ttl_ms
from streamjobs.core.retry import Retry
from streamjobs.kind import make_meta


def test_defaults_are_the_documented_ones() -> None:
    job, worker = JobOptions(), WorkerOptions()

    assert (job.queue, job.timeout_s, job.result_ttl_ms) == ("default", 600.0, 0)
    assert (job.retry.max_attempts, job.retry.max_crashes) == (8, 3)
    assert worker.concurrency == 100
    assert [worker.ms(name) for name in ("lease", "sweep", "grace", "read_ahead", "block")] == [
        15_000, 5000, 25_000, 100, 5000,
    ]  # fmt: skip


MILLENNIUM = datetime(2000, 1, 1, tzinfo=UTC)
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001


@pytest.mark.parametrize(
    "options",
    [{"queue": "a b"}, {"timeout": 0}, {"timeout": -1}, {"timeout": float("nan")}, {"timeout": "5"},
     {"result_ttl": -1}, {"result_ttl": 31 * 86_400}, {"retry": 5}],
)  # fmt: skip
def test_options_of_a_kind_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=next(iter(options))):
        JobOptions(**options)


@pytest.mark.parametrize(
    "options",
    [{"max_items": 0}, {"max_items": 10_001}, {"max_items": 1.5}, {"max_items": True}, {"max_items": "5"},
     {"max_wait": -1}, {"max_wait": 61}, {"max_wait": float("nan")}, {"max_wait": "1s"}],
)  # fmt: skip
def test_batches_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=next(iter(options))):
        Batch(**{"max_items": 10, **options})


def test_a_batch_waits_50_ms_or_not_at_all_or_for_a_timedelta() -> None:
    assert [Batch(10, *wait).max_wait_s for wait in ((), (0,), (timedelta(seconds=2),))] == [0.05, 0, 2]


def test_a_kind_may_have_no_timeout_and_durations_may_be_timedeltas() -> None:
    assert JobOptions(timeout=None).timeout_s is None
    assert JobOptions(timeout=timedelta(minutes=2), retry=Retry(1)).timeout_s == 120
    assert result_ttl_ms(timedelta(hours=1)) == 3_600_000


@pytest.mark.parametrize(
    "options",
    [{"delay": 0}, {"delay": -1}, {"delay": float("nan")}, {"delay": 1e400}, {"delay": True}, {"at": "2026-01-01"},
     {"at": NAIVE}, {"at": datetime(9999, 12, 31, tzinfo=UTC)}, {"dedupe_key": ""},
     {"dedupe_key": "x" * 257}, {"queue": "{a}"}, {"queue": ""}, {"headers": {"a": 1}}, {"headers": ["a"]},
     {"headers": {"\ud800": "a"}}, {"headers": {"a": "x" * 4097}}, {"result_ttl": -1},
     {"delay": 1, "at": datetime(2026, 1, 1, tzinfo=UTC)}, {"expires": 0}, {"expires": -1}, {"expires": float("nan")},
     {"expires": NAIVE}, {"expires": "1h"}, {"when_expired": "delete"}, {"expires": 5, "at": MILLENNIUM},
     {"expires": 5, "delay": 5}, {"expires": MILLENNIUM, "at": MILLENNIUM}],
)  # fmt: skip
def test_options_of_an_enqueue_out_of_range_are_refused(options: dict[str, Any]) -> None:
    """Fault F50 and case H8, before anything is sent."""
    with pytest.raises(InvalidOption, match=next(iter(options))):
        EnqueueOptions(**options)


def test_times_of_an_enqueue_are_milliseconds() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)

    assert (EnqueueOptions(delay=1.5).delay_ms, EnqueueOptions(at=at).at_ms) == (1500, 1_767_225_600_000)
    assert (EnqueueOptions().delay_ms, EnqueueOptions().at_ms) == (0, 0)
    assert EnqueueOptions(headers={"a": "x" * 4095}).headers is not None


def test_a_job_expires_after_a_time_or_by_an_instant() -> None:
    after, by = EnqueueOptions(expires=timedelta(minutes=1), delay=59), EnqueueOptions(expires=MILLENNIUM, delay=5)

    assert (after.expires_ms, after.expires_at_ms) == (60_000, 0)
    assert (by.expires_ms, by.expires_at_ms) == (0, 946_684_800_000)
    assert make_meta(after, 0, None) == Meta(expires_ms=60_000)
    dropped = EnqueueOptions(expires=MILLENNIUM, when_expired="drop")
    assert make_meta(dropped, 0, None) == Meta(expires_at_ms=946_684_800_000, drop_expired=True)
    assert make_meta(EnqueueOptions(when_expired="drop"), 0, None) is FRESH


@pytest.mark.parametrize(
    "options",
    [{"concurrency": 0}, {"concurrency": 100_001}, {"lease": 0.05}, {"lease": float("inf")}, {"sweep": 0},
     {"grace": -1}, {"read_ahead": 61}, {"block": 0}, {"block": "5"}, {"health_port": "http"},
     {"pool": 0}, {"max_jobs_per_process": 0}, {"max_process_bytes": 0}],
)  # fmt: skip
def test_options_of_a_worker_out_of_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match=next(iter(options))):
        WorkerOptions(**options)
