"""Where no more dead jobs are to be kept a worker deletes the oldest ones: counted, and never without a word."""

import logging
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from streamjobs import InvalidOption, OutcomeUnknown, StreamJobs
from streamjobs.core.limits import Bound
from streamjobs.protocol import config
from streamjobs.protocol.calls import Call, Command
from streamjobs.worker import upkeep
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.station import Station
from streamjobs.worker.upkeep import Upkeep
from tests.worker.support import FAST, Queue, drain

FILL = """
for i = ARGV[1], ARGV[2] do
  local job, entry = string.format('1600000000000-%d', i), string.format('%d-0', 1600000000000 + i)
  redis.call('XADD', KEYS[1], entry, 'id', job, 'kind', 'old', 'body', '{}')
  redis.call('HSET', KEYS[2], job, entry)
end
"""


def fill(queue: Queue, count: int) -> None:
    """Let so many jobs be dead, the first of them in 2020."""
    for first in range(1, count + 1, 10_000):
        queue.command("EVAL", FILL, 2, queue.keys.dead, queue.keys.dead_ids, first, min(count, first + 9_999))


def upkeep_of(app: StreamJobs, queue: Queue, bound: Bound | None = None) -> Upkeep:
    station = Station(app.connections.aio(), app.namespace, [WorkerQueue(queue.keys, 15_000)], FAST, "me", Random(1))
    return Upkeep(station, {}, {"q": bound} if bound else {}, {})


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


async def test_case_G5_a_cap_of_ten_thousand_of_fifty_thousand(
    real: StreamJobs, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    queue.make_group()
    fill(queue, 50_000)
    service = upkeep_of(real, queue, Bound(keep_dead=10_000))

    pauses = [await service.tick() for _ in range(5)]

    assert pauses == [upkeep.TRIM_AGAIN_S] * 4 + [upkeep.EVERY_S]
    assert (queue.command("XLEN", queue.keys.dead), queue.command("HLEN", queue.keys.dead_ids)) == (10_000, 10_000)
    [[oldest, _]] = queue.command("XRANGE", queue.keys.dead, "-", "+", "COUNT", 1)
    assert oldest == b"1600000040001-0"
    assert queue.totals() == {"trimmed": 40_000}
    assert warnings(caplog) == ["queue q: the 10000 oldest dead jobs were deleted: keep_dead is 10000"] * 4


async def test_by_default_all_are_kept_in_silence(
    app: StreamJobs, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    queue.make_group()
    fill(queue, 10)

    assert await upkeep_of(app, queue).tick() == upkeep.EVERY_S

    assert (queue.command("XLEN", queue.keys.dead), warnings(caplog)) == (10, [])


async def test_a_worker_keeps_them_for_as_long_as_the_code_says(
    app: StreamJobs, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    fill(queue, 3)
    app.queue("q", keep_dead=timedelta(days=30))

    await drain(app, ["q"])

    assert queue.command("HGET", queue.keys.config, "keep_dead:code") == b"2592000000ms"
    assert queue.command("XLEN", queue.keys.dead) == 0
    assert "queue q: the 3 oldest dead jobs were deleted: keep_dead is 30 days, 0:00:00" in warnings(caplog)


async def test_what_an_operator_sets_goes_before_the_code(app: StreamJobs, queue: Queue) -> None:
    queue.make_group()
    fill(queue, 9)
    service = upkeep_of(app, queue, Bound(keep_dead=2))
    await app.queue("q").limit(keep_dead="off")
    await service.tick()
    assert queue.command("XLEN", queue.keys.dead) == 9

    await app.queue("q").limit(keep_dead=5)
    await service.tick()
    assert queue.command("XLEN", queue.keys.dead) == 5

    await app.queue("q").limit(reset=True)
    await service.tick()
    assert queue.command("XLEN", queue.keys.dead) == 2


async def test_what_was_deleted_before_the_server_went_is_said(
    app: StreamJobs, queue: Queue, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.make_group()
    fill(queue, 1000)
    service = upkeep_of(app, queue, Bound(keep_dead=1))
    executor = app.connections.aio()
    run, trims = executor.run, []

    async def broken(request: Call[Any] | Command[Any]) -> Any:
        if isinstance(request, Call) and request.script == "trim":
            trims.append(request)
            if len(trims) == 2:
                raise OutcomeUnknown("no reply came")
        return await run(request)

    monkeypatch.setattr(
        service, "_executor", type("Broken", (), {"run": staticmethod(broken), "run_all": executor.run_all})
    )
    with pytest.raises(OutcomeUnknown):
        await service.tick()

    assert warnings(caplog) == ["queue q: the 500 oldest dead jobs were deleted: keep_dead is 1"]


@pytest.mark.parametrize(
    "value", [0, -1, True, 1.5, "10", 10**10, timedelta(seconds=59), timedelta(0), timedelta(days=5000)]
)
def test_what_can_be_kept_has_bounds(app: StreamJobs, value: Any) -> None:
    with pytest.raises(InvalidOption, match="keep_dead"):
        app.queue("q", keep_dead=value)
    with pytest.raises(InvalidOption, match="keep_dead"):
        app.queue("q").limit_sync(keep_dead=value)


def test_what_is_said_of_it_is_kept_when_something_else_is_said(app: StreamJobs) -> None:
    app.queue("q", keep_dead=5)
    app.queue("q", max_waiting=7)
    app.queue("q")

    assert app.registry.bounds["q"] == Bound(7, keep_dead=5)
    assert config.KEEP_DEAD == "keep_dead"
