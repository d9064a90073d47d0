"""`app.queue(name).dead`: what the command line does, for programs, on either kind of code."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from streamjobs import InvalidOption, JobOptions, NotFound, Permanent, Rate, Refused, Retry, StreamJobs, UsageError
from streamjobs.dead import DeadLetters
from streamjobs.operate import scan
from tests.worker.support import FAST


@pytest.fixture
async def app(url: str, namespace: str) -> AsyncIterator[StreamJobs]:
    app = StreamJobs(url, namespace=namespace, defaults=JobOptions(queue="q", retry=Retry(max_attempts=1)))

    @app.job(name="fail")
    async def fail(n: int, text: str = "") -> None:
        raise ValueError(f"user {n} is gone")

    @app.job(name="refuse")
    async def refuse(n: int) -> None:
        raise Permanent("no")

    yield app
    await app.aclose()


@pytest.fixture
async def letters(app: StreamJobs) -> DeadLetters:
    """5 dead of one kind and 2 of another."""
    await app.enqueue_many([app.kind("fail").call(n) for n in range(5)])
    await app.enqueue_many([app.kind("refuse").call(n) for n in range(2)])
    await work(app)
    return app.queue("q").dead


async def work(app: StreamJobs) -> None:
    from msgspec.structs import replace

    assert await app.make_worker(["q", "other"], replace(FAST, burst=True)).run()


async def count(letters: DeadLetters) -> int:
    return len((await letters.page(limit=1000)).jobs)


async def test_pages_follow_one_another(letters: DeadLetters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "PAGE", 2)
    first = await letters.page(limit=4)
    rest = letters.page_sync(first.next, limit=4)

    assert (len(first.jobs), len(rest.jobs), rest.next) == (4, 3, "")
    assert [one.id for one in [*first.jobs, *rest.jobs]] == [one.id for one in (await letters.page()).jobs]


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ({"kind": "fail"}, 5),
        ({"kind": ["fail", "refuse"]}, 7),
        ({"reason": "permanent"}, 2),
        ({"error": "user N is gone"}, 5),
        ({"error_class": ["validation"]}, 5),
        ({"where": {"n": 1}}, 2),
        ({"where": {"n": "1"}}, 0),
        ({"where": {"n": 1}, "kind": "fail"}, 1),
        ({"since": timedelta(hours=1)}, 7),
        ({"since": datetime(2100, 1, 1, tzinfo=UTC)}, 0),
        ({"until": timedelta(hours=1)}, 0),
        ({"until": datetime(2100, 1, 1, tzinfo=UTC)}, 7),
        ({"limit": 3}, 3),
    ],
    ids=str,
)
async def test_selections(letters: DeadLetters, which: Any, expected: int) -> None:
    assert len((await letters.page(**which)).jobs) == expected
    assert sum(group.count for group in await letters.groups(**which)) == expected
    assert sum(group.count for group in letters.groups_sync(**which)) == expected
    assert len([line async for line in letters.export(**which)]) == len(list(letters.export_sync(**which))) == expected


@pytest.mark.parametrize(
    ("which", "said"),
    [
        ({"kinds": "fail"}, "kinds: no such selection; there are kind, reason"),
        ({"kind": []}, "kind=[]: it is empty"),
        ({"kind": ""}, "kind='': it is empty"),
        ({"ids": []}, "ids=[]: it is empty"),
        ({"where": {}}, "where={}: it is empty"),
        ({"error": ""}, "error='': it is empty"),
        ({"reason": "bad"}, "reason 'bad': use exhausted"),
        ({"limit": 0}, "limit=0"),
        ({"limit": True}, "limit=True"),
        ({"ids": ["other:1-0"]}, "job other:1-0 is not of queue q"),
        ({"ids": ["nonsense"]}, "job id 'nonsense'"),
        ({"ids": ["q:1-0"], "limit": 1}, "leave out limit"),
        ({"since": timedelta(hours=1), "until": timedelta(hours=2)}, "since is later than until"),
        ({"since": datetime(2030, 1, 1)}, "has no time zone"),  # noqa: DTZ001
        ({"since": timedelta(hours=-1)}, "since="),
    ],
    ids=str,
)
async def test_what_would_mean_others_than_it_says_is_refused(letters: DeadLetters, which: Any, said: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        await letters.purge(**which)
    assert said in str(caught.value)
    with pytest.raises(InvalidOption):
        letters.replay_sync(**which)
    assert await count(letters) == 7


async def test_replay_with_other_arguments(app: StreamJobs, letters: DeadLetters) -> None:
    done = await letters.replay(arguments={"n": 7}, kind="fail")

    assert (done.done, done.left) == (5, {})
    await work(app)
    assert len((await letters.page(kind="fail", where={"n": 7})).jobs) == 5


async def test_replay_leaves_dead_what_the_handlers_would_not_take(app: StreamJobs, letters: DeadLetters) -> None:
    await app.send("stranger", {"m": 1})

    done = await letters.replay(arguments={"text": "x"}, rate=Rate(10_000))

    assert (done.done, len(done.left)) == (5, 2)
    assert {why.split(":")[0] for why in done.left.values()} == {"refuse"}
    assert letters.replay_sync(arguments={"text": "x"}, check=False).done == 2


async def test_replay_to_another_queue(app: StreamJobs, letters: DeadLetters) -> None:
    with pytest.raises(NotFound, match="queue nowhere"):
        await letters.replay(to="nowhere")

    done = letters.replay_sync(to="other", kind="refuse")

    assert (done.done, await count(letters)) == (2, 5)
    assert (await letters.replay(new_key=True, limit=1)).done == 1
    await work(app)
    assert {one.meta.origin.partition(":")[0] for one in (await app.queue("other").dead.page()).jobs} == {"q"}


async def test_single_jobs(letters: DeadLetters) -> None:
    first, second, *_ = (await letters.page()).jobs
    assert (await letters.examine(first.id)).replayable
    assert letters.examine_sync(first.id).job.id == first.id

    assert (await letters.purge(ids=[first.id])).done == 1
    assert letters.replay_sync(ids=[second.id]).done == 1

    with pytest.raises(Refused):
        await letters.examine(second.id)
    with pytest.raises(Refused):
        await letters.purge(ids=[second.id])


async def test_what_was_exported_is_restored(letters: DeadLetters) -> None:
    before = [one.id for one in (await letters.page()).jobs]
    lines = [line async for line in letters.export()]
    assert letters.purge_sync().done == 7

    with pytest.raises(UsageError):
        await letters.restore([*lines, b"damaged"])
    assert await count(letters) == 0

    assert (await letters.restore([*lines, b""])).done == 7
    assert letters.restore_sync(lines).dead == 7
    assert [one.id for one in (await letters.page()).jobs] == before
    assert json.loads(lines[0])["id"] == before[0]
