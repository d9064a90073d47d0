"""The mode Latest and running workers: the newest arguments are run, once, whatever befalls a run."""

import pytest

from streamjobs import (
    Cancel,
    Fixed,
    JobCancelled,
    JobFailed,
    Latest,
    Retry,
    Snooze,
    State,
    StreamJobs,
)
from tests.worker.bench import Bench
from tests.worker.support import FAST, Queue, drain
from tests.worker.versions import Versions, dedupe_keys


async def test_case_E7_while_one_runs_exactly_one_with_the_newest_follows(app: StreamJobs, queue: Queue) -> None:
    versions = Versions(app, Latest(key="site"))
    async with app.worker(options=FAST):
        first = await versions.kind.enqueue(1)
        await versions.started.wait()
        for version in (2, 3):
            handle = await versions.kind.enqueue(version)
            assert (handle.id, handle.duplicate) == (first.id, True)
        assert (await first.status()).follows
        versions.go_on.set()
        assert await first.result(timeout=10) == 1
        await versions.started.wait(2)

    await drain(app)
    assert versions.seen == [1, 3]
    assert len(set(versions.keys)) == 2
    assert dedupe_keys(queue) == {}


async def test_newest_arguments_replace_those_that_wait(app: StreamJobs, queue: Queue) -> None:
    versions = Versions(app, Latest(key="site"))
    versions.go_on.set()
    first = await versions.kind.enqueue(1)
    await app.enqueue_many([versions.kind.call(2), versions.kind.call("three"), versions.kind.call(4, "other")])
    later = await versions.kind.options(delay=60).enqueue(5)

    await drain(app)

    assert sorted(map(str, versions.seen)) == ["4", "5"]
    assert (later.id, await first.result(timeout=10)) == (first.id, 5)
    assert versions.keys[versions.seen.index(5)] == f"{first.id}+1"
    assert dedupe_keys(queue) == {}


async def test_a_retry_takes_the_newest_arguments_and_a_key_of_its_own_for_effects(app: StreamJobs) -> None:
    versions = Versions(app, Latest(key="site"), retry=Retry(max_attempts=3, backoff=Fixed(0.001)))
    versions.then = ValueError("once")
    async with app.worker(options=FAST):
        first = await versions.kind.enqueue(1)
        await versions.started.wait()
        await versions.kind.enqueue(2)
        versions.go_on.set()
        assert await first.result(timeout=10) == 2

    assert versions.seen == [1, 2]
    assert versions.keys == [first.id, f"{first.id}+1"]


async def test_a_retry_without_newer_arguments_has_the_same_key(app: StreamJobs) -> None:
    versions = Versions(app, Latest(key="site"), retry=Retry(max_attempts=3, backoff=Fixed(0.001)))
    versions.then = ValueError("once")
    versions.go_on.set()
    first = await versions.kind.enqueue(1)
    await versions.kind.enqueue(2)
    async with app.worker(options=FAST):
        assert await first.result(timeout=10) == 2

    assert versions.seen == [2, 2]
    assert versions.keys == [f"{first.id}+1"] * 2


@pytest.mark.parametrize(
    "how", [ValueError("no"), Cancel("enough"), Snooze(0.001)], ids=["dead", "cancelled", "snoozed"]
)
async def test_whatever_ends_a_run_the_newest_is_run_once(app: StreamJobs, how: BaseException, queue: Queue) -> None:
    versions = Versions(app, Latest(key="site"), retry=Retry(max_attempts=1))
    versions.then = how
    async with app.worker(options=FAST):
        first = await versions.kind.enqueue(1)
        await versions.started.wait()
        await versions.kind.enqueue(2)
        versions.go_on.set()
        match how:
            case ValueError():
                with pytest.raises(JobFailed):
                    await first.result(timeout=10)
            case Cancel():
                with pytest.raises(JobCancelled):
                    await first.result(timeout=10)
        await versions.started.wait(2)

    await drain(app)
    assert versions.seen == [1, 2]
    assert dedupe_keys(queue) == {}


async def test_an_operators_cancel_ends_a_run_and_what_would_have_followed(app: StreamJobs, queue: Queue) -> None:
    versions = Versions(app, Latest(key="site"))
    async with app.worker(options=FAST, lease=0.3):
        first = await versions.kind.enqueue(1)
        await versions.started.wait()
        await versions.kind.enqueue(2)
        assert await first.cancel()
        versions.go_on.set()

    await drain(app)
    assert versions.seen == [1]
    assert dedupe_keys(queue) == {}


async def test_a_run_that_is_given_back_at_a_stop_takes_the_newest(app: StreamJobs) -> None:
    versions = Versions(app, Latest(key="site"))
    async with app.worker(options=FAST, grace=0):
        first = await versions.kind.enqueue(1)
        await versions.started.wait()
        await versions.kind.enqueue(2)
    versions.go_on.set()

    async with app.worker(options=FAST):
        assert await first.result(timeout=10) == 2
    assert versions.seen == [1, 2]


async def test_after_a_crash_the_newest_is_run_and_nothing_follows(app: StreamJobs, queue: Queue) -> None:
    versions = Versions(app, Latest(key="site"))
    versions.go_on.set()
    first = await versions.kind.enqueue(1)
    queue.make_group()
    queue.crash()
    await versions.kind.enqueue(2)

    await drain(app)

    assert versions.seen == [2]
    assert await first.result(timeout=10) == 2
    assert dedupe_keys(queue) == {}


async def test_newest_arguments_that_do_not_decode_are_those_that_are_dead(app: StreamJobs, queue: Queue) -> None:
    @app.job(name="typed", dedupe=Latest(key=lambda **_: "k"))
    async def typed(n: int) -> None: ...

    await typed.enqueue(1)
    await app.send("typed", {"n": 2}, dedupe=Latest(), dedupe_key="typed:k")
    broken = queue.command("HGETALL", queue.keys.latest)
    field, value = next((f, v) for f, v in zip(broken[::2], broken[1::2], strict=True) if f.endswith(b"+"))
    queue.command("HSET", queue.keys.latest, field, value.replace(b'{"n":2}', b'{"n":"}'))

    await drain(app)

    [dead] = queue.dead()
    assert (dead["reason"], dead["body"], dead["newer"]) == (b"undecodable", b'{"n":"}', b"1")


async def test_a_suspect_is_announced_too(app: StreamJobs, queue: Queue) -> None:
    versions = Versions(app, Latest(key="site"))
    versions.go_on.set()
    queue.make_group()
    first = await versions.kind.enqueue(1)
    queue.crash()
    await versions.kind.enqueue(2)
    bench = Bench(app, queue)

    bench.take_over()
    await bench.settled()
    await versions.started.wait()
    await bench.settled()

    assert (versions.seen, (await first.status()).result) == ([2], 2)


async def test_a_stop_before_the_start_gives_the_job_back(app: StreamJobs, queue: Queue) -> None:
    versions = Versions(app, Latest(key="site"))
    queue.make_group()
    first = await versions.kind.enqueue(1)
    bench = Bench(app, queue)
    bench.read()
    bench.starter.stop()

    await bench.settled()

    assert versions.seen == []
    assert (await first.status()).state is State.WAITING
