"""Arguments and results whose classes raise what nobody expects: they cost their job, and no worker or slot."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from streamjobs import Batch, Concurrency, JobFailed, Retry, StreamJobs, Temporary
from tests.worker.bench import Bench, crash_marked
from tests.worker.support import FAST, WITHIN_S, Queue, drain


@dataclasses.dataclass
class Picky:
    """Refuses what was enqueued before it became so."""

    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise KeyError("poison")


class Model:
    """A pydantic model by its duck type."""

    def __init__(self, n: int) -> None:
        self.n = n

    def model_dump(self, *, mode: str) -> int:
        if self.n < 0:
            raise LookupError("cannot be dumped")
        return self.n

    @classmethod
    def model_validate(cls, value: Any) -> "Model":
        if value == "poison":
            raise KeyError("poison")
        return cls(value)


@dataclasses.dataclass
class Named:
    name: Model


async def picky(value: Picky) -> None: ...


async def modelled(value: Model) -> None: ...


async def many(items: list[Named]) -> None: ...


POISONED: dict[str, tuple[Callable[..., Any], dict[str, Any], str]] = {
    "a dataclass": (picky, {}, '{"value":{"n":-1}}'),
    "a model": (modelled, {}, '{"value":"poison"}'),
    "an item of a batch": (many, {"batch": Batch(max_items=2, max_wait=0.001)}, '{"name":"poison"}'),
    "one that is limited": (picky, {"concurrency": 1}, '{"value":{"n":-1}}'),
    "the key of a limit": (modelled, {"concurrency": Concurrency(1, key="value")}, '{"value":-1}'),
}
each = pytest.mark.parametrize(("function", "options", "body"), POISONED.values(), ids=POISONED)


@each
async def test_arguments_that_raise_anything_are_dead_and_the_worker_goes_on(
    app: StreamJobs, queue: Queue, function: Callable[..., Any], options: dict[str, Any], body: str
) -> None:
    app.job(name="k", **options)(function)
    app.job(name="good")(fine)
    queue.add("kind", "k", "body", body)
    await app.kind("good").enqueue()

    await drain(app, concurrency=1)

    [dead] = queue.dead()
    assert (dead["reason"], dead["body"]) == (b"undecodable", body.encode())
    assert b"Error: " in dead["error"]
    assert (queue.totals()["done"], queue.pending()) == (1, [])


async def fine(x: int = 0) -> int:
    return x


@pytest.mark.parametrize("marks", [1, 2], ids=["in company", "alone"])
async def test_of_a_suspect_too(app: StreamJobs, queue: Queue, marks: int) -> None:
    app.job(name="k")(picky)
    app.job(name="good")(fine)
    bench = Bench(app, queue)
    queue.make_group()
    queue.add("kind", "k", "body", '{"value":{"n":-1}}')
    queue.crash()
    if marks == 2:
        crash_marked(queue, "second")

    bench.take_over()
    await bench.settled()

    assert [dead["reason"] for dead in queue.dead()] == [b"undecodable"]
    assert (bench.starter.free(), bench.starter.idle, queue.pending()) == (10, True, [])


async def returns(x: int = 0) -> Any:
    return Model(x)


async def returns_many(items: list[Picky]) -> list[Any]:
    return [Model(-1 if item.n == 1 else item.n) for item in items]


async def test_a_result_that_raises_anything_is_dead_and_gives_its_slot_back(app: StreamJobs, queue: Queue) -> None:
    kind = app.job(name="k", result_ttl=60)(returns)

    async with app.worker(options=FAST, concurrency=1):
        bad, good = await kind.enqueue(-1), await kind.enqueue(7)
        with pytest.raises(JobFailed, match=r"the result cannot be kept: .*LookupError: cannot be dumped"):
            await bad.result(timeout=WITHIN_S)
        assert await good.result(timeout=WITHIN_S) == 7

    assert [dead["reason"] for dead in queue.dead()] == [b"permanent"]


async def test_of_a_batch_the_items_behind_it_are_done(app: StreamJobs, queue: Queue) -> None:
    kind = app.job(name="k", result_ttl=60, batch=Batch(max_items=3, max_wait=60))(returns_many)

    async with app.worker(options=FAST, concurrency=3):
        handles = [await kind.enqueue(Picky(n)) for n in range(3)]
        assert [await handles[n].result(timeout=WITHIN_S) for n in (0, 2)] == [0, 2]
        with pytest.raises(JobFailed, match="the result cannot be kept"):
            await handles[1].result(timeout=WITHIN_S)
        again = [await kind.enqueue(Picky(n)) for n in (4, 5, 6)]
        assert [await handle.result(timeout=WITHIN_S) for handle in again] == [4, 5, 6]


class Exiting(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


async def test_an_error_whose_text_exits_is_that_of_its_job_alone(app: StreamJobs, queue: Queue) -> None:
    @app.job(retry=Retry(max_attempts=1))
    async def fail() -> None:
        raise Exiting

    @app.job(retry=Retry(max_attempts=1))
    def fail_plainly() -> None:
        raise Temporary from Exiting()

    await fail.enqueue()
    await fail_plainly.enqueue()

    await drain(app)

    assert (queue.length(), len(queue.dead())) == (0, 2)
