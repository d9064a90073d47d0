"""The exporter: what the queues hold, as of now, from the server alone; and what it says when that is away."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from streamjobs.client import Connections
from streamjobs.operate import exporter as module
from streamjobs.operate.exporter import Exporter
from streamjobs.protocol import intake, settle, upkeep
from streamjobs.worker import probes
from tests.servers import Server
from tests.store.support import Store, death
from tests.worker.visits import Port


@pytest.fixture
async def port(store: Store, backend_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Port]:
    monkeypatch.setattr(module, "FRESH_S", 0.0)
    connections, port = Connections(backend_url), Port()
    async with Exporter(connections, store.keys.namespace).serving(port.address):
        yield port
    await connections.aclose()


async def scraped(port: Port) -> dict[tuple[str, ...], float]:
    """Return each sample by its name and the values of its labels."""
    status, text = await port.get("/metrics")
    assert status == 200, text
    return {
        (sample.name, *sample.labels.values()): sample.value
        for one in text_string_to_metric_families(text)
        for sample in one.samples
    }


async def test_a_scrape_tells_what_the_queue_holds_now(port: Port, store: Store) -> None:
    assert await scraped(port) == {}
    store.run(intake.announce(store.keys.namespace, ["q"]))
    store.make_group()
    store.run(upkeep.promote(store.keys, "a", rung=False, note="8", room=1000))
    store.add(3)
    claims = store.claim(count=2)
    store.run(settle.bury(store.keys, "a", [("mail", {}, [death(claims[0])])]))

    found = await scraped(port)

    counts = {state: found["streamjobs_queue_jobs", "q", state] for state in ("waiting", "running", "dead")}
    assert counts == {"waiting": 1, "running": 1, "dead": 1}
    assert (found["streamjobs_queue_workers", "q"], found["streamjobs_queue_slots", "q"]) == (1, 8)
    assert found["streamjobs_queue_moves_total", "q", "dead"] == 1
    # A dead job is to be looked at.
    assert found["streamjobs_queue_health", "q"] == 1


async def test_it_is_live_and_ready(port: Port) -> None:
    assert await port.get("/livez") == await port.get("/readyz") == (200, "ok\n")


async def test_the_text_says_its_format(port: Port) -> None:
    head, _ = await port.ask(b"GET /metrics HTTP/1.1\r\n\r\n")

    assert "Content-Type: text/plain; version=0.0.4; charset=utf-8" in head


async def test_many_monitors_cost_the_server_one_look(server_binary: Path) -> None:
    with Server(server_binary) as server, server.client() as client:
        connections, port = Connections(server.url), Port()
        async with Exporter(connections, "ns").serving(port.address):
            await asyncio.gather(*(port.get("/metrics") for _ in range(20)))
            asked = client.info("commandstats")["cmdstat_smembers"]["calls"]
        await connections.aclose()

    assert asked == 1


async def test_a_server_that_is_away_is_said(server_binary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no password with it; it goes on when the server is back."""
    monkeypatch.setattr(module, "FRESH_S", 0.0)
    monkeypatch.setattr(module, "ANSWER_S", 0.2)
    monkeypatch.setattr(probes, "ANSWER_S", 0.2)
    with Server(server_binary, tcp=True, args=("--requirepass", "canary")) as server:
        connections, port = Connections(server.url.replace("//", "//:canary@")), Port()
        async with Exporter(connections, "ns").serving(port.address):
            for away, back in ((server.kill9, server.start), (server.stop, server.cont)):
                away()
                for path in ("/metrics", "/readyz"):
                    status, text = await port.get(path)
                    assert (status, "canary" in text) == (503, False), text
                    assert "cannot reach redis://" in text or "has not answered within 0.2 s" in text
                assert (await port.get("/livez"))[0] == 200
                back()
                assert (await port.get("/metrics"))[0] == 200
        await connections.aclose()
