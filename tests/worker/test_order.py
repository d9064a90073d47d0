"""Which queues are read first: weights are kept, nothing starves, and no room is wasted."""

from collections import Counter
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamjobs import StreamJobs, WorkerOptions
from streamjobs.protocol.keys import QueueKeys, queues
from streamjobs.worker import order
from streamjobs.worker.execution import WorkerQueue
from streamjobs.worker.order import Order, Shares, Strict
from tests.worker.support import FAST, WITHIN_S, Flag, Queue, drain, messages


def queue(name: str, weight: int = 1) -> WorkerQueue:
    return WorkerQueue(QueueKeys("ns", name), 1000, weight=weight)


def read(chosen: Order, queues: list[WorkerQueue], room: int, waiting: Counter[WorkerQueue]) -> list[tuple[str, int]]:
    """Read once from queues that hold so much; return what came, and take it away."""
    came, asks = [], chosen.asks(queues, room)
    try:
        wanted = next(asks)
        while True:
            counts = [min(most, waiting[one]) for one, most in wanted]
            for (one, _), count in zip(wanted, counts, strict=True):
                waiting[one] -= count
                came.append((one.keys.queue, count))
            wanted = asks.send(counts)
    except StopIteration:
        return came


def total(reads: list[list[tuple[str, int]]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, count in chain.from_iterable(reads):
        found[name] += count
    return found


@pytest.mark.parametrize("room", [1, 7, 100])
def test_weights_are_kept_while_all_have_work(room: int) -> None:
    heavy, light = queue("heavy", 10), queue("light", 1)
    waiting, shares = Counter({heavy: 10**6, light: 10**6}), Shares()

    came = total([read(shares, [heavy, light], room, waiting) for _ in range(1100)])

    assert came["heavy"] + came["light"] == room * 1100
    assert came["light"] == pytest.approx(room * 100, rel=0.02, abs=room)


def test_what_one_does_not_need_is_the_others() -> None:
    heavy, light = queue("heavy", 1000), queue("light", 1)
    waiting, shares = Counter({light: 10**6}), Shares()

    came = total([read(shares, [heavy, light], 100, waiting) for _ in range(100)])

    assert came["light"] > 80 * 100


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), st.integers(1, 200), st.data())
def test_no_read_asks_for_more_than_there_is_room_and_none_for_nothing(
    weights: list[int], room: int, data: st.DataObject
) -> None:
    queues = [queue(f"q{n}", weight) for n, weight in enumerate(weights)]
    for chosen in (Shares(), Strict()):
        for _ in range(10):
            waiting = Counter({one: data.draw(st.integers(0, 100)) for one in queues})
            asks, left = chosen.asks(queues, room), room
            try:
                wanted = next(asks)
                while True:
                    assert wanted
                    assert all(most > 0 for _, most in wanted)
                    assert sum(most for _, most in wanted) <= left
                    counts = [min(most, waiting[one]) for one, most in wanted]
                    left -= sum(counts)
                    wanted = asks.send(counts)
            except StopIteration:
                pass


def test_a_strict_order_reads_the_later_only_with_what_room_is_left() -> None:
    first, second = queue("first"), queue("second")
    waiting, strict = Counter({first: 15, second: 100}), Strict()

    assert read(strict, [first, second], 10, waiting) == [("first", 10)]
    assert read(strict, [first, second], 10, waiting) == [("first", 5), ("second", 5)]


