"""Plain functions in threads: taken by the dozen where they are short, each on its own where they block."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar, copy_context
from typing import Any
from weakref import ref

import pytest

from streamjobs import StreamJobs
from streamjobs.worker.threads import Threads
from tests.worker.support import FAST, WITHIN_S, Queue

Submit = Callable[..., "asyncio.Future[Any]"]
name: ContextVar[str] = ContextVar("name", default="nobody")


class Told:
    """An event loop's door for threads, that counts who comes through."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.times = 0
        self._loop = loop

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._loop, attribute)

    def call_soon_threadsafe(self, *what: Any) -> Any:
        self.times += 1
        return self._loop.call_soon_threadsafe(*what)


@pytest.fixture
async def told() -> Told:
    return Told(asyncio.get_running_loop())


@pytest.fixture
async def threads(told: Told) -> AsyncIterator[Threads]:
    threads = Threads(told)  # type: ignore[arg-type]
    yield threads
    threads.close(5)


@pytest.fixture
def submit(threads: Threads) -> Submit:
    return lambda function: threads.submit(copy_context(), function)


async def test_short_functions_share_threads_and_the_loop_is_not_told_of_each(submit: Submit, told: Told) -> None:
    seen = await asyncio.gather(*[submit(threading.get_ident) for _ in range(5000)])

    assert len(set(seen)) < 100
    assert told.times < 2500
    assert threading.get_ident() not in seen


async def test_as_many_as_were_submitted_can_block_at_once(submit: Submit) -> None:
    meeting = threading.Barrier(100)

    await asyncio.gather(*[submit(lambda: meeting.wait(WITHIN_S)) for _ in range(100)])


async def test_one_that_blocks_holds_up_none_submitted_with_it(submit: Submit) -> None:
    go_on = threading.Event()
    ended: list[int] = []
    rest: list[asyncio.Future[Any]] = []
    for n in range(300):
        blocking = n % 50 == 0
        future = submit(lambda n=n, blocking=blocking: go_on.wait(WITHIN_S) if blocking else ended.append(n))
        rest += [] if blocking else [future]
    try:
        async with asyncio.timeout(WITHIN_S):
            await asyncio.gather(*rest)
        assert len(ended) == 294
    finally:
        go_on.set()


async def test_what_ended_is_told_while_the_next_one_blocks(submit: Submit, threads: Threads) -> None:
    await submit(lambda: None)
    go_on = threading.Event()
    ended, blocked = submit(lambda: 1), submit(lambda: go_on.wait(WITHIN_S))
    try:
        async with asyncio.timeout(WITHIN_S):
            assert await ended == 1
        assert not blocked.done()
    finally:
        go_on.set()
    assert await blocked


async def test_each_has_the_context_of_its_caller_and_changes_only_its_own(submit: Submit) -> None:
    def look() -> str:
        found = name.get()
        name.set("changed")
        return found

    seen = []
    for caller in ("a", "b", "c"):
        name.set(caller)
        seen.append(submit(look))

    assert await asyncio.gather(*seen) == ["a", "b", "c"]
    assert name.get() == "c"


async def test_whatever_is_raised_arrives(submit: Submit) -> None:
    def fail(error: BaseException) -> None:
        raise error

    with pytest.raises(KeyError):
        await submit(lambda: fail(KeyError("k")))
    with pytest.raises(SystemExit):
        await submit(lambda: fail(SystemExit(3)))
    with pytest.raises(RuntimeError, match="StopIteration"):
        await submit(lambda: fail(StopIteration()))
    assert await submit(lambda: 1) == 1


async def test_a_cancelled_one_runs_on_and_its_thread_serves_others(submit: Submit) -> None:
    go_on, ended = threading.Event(), threading.Event()
    future = submit(lambda: (go_on.wait(WITHIN_S), ended.set()))
    future.cancel()
    assert await submit(lambda: 1) == 1
    go_on.set()
    await submit(lambda: ended.wait(WITHIN_S))
    assert future.cancelled()


async def test_what_a_function_held_does_not_live_on(submit: Submit) -> None:
    class Big:
        pass

    big = Big()
    gone = ref(big)

    assert await submit(lambda big=big: big) is big
    del big
    # The thread has let go of it before it falls asleep.
    await submit(lambda: None)
    gc.collect()

    assert gone() is None


async def test_without_a_thread_the_caller_hears_of_it_and_nothing_runs_later(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []

    def no_more(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_more)
        with pytest.raises(RuntimeError, match="new thread"):
            submit(lambda: ran.append(1))
    await submit(lambda: ran.append(2))

    assert ran == [2]


async def test_where_no_more_threads_are_to_be_had_those_that_are_there_do_the_work(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_more(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    await submit(lambda: None)
    monkeypatch.setattr(threading.Thread, "start", no_more)

    meeting = threading.Event()
    first = submit(lambda: meeting.wait(WITHIN_S))
    later = [submit(lambda n=n: n) for n in range(10)]
    meeting.set()

    assert await first
    assert await asyncio.gather(*later) == list(range(10))


async def test_closing_ends_the_idle_and_lets_the_others_end(submit: Submit, threads: Threads) -> None:
    go_on = threading.Event()
    await submit(lambda: None)
    before = threading.active_count()
    blocked = submit(lambda: go_on.wait(WITHIN_S))
    threads.close(0.01)
    go_on.set()
    assert await blocked
    threads.close(5)

    assert threading.active_count() < before


async def test_case_I8_short_jobs_do_not_wait_behind_a_long_one(real: StreamJobs, queue: Queue) -> None:
    """Two workers with a slot each: one keeps the long job, the other does all the rest meanwhile."""
    started, go_on = threading.Event(), threading.Event()

    @real.job(name="long")
    def long() -> None:
        started.set()
        go_on.wait(WITHIN_S)

    @real.job(name="short")
    def short(n: int) -> bool:
        return started.wait(WITHIN_S) and not go_on.is_set()

    last = await long.enqueue()
    handles = [await short.enqueue(n) for n in range(10)]
    async with real.worker(options=FAST, concurrency=1), real.worker(options=FAST, concurrency=1):
        async with asyncio.timeout(WITHIN_S):
            assert all([await handle.result(timeout=WITHIN_S) for handle in handles])
        go_on.set()
        await last.result(timeout=WITHIN_S)
