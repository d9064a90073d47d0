"""The scenario `cron`: what it shows is what happened, and a slot that is missing or doubled makes it void."""

import pytest

from benchmarks import cron
from benchmarks.document import Result
from benchmarks.duel import Void
from benchmarks.lab import Lab
from streamjobs.core.codec import encode_meta
from streamjobs.core.job import Meta

pytestmark = pytest.mark.bench

Entry = tuple[bytes, dict[bytes, bytes]]


def entry(slot_s: int, late_ms: int, name: str = "c") -> Entry:
    meta = Meta(headers={"cron": name, "cron-slot": f"2026-01-01T00:00:{slot_s:02}Z"})
    return b"%d-0" % (cron.BEGIN_MS + slot_s * 1000 + late_ms), {b"meta": encode_meta(meta)}


def medians(result: Result) -> list[float]:
    return [figure.median for figure in result.figures.values()]


def test_lateness_is_from_the_slot_to_the_entry() -> None:
    found = cron.lateness_ms([entry(1, 3), entry(7, 0, "d"), entry(2, 1), entry(8, 11, "d"), entry(3, 2)])

    assert found == [0, 1, 2, 3, 11]


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([], "no slot came"),
        ([entry(1, 0), entry(2, -1)], "1 ms before its slot"),
        ([entry(1, 0), entry(3, 0)], "not every slot once"),
        ([entry(1, 0), entry(1, 5)], "not every slot once"),
        ([entry(2, 0), entry(1, 2000)], "not every slot once"),
    ],
)
def test_a_slot_that_is_early_missing_or_doubled_makes_it_void(entries: list[Entry], said: str) -> None:
    with pytest.raises(Void, match=said):
        cron.lateness_ms(entries)


def test_requests_count_while_all_workers_are_there() -> None:
    names = "plan plan - tick plan - - tick - retire tick - retire retire".split()

    result = cron.judge_idle([(float(when), name.strip("-")) for when, name in enumerate(names)])

    assert medians(result) == [60 / 5, 4 * 60 / 5]
    with pytest.raises(Void, match="together"):
        cron.judge_idle([(0.0, "plan"), (1.0, "plan"), (2.0, "retire"), (3.0, "plan"), (4.0, "retire")])


def test_every_schedule_and_both_scripts_are_measured(lab: Lab) -> None:
    computed, called = cron.slots(1), cron.calls(lab, 1)

    assert len(computed.figures) == len(cron.SCHEDULES)
    assert len(called.figures) == 2 * len(cron.CRONS)
    assert min(medians(computed) + medians(called)) > 0


def test_workers_run_each_slot_and_send_nothing_between_them(lab: Lab) -> None:
    punctual = cron.every(lab, "every_1", "cron_one", 3)
    quiet = cron.idle(lab, 3)

    assert punctual.jobs >= 2
    assert list(punctual.figures) == ["ms from a slot to its job, median", "ms, 99 of 100", "ms, the longest"]
    assert medians(quiet)[0] == 0
    assert medians(quiet)[1] > 0
