"""A worker that claims a job again while it still writes of its earlier claim: the later one is not forgotten."""

from collections.abc import Callable
from typing import Any

import pytest

from streamjobs import StreamJobs
from streamjobs.core.job import Bury, Claim, Complete, DeadReason
from streamjobs.protocol import leases
from tests.faults.proxy import Act, Proxy, Rule
from tests.worker.bench import Bench
from tests.worker.support import Arm, Queue, drain, make_app, messages

Again = Callable[[], list[Claim]]


@pytest.fixture
def take(queue: Queue) -> Again:
    """Takes what was given back, as this worker does when the bell rings."""
    return lambda: queue.run(leases.take(queue.keys, "me", 10, 0.0))  # type: ignore[no-any-return]


@pytest.fixture
def sweep(queue: Queue) -> Again:
    """Takes over what has been silent, as this worker does."""

    def sweep() -> list[Claim]:
        queue.silence()
        swept: leases.Swept = queue.run(leases.reclaim(queue.keys, "me", 1000, leases.SWEEP_BEGIN, 10, 0.0))
        return swept.claims

    return sweep


def noting(app: StreamJobs) -> list[int]:
    ran: list[int] = []

    @app.job(name="note")
    async def note(n: int) -> None:
        ran.append(n)

    return ran


async def claimed(app: StreamJobs, queue: Queue) -> tuple[Bench, Any]:
    """Return a bench whose worker holds one job, and that claim; its lease is a minute."""
    queue.make_group()
    await app.kind("note").enqueue(1)
    bench = Bench(app, queue)
    [claim] = queue.read("me")
    execution = bench.queue.add(claim)
    assert execution is not None
    assert bench.runner.prepare(execution, bench.station.clock)
    return bench, execution


def at(failpoint: Arm, name: str, time: int, bench: Bench, again: Again) -> None:
    """Let the worker claim its job again when it comes by there for the n-th time."""
    left = iter(range(time, 0, -1))

    def act() -> None:
        if next(left, 0) == 1:
            [claim] = again()
            assert bench.queue.add(claim) is None

    failpoint(name, act)


def given_back(bench: Bench, queue: Queue) -> bool:
    return not bench.queue.held and [holder for _, holder, *_ in queue.pending()] == [b"released"]


async def test_a_job_taken_before_its_release_is_answered_is_given_back_again(
    app: StreamJobs, queue: Queue, take: Again, failpoint: Arm
) -> None:
    ran = noting(app)
    bench, execution = await claimed(app, queue)
    at(failpoint, "settle.after", 1, bench, take)

    bench.settler.release(execution)
    await bench.settler.drained()

    assert given_back(bench, queue)
    await drain(app)
    assert ran == [1]


async def test_a_job_taken_before_its_release_is_repeated_is_given_back_again(
    server_url: str, namespace: str, queue: Queue, take: Again, failpoint: Arm, caplog: pytest.LogCaptureFixture
) -> None:
    with Proxy(server_url) as proxy:
        app = make_app(proxy.url, namespace)
        ran = noting(app)
        bench, execution = await claimed(app, queue)
        lost = proxy.add(Rule(Act.DROP, "release", side="reply", times=1))
        at(failpoint, "settle.before", 2, bench, take)

        bench.settler.release(execution)
        await bench.settler.drained()

        assert lost.hits == 1
        assert given_back(bench, queue)
        await drain(app)
        await app.aclose()
    assert ran == [1]
    assert not [text for text in messages(caplog) if "too late" in text]


async def test_a_decision_that_an_own_sweep_has_overtaken_gives_the_job_back(
    app: StreamJobs, queue: Queue, sweep: Again, failpoint: Arm
) -> None:
    noting(app)
    bench, execution = await claimed(app, queue)
    at(failpoint, "settle.before", 1, bench, sweep)

    bench.settler.decided(execution, Bury(DeadReason.PERMANENT, "no", "bug"))
    await bench.settler.drained()

    assert given_back(bench, queue)
    assert queue.counts()["dead"] == 0


async def test_a_success_ends_the_later_claim_too(app: StreamJobs, queue: Queue, sweep: Again, failpoint: Arm) -> None:
    noting(app)
    bench, execution = await claimed(app, queue)
    at(failpoint, "settle.before", 1, bench, sweep)

    bench.settler.decided(execution, Complete(1))
    await bench.settler.drained()

    assert (bench.queue.held, queue.pending(), queue.length()) == ({}, [], 0)
