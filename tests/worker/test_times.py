"""How long jobs waited and ran: measured whatever came of them, written once a second, and by the end at last."""

import asyncio
from dataclasses import dataclass

import pytest

from streamjobs import Batch, Cancel, JobOptions, Permanent, Retry, Snooze, StreamJobs
from streamjobs.core.errors import OutcomeUnknown, Unavailable
from streamjobs.core.histogram import bucket, edges
from streamjobs.protocol.metrics import ByKind, read
from streamjobs.protocol.upkeep import server_time
from streamjobs.worker.times import Ended
from tests.worker.bench import Bench
from tests.worker.support import FAST, WITHIN_S, Queue, drain, make_app, pause


@dataclass
class Item:
    n: int


def times(queue: Queue) -> ByKind:
    """Return what was measured within this hour, and the last."""
    hour = queue.run(server_time()) // 3_600_000
    found: ByKind = {}
    for number in (hour - 1, hour):
        for kind, fields in queue.run(read(queue.keys.times_of_hour(number))).items():
            for field, count in fields.items():
                kinds = found.setdefault(kind, {})
                kinds[field] = kinds.get(field, 0) + count
    return found


def buckets(fields: dict[str, int], name: str) -> dict[int, int]:
    return {int(field.partition(".")[2]): n for field, n in fields.items() if field.startswith(f"{name}.")}


async def test_a_job_is_measured_from_when_it_was_ready(app: StreamJobs, queue: Queue) -> None:
    @app.job(name="nap")
    async def nap() -> None:
        await pause(0.02)

    await app.enqueue_many(nap.call() for _ in range(20))
    await pause(0.05)
    await drain(app)

    [(kind, fields)] = times(queue).items()
    assert (kind, fields["ran"]) == ("nap", 20)
    run, wait = buckets(fields, "run"), buckets(fields, "wait")
    assert sum(run.values()) == sum(wait.values()) == 20
    assert min(run) >= bucket(19_000)
    assert min(wait) >= bucket(49)
    for counts, total in ((run, fields["run_us"]), (wait, fields["wait_ms"])):
        assert sum(edges(index)[0] * n for index, n in counts.items()) <= total
        assert total < sum(edges(index)[1] * n for index, n in counts.items())


async def test_each_job_of_a_batch_ran_for_as_long_as_all_of_it(app: StreamJobs, queue: Queue) -> None:
    """It holds a slot for that long."""

    @app.job(name="nap", batch=Batch(4, 60))
    async def nap(items: list[Item]) -> None:
        await pause(0.1)

    await app.enqueue_many(nap.call(Item(n)) for n in range(4))
    await drain(app)

    fields = times(queue)["nap"]
    assert fields["ran"] == 4
    assert fields["run_us"] >= 4 * 99_000
    assert min(buckets(fields, "run")) >= bucket(99_000)


async def test_every_start_counts_whatever_came_of_it(url: str, namespace: str, queue: Queue) -> None:
    app = make_app(url, namespace, defaults=JobOptions(queue="q", retry=Retry(max_attempts=1)))

    @app.job(name="ends")
    async def ends(how: str) -> str:
        if how == "done":
            return how
        raise {"dead": Permanent, "cancelled": Cancel}.get(how, ValueError)(how)

    for how in ("done", "dead", "cancelled", "fails"):
        await ends.enqueue(how)
    # Never started: it does not decode.
    await app.send("ends", {"how": "done"}, expires=60)
    queue.add("kind", "ends", "body", "[]")
    await drain(app)
    await app.aclose()

    assert times(queue)["ends"]["ran"] == 5


async def test_a_snoozed_start_counts(app: StreamJobs, queue: Queue) -> None:
    @app.job(name="snoozes")
    async def snoozes() -> None:
        raise Snooze(60)

    await snoozes.enqueue()
    await drain(app)

    assert times(queue)["snoozes"]["ran"] == 1


async def test_a_running_worker_writes_within_a_second_and_then_nothing(real: StreamJobs, queue: Queue) -> None:
    @real.job(name="quick")
    async def quick() -> None: ...

    async with real.worker(options=FAST):
        await quick.enqueue()
        async with asyncio.timeout(WITHIN_S):
            while not times(queue):
                await asyncio.sleep(0)
        with queue.monitored() as seen:
            await pause(1.2)

    assert not [line for line in seen if b"times:" in line]


@pytest.mark.parametrize(("error", "kept"), [(Unavailable("away", word="LOADING"), 1), (OutcomeUnknown("cut"), 0)])
async def test_what_could_not_be_written_is_kept_unless_it_may_have_been(
    app: StreamJobs, queue: Queue, error: Exception, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job(name="quick")
    async def quick() -> None: ...

    bench = Bench(app, queue)
    queue.make_group()
    await quick.enqueue()
    bench.read()
    while bench.runner.finished < 1:
        await asyncio.sleep(0)
    await bench.settled()

    async def fail(requests: object) -> list[Exception]:
        return [error]

    with monkeypatch.context() as patch:
        patch.setattr(bench.station.executor, "run_all", fail)
        await bench.settler.times.tick()
    await bench.settler.times.tick()

    assert times(queue).get("quick", {}).get("ran", 0) == kept


async def test_each_batch_is_told_once_by_kind_and_outcome(app: StreamJobs, queue: Queue) -> None:
    """To all who want to know; a job that was handed back before it began has not ended."""

    @app.job(name="quick")
    async def quick() -> None: ...

    bench = Bench(app, queue)
    told: list[Ended] = []
    bench.settler.on_settling.append(told.append)
    queue.make_group()
    await app.enqueue_many(quick.call() for _ in range(3))
    bench.read()
    while bench.runner.finished < 3:
        await asyncio.sleep(0)
    await quick.enqueue()
    [claim] = queue.read("me")
    unstarted = bench.queue.add(claim)
    assert unstarted
    bench.settler.release(unstarted)
    await bench.settled()

    assert sorted((one.kind, one.outcome, one.count, len(one.run_us), len(one.wait_ms)) for one in told) == [
        ("_undecodable", "released", 0, 0, 0),
        ("quick", "done", 3, 3, 3),
    ]
