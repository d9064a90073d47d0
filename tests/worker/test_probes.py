"""`/livez` and `/readyz`: what a worker says of itself in each of its states, and that a blocked one says nothing."""

import asyncio
import http.client
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from streamjobs import InvalidOption, StreamJobs
from streamjobs.client.talk import atalk
from streamjobs.operate.workers import order
from streamjobs.protocol.workers import QUIET, RUN
from streamjobs.worker import probes
from tests.servers import Server
from tests.worker.bench import Gate
from tests.worker.support import FAST, WITHIN_S, Queue, make_app, within
from tests.worker.visits import Port

OK = (200, "ok\n")


@pytest.fixture
async def server(server_binary: Path) -> AsyncIterator[Server]:
    """A server of the test's own, which does not run yet."""
    server = Server(server_binary)
    yield server
    server.close()


async def becomes(port: Port, path: str, status: int) -> str:
    """Wait until a page has this status; return its text."""
    async with asyncio.timeout(WITHIN_S):
        while (answer := await port.get(path))[0] != status:
            pass
    return answer[1]


async def test_a_worker_that_works_is_live_and_ready(app: StreamJobs) -> None:
    port = Port()

    async with app.worker(["q"], FAST, health_port=port.address):
        assert await port.get("/livez") == await port.get("/readyz") == OK
        assert (await port.get("/metrics"))[0] == 404


async def test_it_is_live_before_it_is_ready(server: Server) -> None:
    app = make_app(server.url, "ns")
    port = Port()
    worker = app.make_worker(["q"], FAST.changed({"health_port": port.address}))
    running = asyncio.ensure_future(worker.run())

    assert await becomes(port, "/livez", 200) == "ok\n"
    assert await port.get("/readyz") == (503, "it has not joined its queues yet\n")
    server.start()
    await within(worker.ready)
    assert await port.get("/readyz") == OK

    worker.stop()
    assert await running
    await app.aclose()


async def test_it_is_not_ready_while_the_server_is_away_and_live_all_the_same(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "ANSWER_S", 0.2)
    app = make_app(server.start().url, "ns")
    port = Port()

    async with app.worker(["q"], FAST, health_port=port.address):
        server.stop()
        assert await becomes(port, "/readyz", 503) == "the server has not answered within 0.2 s\n"
        server.cont()
        await becomes(port, "/readyz", 200)
        server.kill9()
        assert "cannot reach unix://" in await becomes(port, "/readyz", 503)
        assert await port.get("/livez") == OK
        server.start()
        await becomes(port, "/readyz", 200)
    await app.aclose()


async def test_it_is_not_ready_while_it_stops_and_gone_when_it_has(app: StreamJobs, gate: Gate) -> None:
    port = Port()
    worker = app.make_worker(["q"], FAST.changed({"health_port": port.address}))
    running = asyncio.ensure_future(worker.run())
    await gate.kind.enqueue()
    await gate.started.wait()

    worker.stop()

    assert await port.get("/readyz") == (503, "it is stopping\n")
    assert await port.get("/livez") == OK
    gate.go_on.set()
    assert await running
    with pytest.raises(ConnectionRefusedError):
        await port.get("/livez")


async def test_a_worker_in_trouble_says_which(app: StreamJobs, queue: Queue) -> None:
    """Two handlers that do not end, and one slot: nothing but a new process helps."""
    go_on = threading.Event()

    @app.job(name="hangs", timeout=0.01)
    def hangs() -> None:
        go_on.wait(WITHIN_S)

    port = Port()
    await app.enqueue_many(hangs.call() for _ in range(2))
    async with app.worker(["q"], FAST, concurrency=1, grace=0, health_port=port.address):
        assert await becomes(port, "/livez", 503) == "2 handlers will not end, more than there are slots\n"
        assert await port.get("/readyz") == (503, "2 handlers will not end, more than there are slots\n")
        go_on.set()
        await becomes(port, "/livez", 200)


async def test_a_blocked_loop_answers_nobody(app: StreamJobs) -> None:
    blocked, go_on = threading.Event(), threading.Event()

    @app.job(name="blocks")
    async def blocks() -> None:
        blocked.set()
        go_on.wait(WITHIN_S)

    def ask(number: int) -> None:
        blocked.wait(WITHIN_S)
        line = http.client.HTTPConnection("127.0.0.1", number, timeout=0.3)
        try:
            line.request("GET", "/livez")
            line.getresponse()
        finally:
            line.close()
            go_on.set()

    port = Port()
    async with app.worker(["q"], FAST, health_port=port.address):
        asking = asyncio.create_task(asyncio.to_thread(ask, port.number))
        await blocks.enqueue()
        with pytest.raises(TimeoutError):
            await asking
        assert await port.get("/livez") == OK


async def test_a_port_that_is_taken_is_said_at_once(app: StreamJobs) -> None:
    port = Port()
    async with app.worker(["q"], FAST, health_port=port.address):
        worker = app.make_worker(["q"], FAST.changed({"health_port": port.number}))

        with pytest.raises(InvalidOption, match=rf"health_port={port.number}: cannot listen there: Address already"):
            await worker.run()


async def test_one_that_an_operator_has_told_to_be_quiet_is_live_and_not_ready(
    app: StreamJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamjobs.worker.report.EVERY_S", 0.05)
    port = Port()

    async with app.worker(["q"], FAST, health_port=port.address) as worker:
        await atalk(app.connections.aio(), order(app.namespace, [worker.consumer], QUIET))
        assert await port.get("/readyz") == (503, "quiet: ordered by an operator\n")
        assert await port.get("/livez") == OK
        await atalk(app.connections.aio(), order(app.namespace, [worker.consumer], RUN))
        assert await port.get("/readyz") == OK
        worker.quiet()
        assert await port.get("/readyz") == (503, "quiet: its own program told it to start nothing\n")
