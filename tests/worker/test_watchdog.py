"""The watchdog: fetching that hangs is begun anew, a worker that makes no progress is not live, and no other is."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from streamjobs import Exponential, JobFailed, Retry, State, StreamJobs, Unavailable
from streamjobs.protocol import leases
from streamjobs.worker import service, watchdog
from streamjobs.worker.duty import Duty
from streamjobs.worker.fetch import Fetcher
from streamjobs.worker.lease import LeaseKeeper
from streamjobs.worker.watchdog import PATIENCE_S, Watchdog
from streamjobs.worker.worker import Worker
from tests.faults.proxy import Act, Proxy, Rule
from tests.servers import Server
from tests.worker.bench import Bench
from tests.worker.support import FAST, WITHIN_S, Queue, make_app, messages, within

ONCE = Retry(max_attempts=1)
PATIENT = int(PATIENCE_S) + 2
"""Seconds until the second look at what the first one found wrong, at this bench's `block`."""


class Watch:
    """A watchdog over a bench whose loops do not run, and whose seconds pass when it is told."""

    def __init__(self, bench: Bench, fetcher: Fetcher, keeper: LeaseKeeper) -> None:
        self.bench = bench
        self._keeper = keeper
        self._now = 0.0
        self.use(fetcher)

    def use(self, fetcher: Fetcher) -> None:
        """Watch this one."""
        self.fetcher = fetcher
        fetcher.within_s = 0.01
        bench = self.bench
        self.dog = Watchdog(bench.station, fetcher, bench.starter, bench.runner, self._keeper, clock=lambda: self._now)

    async def passes(self, seconds: int, meanwhile: Callable[[], Any] = lambda: None) -> tuple[int, str]:
        """Let time pass; return how often fetching was begun anew so far, and what the trouble is."""
        for _ in range(seconds):
            self._now += 1
            meanwhile()
            await self.dog.tick()
        return self.dog.restarts, self.dog.trouble

    async def freezes(self, seconds: float) -> tuple[int, str]:
        """Let the process stand still for this long."""
        self._now += seconds - 1
        return await self.passes(1)


@pytest.fixture
async def watch(app: StreamJobs, queue: Queue) -> Watch:
    queue.make_group()
    return make_watch(app, queue)


def make_watch(app: StreamJobs, queue: Queue, **options: Any) -> Watch:
    @app.job(name="quick")
    async def quick() -> None:
        """Do nothing."""

    bench = Bench(app, queue, **options)
    keeper = LeaseKeeper(bench.station, app.connections.sync(), lambda *_: None)
    return Watch(bench, bench.fetcher, keeper)


async def test_an_idle_queue_is_no_trouble(watch: Watch) -> None:
    assert await watch.passes(100) == (0, "")


