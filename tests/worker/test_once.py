"""ctx.once: an effect is had once, or as often as it was chosen to be."""

import asyncio
from typing import Any

import msgspec
import pytest

from streamjobs import Context, EffectUnderWay, EffectUnsure, InvalidOption, JobFailed, Retry, StreamJobs
from streamjobs.core.retry import Fixed
from tests.worker.support import FAST, Flag, Queue, drain

AT_ONCE = Retry(max_attempts=3, backoff=Fixed(0))


class Receipt(msgspec.Struct):
    id: str
    cents: int


class Welcome:
    """A kind that sends an email guarded by a key, and counts the emails."""

    def __init__(self, app: StreamJobs, **options: Any) -> None:
        self.sent: list[int] = []
        self.told: list[Any] = []

        async def welcome(ctx: Context[Any], n: int, key: str | None = "email:42:welcome") -> None:
            async with ctx.once(key, type=Receipt, **options) as effect:
                if effect.needed:
                    self.sent.append(n)
                    await self.during(ctx, n)
                    effect.value = Receipt(f"m-{n}", 7)
            self.told.append(effect.value)
            await self.after(ctx, n)

        self.during = self.after = _nothing
        self.kind = app.job(name="welcome", retry=AT_ONCE)(welcome)


async def _nothing(ctx: Context[Any], n: int) -> None:
    """What happens in most runs."""


async def _fail_at_first(ctx: Context[Any], n: int) -> None:
    if ctx.attempt == 1:
        raise ConnectionError("no")


async def test_jobs_of_one_key_have_the_effect_once_and_its_value_all(app: StreamJobs) -> None:
    welcome = Welcome(app)
    for n in (1, 2, 3):
        await welcome.kind.enqueue(n)
        await drain(app)

    assert welcome.sent == [1]
    assert welcome.told == [Receipt("m-1", 7)] * 3


async def test_without_a_key_each_job_has_its_own(app: StreamJobs) -> None:
    welcome = Welcome(app)
    welcome.after = _fail_at_first
    await welcome.kind.enqueue(1, None)
    await welcome.kind.enqueue(2, None)

    await drain(app)

    assert sorted(welcome.sent) == [1, 2]
    assert len(welcome.told) == 4


async def test_block_that_raises_records_nothing(app: StreamJobs) -> None:
    welcome = Welcome(app)
    welcome.during = _fail_at_first
    await welcome.kind.enqueue(1)

    await drain(app)

    assert welcome.sent == [1, 1]


@pytest.mark.parametrize(("if_unsure", "sent", "told"), [("run", [1, 1], 1), ("skip", [1], 1), ("raise", [1], 0)])
async def test_first_lets_the_caller_choose_where_it_may_have_happened(
    app: StreamJobs, queue: Queue, if_unsure: str, sent: list[int], told: int
) -> None:
    welcome = Welcome(app, first=True, if_unsure=if_unsure)
    welcome.during = _fail_at_first
    handle = await welcome.kind.enqueue(1)

    await drain(app)

    assert (welcome.sent, len(welcome.told)) == (sent, told)
    if if_unsure == "raise":
        with pytest.raises(JobFailed, match=f"effect 'email:42:welcome' was begun by job {handle.id} at 20.* never"):
            await handle.result()
        assert queue.dead()[0]["reason"] == b"permanent"


async def test_repeated_run_is_told_that_it_may_have_happened(app: StreamJobs) -> None:
    seen: list[tuple[int, bool, bool]] = []

    @app.job(retry=AT_ONCE)
    async def charge(ctx: Context[Any]) -> None:
        async with ctx.once(first=True, if_unsure="run") as effect:
            seen.append((ctx.attempt, effect.needed, effect.unsure))
            await _fail_at_first(ctx, 0)

    await charge.enqueue()
    await drain(app)

    assert seen == [(1, True, False), (2, True, True)]


async def test_unsure_effect_can_be_caught(app: StreamJobs) -> None:
    caught: list[tuple[str, str]] = []

    @app.job(retry=AT_ONCE)
    async def charge(ctx: Context[Any]) -> None:
        try:
            async with ctx.once("k", first=True):
                await _fail_at_first(ctx, 0)
        except EffectUnsure as error:
            caught.append((error.key, error.job_id))

    handle = await charge.enqueue()
    await drain(app)

    assert caught == [("k", handle.id)]


