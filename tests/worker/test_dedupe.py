"""Dedupe keys and running workers: who is refused for how long."""

import asyncio
from datetime import timedelta

from streamjobs import (
    Cancel,
    Fixed,
    Latest,
    Retry,
    State,
    StreamJobs,
    UntilDone,
    UntilStarted,
    Window,
)
from tests.worker.bench import Bench
from tests.worker.support import FAST, Queue, drain
from tests.worker.versions import Versions, dedupe_keys

AGAIN = Retry(max_attempts=2, backoff=Fixed(0.001))


async def test_case_E2_a_window_outlives_completion_and_names_the_first_job(app: StreamJobs, queue: Queue) -> None:
    @app.job(dedupe=Window(timedelta(minutes=5), key="n"))
    async def send(n: int) -> int:
        return n

    first = await send.enqueue(1)
    await drain(app)

    second = await send.enqueue(1)
    assert (second.id, second.duplicate) == (first.id, True)
    assert (await second.status()).state is State.DONE
    assert not (await send.enqueue(2)).duplicate
    assert all(0 < ttl <= 300_000 for ttl in dedupe_keys(queue).values())


async def test_a_window_stays_closed_to_others_when_its_job_dies_and_opens_when_its_handler_cancels(
    app: StreamJobs,
) -> None:
    @app.job(dedupe=Window(300), retry=Retry(max_attempts=1))
    async def send(how: str) -> None:
        raise Cancel("never mind") if how == "cancel" else ValueError("no")

    dead, cancelled = await send.enqueue("fail"), await send.enqueue("cancel")
    await drain(app)

    again = await send.enqueue("fail")
    assert (again.id, (await again.status()).state) == (dead.id, State.DEAD)
    assert (await send.enqueue("cancel")).id != cancelled.id


async def test_case_E4_the_key_of_a_killed_workers_job_is_free_when_who_took_over_completes_it(
    app: StreamJobs, queue: Queue
) -> None:
    @app.job(dedupe=UntilDone())
    async def send(n: int) -> None: ...

    first = await send.enqueue(1)
    queue.make_group()
    queue.crash()
    assert (await send.enqueue(1)).duplicate

    await drain(app)

    second = await send.enqueue(1)
    assert (second.id != first.id, second.duplicate) == (True, False)


async def test_case_E5_a_key_is_held_for_as_long_as_its_job_runs(real: StreamJobs, queue: Queue) -> None:
    """Many leases long, with sweeps all the while, and from before half of its TTL has passed."""
    versions = Versions(real, UntilDone(key="site"))
    async with real.worker(options=FAST, lease=0.3, sweep=0.05), real.worker(options=FAST, lease=0.3, sweep=0.05):
        first = await versions.kind.enqueue(1)
        await versions.started.wait()
        [key] = dedupe_keys(queue)
        queue.command("PEXPIRE", f"{queue.keys.base}{key}", 600)
        for _ in range(12):
            assert (await versions.kind.enqueue(2)).id == first.id
            await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=0.1)
        versions.go_on.set()
        await first.result(timeout=10)

    assert versions.seen == [1]
    assert dedupe_keys(queue) == {}


async def test_until_started_refuses_until_the_handler_begins(app: StreamJobs, queue: Queue) -> None:
    versions = Versions(app, UntilStarted(key="site"))
    first = await versions.kind.enqueue(1)
    assert (await versions.kind.enqueue(2)).id == first.id

    async with app.worker(options=FAST):
        await versions.started.wait()
        second = await versions.kind.enqueue(3)
        assert (second.duplicate, second.id != first.id) == (False, True)
        versions.go_on.set()
        assert (await first.result(timeout=10), await second.result(timeout=10)) == (1, 3)

    assert dedupe_keys(queue) == {}


async def test_a_retry_does_not_take_the_key_of_its_start_again(app: StreamJobs, queue: Queue) -> None:
    versions = Versions(app, UntilStarted(key="site"), retry=Retry(max_attempts=2, backoff=Fixed(30)))
    versions.then = ValueError("once")
    versions.go_on.set()
    first = await versions.kind.enqueue(1)
    await drain_once(app, versions)
    assert (await first.status()).state is State.SCHEDULED

    second = await versions.kind.enqueue(2)
    assert not second.duplicate
    assert (await versions.kind.enqueue(3)).id == second.id


async def drain_once(app: StreamJobs, versions: Versions) -> None:
    async with app.worker(options=FAST):
        await versions.started.wait()


async def test_jobs_that_must_be_announced_start_in_one_call_and_many(real: StreamJobs, queue: Queue) -> None:
    seen = []

    @real.job(name="once", dedupe=UntilStarted(), result_ttl=0)
    async def once(n: int) -> None:
        seen.append(n)

    await real.enqueue_many(once.call(n) for n in range(300))

    before = queue.calls().get("evalsha", 0)
    await drain(real, concurrency=300)

    assert sorted(seen) == list(range(300))
    assert queue.calls()["evalsha"] - before < 100
    assert dedupe_keys(queue) == {}


async def test_a_claim_that_was_lost_before_its_start_does_not_start(app: StreamJobs, queue: Queue) -> None:
    queue.make_group()
    seen = []

    @app.job(name="once", dedupe=UntilStarted(), result_ttl=0)
    async def once(n: int) -> None:
        seen.append(n)

    await once.enqueue(1)
    bench = Bench(app, queue)
    bench.read()
    queue.steal()

    await bench.settled()

    assert seen == []
    assert (await once.enqueue(1)).duplicate
    assert (bench.starter.idle, list(bench.queue.held)) == (True, [])


async def test_a_key_made_of_arguments_holds_across_all_ways_to_enqueue(app: StreamJobs) -> None:
    @app.job(name="send", dedupe=UntilDone(key="user_id"))
    async def send(user_id: int, text: str = "") -> None: ...

    first = await send.enqueue(7, "a")
    again = [
        await send.enqueue(user_id=7, text="b"),
        await app.send("send", {"text": "c", "user_id": 7}),
        (await app.enqueue_many([send.call(7)]))[0],
        await send.options(delay=60).enqueue(7),
    ]

    assert [(one.id, one.duplicate) for one in again if not isinstance(one, Exception)] == [(first.id, True)] * 4
    assert not (await send.enqueue(8)).duplicate


async def test_after_a_drain_only_windows_are_left_and_all_have_a_ttl(app: StreamJobs, queue: Queue) -> None:
    async def f(n: int) -> None:
        if n % 3 == 1:
            raise ValueError("no")

    modes = [UntilDone(), UntilStarted(), Latest(), Window(60)]
    kinds = [app.job(name=type(mode).__name__, dedupe=mode, retry=AGAIN)(f) for mode in modes]
    for delay in (None, 0.01, None):
        await app.enqueue_many(kind.options(delay=delay).call(n) for kind in kinds for n in range(6))
    await drain(app)
    while queue.counts()["scheduled"]:
        await drain(app)
    await drain(app)

    left = dedupe_keys(queue)
    assert sorted(left) == [f'dedupe:Window:{{"n":{n}}}' for n in range(6)]
    assert min(left.values()) > 0
