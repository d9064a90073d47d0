"""What a worker and the producers beside it say to Prometheus, scraped as Prometheus does."""

import asyncio
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families

from streamjobs import Cancel, Fixed, Metrics, MissingExtra, NotSent, Permanent, Retry, Snooze, StreamJobs, UntilDone
from streamjobs.core.options import EnqueueOptions
from streamjobs.protocol import leases
from streamjobs.worker.worker import Worker
from tests.servers import Server
from tests.worker.bench import Gate
from tests.worker.support import FAST, WITHIN_S, Queue, drain, make_app
from tests.worker.visits import Port

LABELS = ("queue", "kind", "outcome", "class", "le")
Samples = Mapping[tuple[str, ...], float]


def read(text: str) -> Samples:
    """Return our samples by their name, without what all names begin with, and the values of their labels."""
    return {
        (
            sample.name.removeprefix("streamjobs_"),
            *(sample.labels[one] for one in LABELS if one in sample.labels),
        ): sample.value
        for one in text_string_to_metric_families(text)
        for sample in one.samples
        if sample.name.startswith("streamjobs_")
    }


async def scrape(port: Port) -> Samples:
    status, text = await port.get("/metrics")
    assert status == 200, text
    return read(text)


async def counted(port: Port, *labels: str, least: float = 1) -> Samples:
    """Scrape until a sample has come as far as this."""
    async with asyncio.timeout(WITHIN_S):
        while (samples := await scrape(port)).get(labels, 0) < least:
            pass
    return samples


@pytest.fixture
def port() -> Port:
    return Port()


def kinds(app: StreamJobs) -> None:
    """Register a kind for each way in which a run may end."""

    @app.job(name="ok", result_ttl=0)
    async def ok() -> None: ...

    @app.job(name="kept")
    async def kept() -> int:
        return 1

    @app.job(name="fails", retry=Retry(max_attempts=2, backoff=Fixed(0.001)))
    def fails() -> None:
        raise ValueError("no")

    @app.job(name="refuses")
    async def refuses() -> None:
        raise Permanent("no")

    @app.job(name="cancels")
    async def cancels() -> None:
        raise Cancel("no")

    slept: list[None] = []

    @app.job(name="snoozes")
    async def snoozes() -> None:
        if not slept:
            slept.append(None)
            raise Snooze(0.001)


async def test_each_end_of_a_run_is_counted_once(app: StreamJobs, port: Port) -> None:
    kinds(app)
    names = ["ok", "ok", "kept", "fails", "refuses", "cancels", "snoozes"]
    async with app.worker(["q"], FAST, metrics_port=port.address):
        for name in names:
            await app.kind(name).enqueue()
        await counted(port, "jobs_finished_total", "q", "fails", "dead")
        samples = await counted(port, "jobs_finished_total", "q", "snoozes", "done")

    ended = {labels[2:]: n for labels, n in samples.items() if labels[0] == "jobs_finished_total" and n}
    assert ended == {
        ("ok", "done"): 2, ("kept", "done"): 1, ("fails", "retried"): 1, ("fails", "dead"): 1, ("refuses", "dead"): 1,
        ("cancels", "cancelled"): 1, ("snoozes", "snoozed"): 1, ("snoozes", "done"): 1,
    }  # fmt: skip
    assert samples["job_duration_seconds_count", "q", "fails"] == 2
    assert samples["job_wait_seconds_count", "q", "ok"] == 2
    assert samples["job_wait_seconds_sum", "q", "ok"] < WITHIN_S
    enqueued = {labels[2]: n for labels, n in samples.items() if labels[0] == "jobs_enqueued_total"}
    assert enqueued == {name: names.count(name) for name in names}