@pytest.mark.parametrize("first", [False, True])
async def test_while_one_run_is_at_it_another_comes_back_later_uncharged(app: StreamJobs, first: bool) -> None:
    welcome, begun, go_on, seen = Welcome(app, first=first), Flag(), asyncio.Event(), Flag()
    blamed: set[str] = set()

    async def wait(ctx: Context[Any], n: int) -> None:
        begun.raise_()
        await go_on.wait()

    @app.job(retry=Retry(max_attempts=1, backoff=Fixed(0.01)))
    async def other(ctx: Context[Any]) -> int:
        try:
            async with ctx.once("email:42:welcome") as effect:
                assert not effect.needed
        except EffectUnderWay as error:
            blamed.add(error.job_id)
            if seen.raise_() == 3:
                go_on.set()
            raise
        return ctx.attempt

    welcome.during = wait
    handle = await welcome.kind.enqueue(1)
    async with app.worker(options=FAST):
        await begun.wait()
        assert await (await other.enqueue()).result(timeout=10) == 1

    assert welcome.sent == [1]
    assert blamed == {handle.id}


async def test_plain_functions_write_with(app: StreamJobs) -> None:
    sent: list[int] = []

    @app.job(retry=AT_ONCE)
    def plain(ctx: Context[Any], n: int) -> str:
        with ctx.once("k", type=str) as effect:
            if effect.needed:
                sent.append(n)
                effect.value = f"sent {n}"
        if ctx.attempt == 1:
            raise ConnectionError
        return effect.value

    handles = [await plain.enqueue(n) for n in (1,)]
    await drain(app)
    handles.append(await plain.enqueue(2))
    await drain(app)

    assert sent == [1]
    assert [await handle.result() for handle in handles] == ["sent 1", "sent 1"]


async def test_plain_block_in_an_async_handler_is_an_error(app: StreamJobs) -> None:
    @app.job(retry=Retry(max_attempts=1))
    async def wrong(ctx: Context[Any]) -> None:
        with ctx.once():
            raise AssertionError("not reached")

    handle = await wrong.enqueue()
    await drain(app)

    with pytest.raises(JobFailed, match="use `async with`"):
        await handle.result()


async def test_value_set_without_need_is_an_error(app: StreamJobs) -> None:
    """Who forgot `if effect.needed` must not find out by his customers."""

    @app.job(retry=Retry(max_attempts=1))
    async def forgetful(ctx: Context[Any]) -> None:
        async with ctx.once("k") as effect:
            effect.value = 1

    first, second = await forgetful.enqueue(), None
    await drain(app)
    second = await forgetful.enqueue()
    await drain(app)

    await first.result()
    with pytest.raises(JobFailed, match=r"only behind `if effect\.needed`"):
        await second.result()


async def test_effect_without_a_value_has_none(app: StreamJobs) -> None:
    @app.job
    async def silent(ctx: Context[Any]) -> str:
        async with ctx.once("k") as effect:
            pass
        try:
            return repr(effect.value)
        except Exception as error:
            return str(error)

    first = await silent.enqueue()
    await drain(app)
    second = await silent.enqueue()
    await drain(app)

    assert "has no value yet" in await first.result()
    assert await second.result() == "None"


async def test_effect_whose_value_cannot_be_kept_is_recorded_all_the_same(app: StreamJobs) -> None:
    sent: list[int] = []

    @app.job(retry=AT_ONCE)
    async def odd(ctx: Context[Any], n: int) -> None:
        async with ctx.once("k") as effect:
            if effect.needed:
                sent.append(n)
                effect.value = object()

    first = await odd.enqueue(1)
    await drain(app)
    second = await odd.enqueue(2)
    await drain(app)

    assert sent == [1]
    with pytest.raises(JobFailed, match="recorded without its value"):
        await first.result()
    await second.result()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"key": ""}, "0 bytes"),
        ({"key": "x" * 257}, "257 bytes"),
        ({"key": 5}, "not a string"),
        ({"keep": 0}, "keep=0"),
        ({"keep": float("nan")}, "keep=nan"),
        ({"if_unsure": "run"}, "only with first=True"),
        ({"first": True, "if_unsure": "maybe"}, "use 'raise', 'skip' or 'run'"),
    ],
)
async def test_wrong_arguments_are_refused_before_anything_happens(
    app: StreamJobs, wrong: dict[str, Any], said: str
) -> None:
    refused: list[str] = []

    @app.job
    async def handler(ctx: Context[Any]) -> None:
        with pytest.raises(InvalidOption) as caught:
            ctx.once(**wrong)
        refused.append(str(caught.value))

    await handler.enqueue()
    await drain(app)

    assert said in refused[0]
