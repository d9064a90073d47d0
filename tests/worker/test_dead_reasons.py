"""Case J7: whatever way a job goes to its death, the reason is one of those that are documented."""

import asyncio
import json
from typing import Any

import pytest

from streamjobs import DeadReason, Permanent, Retry, StreamJobs
from streamjobs.core.retry import Fixed
from tests.worker.bench import crash_marked
from tests.worker.support import Queue, drain

ONCE = Retry(max_attempts=1)
PARKED_LONG = b'{"p":2000}'


@pytest.fixture
def dying(app: StreamJobs) -> StreamJobs:
    """An app with a kind for each way."""

    @app.job(name="fails", retry=Retry(max_attempts=2, backoff=Fixed(0.01)))
    async def fails() -> None:
        raise OSError("gone")

    @app.job(name="hangs", retry=ONCE, timeout=0.05)
    async def hangs() -> None:
        await asyncio.Event().wait()

    @app.job(name="blocks", retry=ONCE, timeout=0.05)
    def blocks() -> None:
        raise TimeoutError("no answer")

    @app.job(name="refuses")
    async def refuses() -> None:
        raise Permanent("never")

    @app.job(name="listed", retry=Retry(permanent=(KeyError,)))
    async def listed() -> None:
        raise KeyError("k")

    @app.job(name="returns", result_ttl=60)
    async def returns() -> Any:
        return object()

    @app.job(name="takes")
    async def takes(n: int) -> None: ...

    @app.job(name="kills")
    async def kills() -> None: ...

    return app


WAYS: dict[str, tuple[DeadReason, list[str | bytes]]] = {
    "fails": (DeadReason.EXHAUSTED, []),
    "hangs": (DeadReason.EXHAUSTED, []),
    "blocks": (DeadReason.EXHAUSTED, []),
    "refuses": (DeadReason.PERMANENT, []),
    "listed": (DeadReason.PERMANENT, []),
    "returns": (DeadReason.PERMANENT, []),
    "takes, no JSON": (DeadReason.UNDECODABLE, ["kind", "takes", "body", b"\xff"]),
    "takes, others": (DeadReason.UNDECODABLE, ["kind", "takes", "body", '{"m":1}']),
    "takes, bad meta": (DeadReason.UNDECODABLE, ["kind", "takes", "body", '{"n":1}', "meta", "no JSON"]),
    "takes, later meta": (DeadReason.UNDECODABLE, ["kind", "takes", "body", '{"n":1}', "meta", '{"v":9}']),
    "no kind": (DeadReason.UNDECODABLE, ["body", '{"n":1}']),
    "unknown": (DeadReason.UNKNOWN_KIND, ["kind", "unknown", "body", "{}", "meta", PARKED_LONG]),
    "expired": (DeadReason.EXPIRED, ["kind", "takes", "body", '{"n":1}', "meta", '{"ea":1}']),
}


@pytest.mark.parametrize("way", WAYS)
async def test_case_J7_every_way_to_death_has_its_reason(dying: StreamJobs, queue: Queue, way: str) -> None:
    reason, fields = WAYS[way]
    queue.make_group()
    if fields:
        queue.command("XADD", queue.keys.stream, "*", *fields)
    else:
        await dying.send(way, queue="q", result_ttl=60 if way == "returns" else 0)

    await drain(dying)

    [row] = queue.dead()
    assert row["reason"].decode() == reason
    assert row["error"]
    assert isinstance(json.loads(row["history"]), list)


async def test_case_J7_a_job_that_ends_its_process_has_its_reason(dying: StreamJobs, queue: Queue) -> None:
    queue.make_group()
    await dying.send("kills", queue="q")
    queue.crash()
    crash_marked(queue, "second")
    crash_marked(queue, "third")

    await drain(dying)

    assert [row["reason"].decode() for row in queue.dead()] == [DeadReason.CRASH_LIMIT]


def test_every_reason_is_tried() -> None:
    tried = {reason for reason, _ in WAYS.values()} | {DeadReason.CRASH_LIMIT}

    assert tried == set(DeadReason)