async def test_jobs_that_nobody_fetches_are_noticed(
    app: StreamJobs, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    """First it is begun anew; when that does not help, the worker is not live; once it fetches, it is again."""
    caplog.set_level("INFO")
    await app.kind("quick").enqueue()

    assert await watch.passes(PATIENT - 1) == (0, "")
    assert await watch.passes(1) == (1, "")
    assert "jobs wait in queue q, and none comes into the free slots: begins anew" in messages(caplog)[0]
    assert await watch.passes(PATIENT) == (2, "jobs wait in queue q, and none comes into the free slots")
    assert "is not live: jobs wait in queue q" in messages(caplog, "ERROR")[0]

    await watch.fetcher.tick()
    assert await watch.passes(1) == (2, "")
    assert "is live again" in messages(caplog, "INFO")[-1]
    await watch.bench.settled()


async def test_a_loop_that_waits_for_a_slot_though_some_are_free_is_woken(app: StreamJobs, watch: Watch) -> None:
    await app.kind("quick").enqueue()
    watch.bench.starter.room.clear()

    await watch.passes(PATIENT)

    assert watch.bench.starter.room.is_set()


async def test_full_slots_are_no_trouble(app: StreamJobs, watch: Watch) -> None:
    await app.kind("quick").enqueue()
    watch.bench.runner.running = 10

    assert await watch.passes(100) == (0, "")


async def test_jobs_that_others_fetch_are_no_trouble(app: StreamJobs, watch: Watch, queue: Queue) -> None:
    def others_work() -> None:
        queue.read("other", 1)
        app.kind("quick").enqueue_sync()

    await app.kind("quick").enqueue()

    assert await watch.passes(50, others_work) == (0, "")


async def test_what_others_hold_or_gave_back_is_no_trouble(app: StreamJobs, watch: Watch, queue: Queue) -> None:
    """Suspects lie there until a process of their own has taken them."""
    await app.enqueue_many(app.kind("quick").call() for _ in range(3))
    claims = queue.read("other")
    queue.run(leases.release(queue.keys, "other", 15_000, [leases.Giveback(claims[0].entry, 1, 0, quiet=True)]))

    assert await watch.passes(100) == (0, "")


async def test_a_server_that_takes_no_writes_is_no_trouble(
    server_binary: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither while it refuses them nor while it keeps them waiting; it answers reads."""
    monkeypatch.setattr(service, "RECONNECT", Exponential(base=0.01, cap=0.1))
    monkeypatch.setattr(watchdog, "PATIENCE_S", 0.2)
    monkeypatch.setattr(watchdog, "EVERY_S", 0.05)
    with Server(server_binary) as server, server.client() as client:
        app = make_app(server.url, "ns")
        kind = app.job(name="echo")(echo)
        seen: list[str] = []
        async with app.worker(options=FAST, block=0.1) as worker:
            assert await (await kind.enqueue(1)).result(timeout=10) == 1
            for begin, end in (
                ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
                ("CLIENT PAUSE 60000 WRITE", "CLIENT UNPAUSE"),
            ):
                await app.kind("echo").enqueue(2)
                client.execute_command(*begin.split())
                seen += await watched(worker)
                client.execute_command(*end.split())
                assert await (await kind.enqueue(3)).result(timeout=10) == 3

        assert seen == [""] * 40
        assert not [text for text in messages(caplog) if "begins anew" in text]
        await app.aclose()


async def test_a_server_that_does_not_answer_is_no_trouble_nor_is_it_at_its_return(
    app: StreamJobs, watch: Watch
) -> None:
    """Fetching may wait for its next try then, up to 2 s."""
    executor, answer = watch.bench.station.executor, watch.bench.station.executor.run_all

    async def away(requests: Sequence[object]) -> list[Unavailable]:
        return [Unavailable("it cannot be reached") for _ in requests]

    await app.kind("quick").enqueue()
    watch.fetcher.asking = 1
    executor.run_all = away  # type: ignore[method-assign, assignment]
    looks = 0
    while looks < 5:
        try:
            assert await watch.passes(1) == (0, "")
        except Unavailable:
            looks += 1
    executor.run_all = answer  # type: ignore[method-assign]

    assert await watch.passes(PATIENT - 1) == (0, "")
    assert await watch.passes(1) == (1, "")


async def test_a_request_that_does_not_end_while_others_do_is_given_up(watch: Watch) -> None:
    watch.fetcher.asking, watch.fetcher.within_s = 1, 3.0

    assert await watch.passes(PATIENT + 2) == (0, "")
    assert await watch.passes(1) == (1, "")
    assert await watch.passes(PATIENT + 3) == (2, "a request of its has had no answer, while others have")

    watch.fetcher.asking = 2
    assert await watch.passes(PATIENT) == (2, "")


async def test_time_in_which_the_process_stood_still_does_not_count(app: StreamJobs, watch: Watch) -> None:
    await app.kind("quick").enqueue()
    watch.fetcher.asking = 1

    for _ in range(2):
        assert await watch.freezes(3600) == (0, "")


async def test_the_quarantine_child_reads_nothing_fresh(app: StreamJobs, queue: Queue) -> None:
    queue.make_group()
    watch = make_watch(app, queue, duty=Duty.SUSPECTS)
    watch.use(watch.bench.quarantine)
    await app.kind("quick").enqueue()

    assert await watch.passes(100) == (0, "")


async def test_a_deleted_stream_is_no_trouble(watch: Watch, queue: Queue) -> None:
    queue.command("DEL", queue.keys.stream)

    assert await watch.passes(50) == (0, "")


async def test_case_F5_a_connection_that_loses_every_packet_is_replaced_before_its_reply_is_given_up(
    server_binary: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No FIN, no RST; the server goes on delivering into it. Replies are waited for 10 s, here and by default."""
    monkeypatch.setattr(watchdog, "PATIENCE_S", 0.3)
    monkeypatch.setattr(watchdog, "EVERY_S", 0.1)
    with Server(server_binary) as server, Proxy(server.url) as proxy:
        app, sender = make_app(proxy.url, "ns"), make_app(server.url, "ns")
        kind = app.job(name="echo")(echo)
        sent = sender.job(name="echo")(echo)
        hole = proxy.add(Rule(Act.HOLE, "xreadgroup", times=1, skip=1))
        async with app.worker(options=FAST, block=0.2) as worker:
            while not hole.hits:
                await asyncio.sleep(0)
            handles = [await sent.enqueue(n) for n in range(3)]
            async with asyncio.timeout(8):
                assert [await handle.result(timeout=10) for handle in handles] == [0, 1, 2]
            assert worker.live

        assert kind.name == "echo"
        assert [text for text in messages(caplog) if "begins anew on another connection" in text]
        await app.aclose()
        await sender.aclose()


async def test_case_F5_packets_lost_on_every_connection_are_no_fault_of_the_worker(
    server_binary: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watchdog, "PATIENCE_S", 0.2)
    monkeypatch.setattr(watchdog, "EVERY_S", 0.05)
    with Server(server_binary) as server, Proxy(server.url) as proxy:
        app, sender = make_app(proxy.url, "ns"), make_app(server.url, "ns")
        app.job(name="echo")(echo)
        sent = sender.job(name="echo")(echo)
        async with app.worker(options=FAST, block=0.1) as worker:
            assert await (await sent.enqueue(1)).result(timeout=10) == 1
            proxy.hold()
            handle = await sent.enqueue(2)
            seen = await watched(worker)
            proxy.release()
            assert await handle.result(timeout=10) == 2
            assert worker.live

        assert seen == [""] * 20
        assert not [text for text in messages(caplog) if "begins anew" in text]
        await app.aclose()
        await sender.aclose()


async def echo(n: int) -> int:
    return n


async def watched(worker: Worker) -> list[str]:
    """Return what its trouble is over the next 2 s."""
    seen = []
    for _ in range(20):
        await pause(0.1)
        seen.append(worker.trouble)
    return seen


async def pause(seconds: float) -> None:
    """Let time pass: here it is what is measured."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()


async def test_a_handler_that_blocks_the_loop_for_long_makes_the_worker_not_live(
    real: StreamJobs, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a thread sees it: the loop itself can say nothing."""
    monkeypatch.setattr(watchdog, "PATIENCE_S", 0.1)
    told = threading.Event()
    seen: list[str] = []

    @real.job
    async def blocks() -> None:
        told.wait(WITHIN_S)

    async with real.worker(options=FAST, lease=0.3, block=0.1) as worker:
        assert worker.live

        def look() -> None:
            while worker.live:
                threading.Event().wait(0.01)
            seen.append(worker.trouble)
            told.set()

        looking = threading.Thread(target=look)
        looking.start()
        await (await blocks.enqueue()).result(timeout=10)
        await asyncio.to_thread(looking.join)
        assert worker.live

    assert seen[0].startswith("the event loop has not moved for ")


async def test_more_handlers_that_do_not_end_than_slots_make_the_worker_not_live(
    app: StreamJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And when they end at last, nothing else is needed for work to go on."""
    monkeypatch.setattr(watchdog, "PATIENCE_S", 60)
    gates = [threading.Event() for _ in range(2)]

    @app.job(timeout=0.05, retry=ONCE)
    def hangs(n: int) -> None:
        gates[n].wait(WITHIN_S)

    @app.job
    async def quick() -> str:
        return "ran"

    async with app.worker(options=FAST, concurrency=1, grace=0.05) as worker:
        for n in range(2):
            assert worker.live
            with pytest.raises(JobFailed):
                await (await hangs.enqueue(n)).result(timeout=10)
        assert worker.trouble == "2 handlers will not end, more than there are slots"
        waiting = await quick.enqueue()
        await pause(0.3)
        assert (await waiting.status()).state == State.WAITING

        for gate in gates:
            gate.set()
        assert await waiting.result(timeout=10) == "ran"
        assert worker.live


async def test_a_worker_is_live_until_it_has_ended(app: StreamJobs, queue: Queue) -> None:
    app.job(name="quick")(lambda: None)
    worker = app.make_worker(options=FAST)
    assert worker.live
    running = asyncio.create_task(worker.run())
    await within(worker.ready)
    worker.stop()
    assert worker.live
    await running

    assert (worker.live, worker.trouble) == (False, "it has ended")