async def test_times_are_those_of_the_handlers(app: StreamJobs, gate: Gate, port: Port) -> None:
    """A run of 0.2 s, and a job that waited for it as long, with one slot."""
    async with app.worker(["q"], FAST, concurrency=1, metrics_port=port.address):
        await gate.kind.enqueue()
        await gate.started.wait()
        await gate.kind.enqueue()
        asyncio.get_running_loop().call_later(0.2, gate.go_on.set)
        samples = await counted(port, "jobs_finished_total", "q", "gate", "done", least=2)

    for name in ("job_duration_seconds", "job_wait_seconds"):
        assert samples[f"{name}_count", "q", "gate"] == samples[f"{name}_bucket", "q", "gate", "+Inf"] == 2
        assert 0.19 < samples[f"{name}_sum", "q", "gate"] < WITHIN_S
    assert samples["job_duration_seconds_bucket", "q", "gate", "0.1"] == 1


async def test_entries_may_have_any_id(app: StreamJobs, queue: Queue, port: Port) -> None:
    """One from long ago, and one from a clock that is ahead, which has waited for no time."""
    kinds(app)
    for entry in ("1-1", "9999999999999-1", "99999999999999-1"):
        queue.add("kind", "ok", "body", "{}", entry=entry)
    async with app.worker(["q"], FAST, metrics_port=port.address):
        samples = await counted(port, "jobs_finished_total", "q", "ok", "done", least=3)

    assert samples["job_wait_seconds_bucket", "q", "ok", "0.005"] == 2
    assert 1e9 < samples["job_wait_seconds_sum", "q", "ok"] < 1e10


async def test_what_runs_now_and_the_slots(app: StreamJobs, gate: Gate, port: Port) -> None:
    async with app.worker(["q"], FAST, metrics_port=port.address):
        await app.enqueue_many(gate.kind.call() for _ in range(3))
        await gate.started.wait(3)

        samples = await scrape(port)

        assert (samples["jobs_running", "q", "gate"], samples["worker_slots",]) == (3, FAST.concurrency)
        gate.go_on.set()
        await counted(port, "jobs_finished_total", "q", "gate", "done", least=3)
        assert ("jobs_running", "q", "gate") not in await scrape(port)


async def test_what_was_interrupted_is_given_back(app: StreamJobs, gate: Gate) -> None:
    app.registry.meter.on = True
    async with app.worker(["q"], FAST, grace=0):
        await gate.kind.enqueue()
        await gate.started.wait()

    row = app.registry.meter.row("q", "gate")
    assert (dict(row.outcomes), sum(row.runs.counts)) == ({"released": 1}, 1)
    assert app.registry.meter.shifts == []


async def test_takeovers_and_losses_are_counted(app: StreamJobs, queue: Queue, port: Port) -> None:
    gate = Gate(app)
    queue.run(leases.join(queue.keys, 1000))
    await gate.kind.enqueue()
    queue.crash()
    async with app.worker(["q"], FAST, metrics_port=port.address):
        await gate.started.wait()
        assert (await scrape(port))["jobs_reclaimed_total",] == 1
        queue.steal()

        samples = await counted(port, "leases_lost_total")
        gate.go_on.set()

    assert samples["leases_lost_total",] == 1


async def test_a_loop_that_is_blocked_shows(app: StreamJobs, port: Port) -> None:
    @app.job(name="blocks", result_ttl=60)
    async def blocks() -> None:
        threading.Event().wait(0.5)

    async with app.worker(["q"], FAST, metrics_port=port.address):
        await (await blocks.enqueue()).result(timeout=WITHIN_S)

        assert 0.3 < (await scrape(port))["event_loop_lag_seconds",] < WITHIN_S


async def test_failed_requests_are_counted_by_their_cause(server_binary: Path, port: Port) -> None:
    with Server(server_binary) as server:
        app = make_app(server.url, "ns")
        async with app.worker(["q"], FAST, metrics_port=port.address):
            server.kill9()
            samples = await counted(port, "redis_errors_total", "CONNECT")
            server.start()
        await app.aclose()

    assert {labels[1] for labels in samples if labels[0] == "redis_errors_total"} <= {"CONNECT", "OutcomeUnknown"}


