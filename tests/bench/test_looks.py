"""The scenarios of the command line: startup, and looks at a full queue beside an empty one."""

from collections.abc import Iterator
from contextlib import closing

import pytest
import redis

from benchmarks import startup, stats
from benchmarks.document import Result
from benchmarks.duel import Size
from benchmarks.lab import Lab
from benchmarks.server import running
from streamjobs.protocol.keys import QueueKeys

pytestmark = pytest.mark.bench


@pytest.fixture
def lab() -> Iterator[Lab]:
    with running() as url, closing(Lab(url)) as lab:
        yield lab


def test_looks_are_compared_by_time_and_by_requests(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "QUICK_WAITING", 1200)
    monkeypatch.setattr(stats, "LOOKS", 3)

    [result] = stats.run(lab, Size(2, 1))

    assert result.wrong == []
    assert (result.jobs, result.repeats) == (1200, 2)
    requests = result.figures["requests a look, with and without"]
    assert requests.min == requests.max > 20
    assert result.figures["of its time at an empty queue"].median > 0
    with redis.Redis.from_url(lab.url) as client:
        assert client.keys() == []


def test_a_look_that_sees_something_else_makes_it_void(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "QUICK_WAITING", 1200)

    def run(self: Lab, side: str, order: object) -> None:
        with redis.Redis.from_url(lab.url) as client:
            keys = QueueKeys(order.namespace, "default")  # type: ignore[attr-defined]
            client.sadd(f"{keys.namespace}:queues", "default")

    monkeypatch.setattr(Lab, "run", run)

    [result] = stats.run(lab, Size(1, 1))

    assert result.wrong == ["is void: stats saw 0 jobs waiting, there are 1,200"]


def test_startup_is_timed_beside_a_python_that_does_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "RUNS", 1)

    [result] = startup.run(lab, Size(1, 1))

    assert isinstance(result, Result)
    assert result.wrong == []
    nothing, *ours = (name.split(" for ")[1] for name in result.figures)
    assert nothing == "a Python that does nothing"
    assert ours == ["the import of an app", "a first job", "a worker that runs it", "--help", "stats"]
    assert all(0 < spread.median < 60_000 for spread in result.figures.values())
