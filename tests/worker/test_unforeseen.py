"""An error that nobody foresaw, wherever in a worker: it ends with that error, and what it held goes to others."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from streamjobs import Batch, StreamJobs
from streamjobs.worker.batch import Gatherer
from streamjobs.worker.fetch import Fetcher
from streamjobs.worker.lease import LeaseKeeper
from streamjobs.worker.mark import Marker
from streamjobs.worker.run import Runner
from streamjobs.worker.settle import Settler
from tests.worker.bench import Bench, crash_marked
from tests.worker.support import FAST, WITHIN_S, Queue, drain, messages


class Unforeseen(Exception):
    pass


def fails(*args: Any, **options: Any) -> Any:
    raise Unforeseen


def failing_once(real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that fails at first."""
    calls: list[int] = []

    def function(*args: Any, **options: Any) -> Any:
        calls.append(1)
        return fails() if len(calls) == 1 else real(*args, **options)

    return function


def held(queue: Queue) -> list[bytes]:
    """Return who holds a claim that was not given back."""
    return [holder for _, holder, *_ in queue.pending() if holder != b"released"]


async def fine(x: int = 0) -> int:
    return x


@dataclass
class Item:
    n: int


async def batch(items: list[Item]) -> None: ...


async def ends(app: StreamJobs, queue: Queue, **changes: Any) -> bool:
    """Say whether a worker ends with the error."""
    queue.make_group()
    async with asyncio.timeout(WITHIN_S):
        try:
            await app.make_worker(options=FAST.changed({"grace": 0.1, **changes})).run()
        except Unforeseen:
            return True
    return False


CULPRITS: dict[str, tuple[type, str]] = {
    "in the end of a job": (Settler, "returned"),
    "in the start of a job": (Runner, "start"),
    "in reading": (Fetcher, "_read"),
}
each = pytest.mark.parametrize(("whose", "name"), CULPRITS.values(), ids=CULPRITS)


@each
async def test_the_worker_ends_and_the_next_one_runs_the_job_as_a_first_attempt(
    app: StreamJobs, queue: Queue, whose: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = app.job(name="k", result_ttl=0)(fine)
    await kind.enqueue()

    with monkeypatch.context() as patched:
        patched.setattr(whose, name, fails)
        assert await ends(app, queue)

    assert held(queue) == []
    await drain(app)
    assert (queue.totals()["done"], queue.totals().get("retried", 0)) == (1, 0)


async def test_in_the_marking_of_a_suspect(app: StreamJobs, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = app.job(name="k", result_ttl=0)(fine)
    queue.make_group()
    await kind.enqueue()
    queue.crash()
    monkeypatch.setattr(Marker, "mark", fails)

    assert await ends(app, queue)

    assert held(queue) == []


async def test_in_the_end_of_a_batch_whose_other_items_are_done(
    app: StreamJobs, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = app.job(name="k", result_ttl=0, batch=Batch(max_items=3, max_wait=60))(batch)
    monkeypatch.setattr(Settler, "returned", failing_once(Settler.returned))
    for n in range(3):
        await kind.enqueue(Item(n))

    assert await ends(app, queue)

    assert (queue.totals()["done"], queue.length(), held(queue)) == (2, 1, [])


async def test_in_the_time_of_a_batch_that_is_up(
    app: StreamJobs, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = app.job(name="k", batch=Batch(max_items=3, max_wait=0.01))(batch)
    await kind.enqueue(Item(1))
    monkeypatch.setattr(Gatherer, "_start", failing_once(Gatherer._start))

    assert await ends(app, queue)
    assert held(queue) == []


async def test_in_the_thread_that_keeps_leases(app: StreamJobs, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeaseKeeper, "round", fails)

    assert await ends(app, queue)


async def test_it_is_said_at_once(
    app: StreamJobs, queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app.job(name="k", result_ttl=0)(fine)
    await app.kind("k").enqueue()
    monkeypatch.setattr(Settler, "returned", fails)

    assert await ends(app, queue)

    assert messages(caplog, "ERROR") == ["this worker ends, since nobody foresaw: Unforeseen()"]
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("marks", [1, 2], ids=["in company", "alone"])
async def test_a_start_that_fails_keeps_nothing_from_starting(
    app: StreamJobs, queue: Queue, marks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.job(name="k")(fine)
    bench = Bench(app, queue)
    queue.make_group()
    await app.kind("k").enqueue()
    queue.crash()
    if marks == 2:
        crash_marked(queue, "second")
    monkeypatch.setattr(bench.runner, "start", fails)

    bench.take_over()
    with pytest.raises(Unforeseen):
        await asyncio.wait_for(bench.settler.broken, WITHIN_S)
    await bench.settled()

    assert (bench.starter.free(), bench.starter.waiting) == (10, 0)