async def test_outcomes_of_enqueues(app: StreamJobs, queue: Queue) -> None:
    kinds(app)
    app.queue("q", max_waiting=2)
    Metrics(app)
    kind = app.kind("ok")
    held = kind.options(dedupe_key="k", dedupe=UntilDone())

    await held.enqueue()
    await held.enqueue()
    await asyncio.to_thread(kind.enqueue_sync)
    await app.enqueue_many(kind.call() for _ in range(3))
    await app.send("unknown", queue="elsewhere", delay=3600)

    assert app.registry.meter.enqueued == {
        ("q", "ok", "accepted"): 2, ("q", "ok", "duplicate"): 1, ("q", "ok", "full"): 3,
        ("_other", "_other", "accepted"): 1,
    }  # fmt: skip


async def test_an_enqueue_that_was_not_sent_is_counted_as_that() -> None:
    app = make_app("redis://127.0.0.1:1/0", "ns", enqueue_timeout=0.01)
    kinds(app)
    Metrics(app)

    with pytest.raises(NotSent):
        await app.kind("ok").enqueue()

    assert app.registry.meter.enqueued == {("q", "ok", "not_sent"): 1}
    await app.aclose()


async def test_nothing_is_counted_that_nobody_reads(app: StreamJobs) -> None:
    kinds(app)
    await app.kind("ok").enqueue()

    await drain(app)

    assert (app.registry.meter.rows, app.registry.meter.enqueued) == ({}, {})


async def test_case_T13_hostile_names_make_no_labels(real: StreamJobs, queue: Queue, port: Port) -> None:
    kinds(real)
    later = EnqueueOptions(delay=3600)
    async with real.worker(["q*"], FAST, concurrency=100, metrics_port=port.address):
        await real.enqueue_many(real.job_of(f"evil-{n}", {}, later) for n in range(8000))
        await real.enqueue_many(real.job_of(f"evil-{n}", {}, EnqueueOptions()) for n in range(2000))
        queue.add("kind", 'e"}\n# HELP x', "body", "{}")
        queue.add("kind", b"\xff\xfe", "body", "{}")
        queue.add("body", "{}")
        await counted(port, "jobs_finished_total", "q", "_other", "snoozed", least=2002)
        samples = await counted(port, "jobs_finished_total", "q", "_other", "dead")

    assert not [labels for labels in samples if any("evil" in label or "HELP" in label for label in labels)]
    assert samples["jobs_enqueued_total", "q", "_other", "accepted"] == 10_000
    assert len(samples) < 100


async def test_what_the_app_counts_itself_is_there_too(app: StreamJobs, port: Port) -> None:
    """And an app that is registered in prometheus-client's own registry is not told of twice."""
    kinds(app)
    pages = prometheus_client.Counter("tests_pages_total", "Pages.")
    metrics = Metrics(app)
    prometheus_client.REGISTRY.register(metrics)
    try:
        async with app.worker(["q"], FAST, metrics_port=port.address):
            await app.kind("ok").enqueue()
            await counted(port, "jobs_finished_total", "q", "ok", "done")
            pages.inc(5)

            _, text = await port.get("/metrics")

        assert "tests_pages_total 5.0\n" in text
        assert text.count("# TYPE streamjobs_jobs_finished_total counter\n") == 1
        assert read(prometheus_client.generate_latest().decode())["jobs_finished_total", "q", "ok", "done"] == 1
    finally:
        prometheus_client.REGISTRY.unregister(metrics)
        prometheus_client.REGISTRY.unregister(pages)


async def test_health_and_metrics_may_share_a_port(app: StreamJobs, port: Port) -> None:
    async with app.worker(["q"], FAST, health_port=port.address, metrics_port=port.address):
        assert [(await port.get(path))[0] for path in ("/livez", "/readyz", "/metrics")] == [200, 200, 200]


async def test_a_worker_without_the_extra_says_what_to_install(
    app: StreamJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    with pytest.raises(MissingExtra, match=r"pip install 'streamjobs\[prometheus\]'"):
        await app.make_worker(["q"], FAST.changed({"metrics_port": 0})).run()
    with pytest.raises(MissingExtra):
        Metrics(app)
    async with app.worker(["q"], FAST, health_port=0) as worker:
        assert isinstance(worker, Worker)
