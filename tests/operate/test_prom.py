"""The metrics of queues: the counts of `stats`, queue by queue, for as many queues as a monitor can take."""

from prometheus_client.parser import text_string_to_metric_families

from streamjobs.core.server import ServerFacts
from streamjobs.operate.prom import MOST_QUEUES, families
from streamjobs.operate.stats import QueueStats, Snapshot

MAIL = QueueStats(
    "mail", waiting=1, running=2, limited=3, slots=4, scheduled=5, retrying=6, dead=7, oldest_ready_ms=8500, workers=9,
    lease_ms=10, paused=True, totals={"done": 11, "enqueued": 12},
)  # fmt: skip

Sample = tuple[str, tuple[str, ...]]


def samples(*queues: QueueStats, health: dict[str, int] | None = None) -> dict[Sample, float]:
    """Return each sample by its name and the values of its labels."""
    text = families(Snapshot(1, ServerFacts(), list(queues)), health)
    return {
        (sample.name.removeprefix("streamjobs_queue_"), tuple(sample.labels.values())): sample.value
        for one in text_string_to_metric_families(text)
        for sample in one.samples
    }


def test_each_fact_of_a_queue_is_a_sample() -> None:
    assert samples(MAIL) == {
        ("jobs", ("mail", "waiting")): 1,
        ("jobs", ("mail", "running")): 2,
        ("jobs", ("mail", "scheduled")): 5,
        ("jobs", ("mail", "retrying")): 6,
        ("jobs", ("mail", "dead")): 7,
        ("limited_jobs", ("mail",)): 3,
        ("oldest_ready_seconds", ("mail",)): 8.5,
        ("workers", ("mail",)): 9,
        ("slots", ("mail",)): 4,
        ("paused", ("mail",)): 1,
        # Before the first death: what begins at 1 has not grown.
        ("moves_total", ("mail", "dead")): 0,
        ("moves_total", ("mail", "done")): 11,
        ("moves_total", ("mail", "enqueued")): 12,
    }


def test_health_is_told_where_it_was_judged() -> None:
    assert samples(MAIL, health={"mail": 2})["health", ("mail",)] == 2
    assert not [name for name, _ in samples(MAIL) if name == "health"]


def test_no_queue_is_no_sample() -> None:
    assert samples() == {}


def test_case_T13_queues_without_end_are_one_label() -> None:
    many = [QueueStats(f"q{n:05}", waiting=1, oldest_ready_ms=n, totals={"done": 2}) for n in range(MOST_QUEUES)]
    rest = [QueueStats("x", waiting=5, oldest_ready_ms=9, totals={"done": 3}), QueueStats("y", waiting=6, paused=True)]

    found = samples(*many, *rest, health={"q00000": 1, "x": 1, "y": 2})

    assert len({labels[0] for _, labels in found}) == MOST_QUEUES + 1
    assert found["jobs", ("q00999", "waiting")] == 1
    assert found["jobs", ("_other", "waiting")] == 11
    assert found["oldest_ready_seconds", ("_other",)] == 0.009
    assert (found["health", ("q00000",)], found["health", ("_other",)]) == (1, 2)
    assert (found["moves_total", ("_other", "done")], found["paused", ("_other",)]) == (3, 1)