def test_a_strict_low_queue_ages(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(order, "monotonic", lambda: now[0])
    first, second = queue("first"), queue("second")
    waiting, strict = Counter({first: 10**6, second: 10**6}), Strict()

    reads = []
    for _ in range(170):
        reads.append(read(strict, [first, second], 100, waiting))
        now[0] += 0.2

    assert 9 * 25 <= total(reads)["second"] <= 11 * 25
    assert all(sum(count for _, count in one) == 100 for one in reads)


async def test_a_worker_keeps_weights(real: StreamJobs) -> None:
    ran: list[str] = []

    @real.job
    def note(name: str) -> None:
        ran.append(name)

    await real.enqueue_many(note.options(queue=name).call(name) for name in ("light", "heavy") for _ in range(300))

    # What one read brings starts queue by queue, so the order is seen where a read brings no more than can start.
    await drain(real, ["heavy:9", "light:1"], concurrency=10, read_ahead=0)

    assert len(ran) == 600
    assert 5 <= Counter(ran[:200])["light"] <= 60


async def test_a_worker_keeps_a_strict_order(real: StreamJobs) -> None:
    ran: list[str] = []

    @real.job
    async def note(name: str) -> None:
        ran.append(name)

    await real.enqueue_many(note.options(queue=name).call(name) for name in ("low", "high") for _ in range(50))

    await drain(real, ["high", "low"], concurrency=1, read_ahead=0, strict=True)

    assert ran == ["high"] * 50 + ["low"] * 50


async def test_a_pattern_finds_the_queues_that_are_there_and_those_that_come(
    real: StreamJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamjobs.worker.discovery.EVERY_S", 0.05)
    ran: dict[str, Flag] = {name: Flag() for name in ("mail-a", "mail-b", "web")}

    @real.job
    async def note(name: str) -> None:
        ran[name].raise_()

    for name in ("mail-a", "web"):
        await note.options(queue=name).enqueue(name)
    async with real.worker(["mail-*"], FAST):
        await ran["mail-a"].wait()
        await note.options(queue="mail-b").enqueue("mail-b")
        await ran["mail-b"].wait()

    assert ran["web"].count == 0


async def test_the_bell_of_a_queue_that_comes_is_heard_at_once(
    app: StreamJobs, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamjobs.worker.discovery.EVERY_S", 0.05)
    # Only a bell ends a sleep in time.
    monkeypatch.setattr("streamjobs.worker.promote.LONGEST_S", 10 * WITHIN_S)
    ran = Flag()

    @app.job
    async def note() -> None:
        ran.raise_()

    await note.options(queue="q-a").enqueue()
    async with app.worker(["q-*"], FAST):
        await ran.wait()
        await note.options(queue="q-b").enqueue()
        await ran.wait(2)
        await note.options(queue="q-b", delay=0.3).enqueue()
        await ran.wait(3)


async def test_a_pattern_that_fits_nothing_yet_waits(real: StreamJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjobs.worker.discovery.EVERY_S", 0.05)
    ran = Flag()

    @real.job(queue="later")
    async def note() -> None:
        ran.raise_()

    async with real.worker(["lat*"], WorkerOptions()):
        await note.enqueue()
        await ran.wait()


async def test_a_queue_that_the_server_refuses_is_passed_over_by_a_pattern(
    real: StreamJobs, queue: Queue, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamjobs.worker.discovery.EVERY_S", 0.05)
    names, broken = queues(queue.keys.namespace), QueueKeys(queue.keys.namespace, "q-broken")
    ran = {name: Flag() for name in ("q-a", "q-late", "q-next")}

    @real.job
    async def note(name: str) -> None:
        ran[name].raise_()

    await note.options(queue="q-a").enqueue("q-a")
    async with real.worker(["q-*"], FAST):
        await ran["q-a"].wait()
        queue.command("SET", broken.stream, "not a stream")
        queue.command("SADD", names, "q-broken")
        await note.options(queue="q-late").enqueue("q-late")
        await ran["q-late"].wait()
    async with real.worker(["q-*"], FAST):
        await note.options(queue="q-next").enqueue("q-next")
        await ran["q-next"].wait()

    first, second = messages(caplog)
    assert first == second
    assert first.startswith("not served: queue q-broken: ")
    assert "WRONGTYPE" in first


async def test_a_burst_on_a_pattern_that_fits_nothing_ends(real: StreamJobs) -> None:
    await drain(real, ["nothing-*"])


async def test_the_queue_of_a_cron_that_a_pattern_means_is_made(real: StreamJobs) -> None:
    ran = Flag()

    @real.every(1)
    @real.job(queue="reports")
    async def report() -> None:
        ran.raise_()

    async with real.worker(["rep*"], FAST):
        await ran.wait()
