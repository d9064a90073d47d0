"""Each scenario runs, in small, from nothing to results that stand."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from benchmarks import dedupe, delayed, drain, durability, growth, latency, memory, mixed, recovery, scripts
from benchmarks.document import Result
from benchmarks.duel import Size
from benchmarks.lab import Lab
from tests.servers import find_servers

pytestmark = pytest.mark.bench

TINY = Size(1, 600)


@pytest.fixture(autouse=True)
def leaves_nothing(lab: Lab) -> Iterator[None]:
    yield
    assert lab.server.keys() == []


def standing(results: Iterator[Result]) -> dict[str, Result]:
    found = {result.variant: result for result in results}
    assert [result.void for result in found.values() if result.void] == []
    return found


def figure(result: Result, name: str) -> float:
    return result.figures[name].median


def test_drain(lab: Lab) -> None:
    found = standing(drain.run(lab, TINY))

    beside = {variant: result.base for variant, result in found.items()}
    assert beside == {
        "async_noop": "bare loop",
        "two_workers": "bare loop",
        "two_to_one": "one worker",
        "threads": "bare loop",
        "process": "in threads",
        "batch": "job by job",
        "results_kept": "without results",
        "dedupe": "without keys",
        "failing_once": "without failures",
    }
    assert found["process"].jobs == 12


def test_keys_are_added_beside_none(lab: Lab) -> None:
    found = standing(dedupe.run(lab, TINY))

    assert list(found) == ["argument", "named"]
    assert all((result.ratio_to_bare or 0) > 0 for result in found.values())


def test_mixed(lab: Lab) -> None:
    found = standing(mixed.run(lab, TINY))

    assert list(found) == ["both_ways", "io_100", "io_1000", "cpu"]
    share = figure(found["io_100"], "of the 10,000/s that 100 waits of 10 ms allow")
    assert 0 < share < 1
    assert found["cpu"].jobs == 6


def test_durability_takes_each_server_at_the_levels_that_it_can_give() -> None:
    with durability.opened(None) as labs:
        found = standing(durability.run(labs, Size(1, 400)))

    servers = ["off_memory", "everysec_memory", "everysec_fsync", "always_memory", "always_fsync"]
    assert list(found) == [f"{way}_{server}" for way in ("many", "callers_100") for server in servers]
    assert found["many_everysec_memory"].jobs == 200
    assert all(result.jobs_per_s is not None for result in found.values())


@pytest.mark.parametrize("binary", find_servers().values(), ids=find_servers())
def test_durability_asks_no_server_for_what_it_cannot_give(binary: Path) -> None:
    with durability.opened(None, binary) as labs:
        version = labs["always"].server_version()
        found = standing(durability.run(labs, Size(1, 200)))

    can = not version.startswith(("redis 6.", "redis 7.0"))
    assert ("many_always_fsync" in found) is can
    assert len(found) == (10 if can else 6)


def test_durability_takes_a_named_server_as_it_is(lab: Lab) -> None:
    with durability.opened(lab.url) as labs:
        assert list(standing(durability.run(labs, Size(1, 400)))) == ["many_memory", "callers_100_memory"]


def test_latency_counts_from_the_call_and_both_sides_see_all_jobs(lab: Lab) -> None:
    found = standing(latency.run(lab, Size(1, 250)))

    assert list(found) == ["100", "100_bare", "1000", "1000_bare", "half_of_most", "half_of_most_bare"]
    for result in found.values():
        name = "ms from enqueue to start, "
        quantiles = [figure(result, name + tail) for tail in ("p50", "p99", "p99.9", "max")]
        assert 0 < quantiles[0] <= quantiles[1] <= quantiles[2] <= quantiles[3]
    assert found["100"].jobs == 200


def test_delayed_jobs_start_when_they_are_due(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delayed, "LOOKS", 20)

    found = standing(delayed.run(lab, TINY))

    assert list(found) == ["one_instant", "over_2.5_s", "look_at_none", "look_at_1200"]
    # The clocks of two processes: half a round trip is not known.
    assert figure(found["one_instant"], "ms late, p50") > -20
    assert figure(found["look_at_1200"], "µs of the server a look") > 0


def test_growth(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "QUEUES", (2, 5))
    monkeypatch.setattr(growth, "CLAIMS", (0, 1000))
    monkeypatch.setattr(growth, "IDLE", (2,))

    found = standing(growth.run(lab, TINY))

    assert list(found) == ["waiting_3000", "queues_2", "queues_5", "claims_0", "claims_1000", "idle_2"]
    of_one = figure(found["idle_2"], "requests a minute of a worker")
    assert of_one > 0
    assert figure(found["idle_2"], "requests a minute of all") == pytest.approx(2 * of_one)


def test_memory(lab: Lab) -> None:
    found = standing(memory.run(lab, Size(1, 7000)))

    assert list(found) == ["waiting", "running", "scheduled", "dead", "held", "processes"]
    assert 100 < figure(found["waiting"], "bytes a job, body of 100 B") < 400
    assert figure(found["waiting"], "bytes a job, body of 1 KiB") > 1000
    assert figure(found["held"], "bytes a job left of 100") > 1000
    assert figure(found["processes"], "MB of the worker at the end") > 10


def test_recovery(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "LEASES", {"lease_2_s": (2.0, 0.5)})

    found = standing(recovery.run(lab, TINY))

    assert 0.1 < figure(found["lease_2_s"], "s until all ran again") < 20


def test_scripts(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "CALLS", 3)

    found = standing(scripts.run(lab, TINY))

    assert list(found) == list(scripts.SCRIPTS)
    sizes = {name: list(result.figures) for name, result in islice(found.items(), 1)}
    assert sizes == {"enqueue": [f"µs a job, {jobs} in a call" for jobs in scripts.BATCHES]}
    assert len(found["reclaim"].figures) == 2
