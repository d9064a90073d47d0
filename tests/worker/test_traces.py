"""Spans of sends and runs, as an exporter gets them: named, linked, current, and ended whatever becomes of the run."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from streamjobs import Batch, Context, Fixed, NotSent, Permanent, RateLimited, Retry, Snooze, StreamJobs
from streamjobs.core import tracing
from streamjobs.core.codec import decode_meta
from streamjobs.worker import spans as module
from tests.worker.bench import Gate
from tests.worker.support import FAST, WITHIN_S, Queue, drain, make_app, messages


@dataclass
class Item:
    n: int


class Spans:
    """What was exported."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def named(self, name: str) -> list[ReadableSpan]:
        """Return the spans of a name, in the order of their ends."""
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    def all(self) -> list[str]:
        return [span.name for span in self._exporter.get_finished_spans()]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return provider


@pytest.fixture
def spans(provider: TracerProvider) -> Iterator[Spans]:
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield Spans(exporter)
    provider.shutdown()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def key(span: ReadableSpan) -> tuple[int, int]:
    """Return what names a span for others."""
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


def links(span: ReadableSpan) -> list[tuple[int, int]]:
    return [(link.context.trace_id, link.context.span_id) for link in span.links]


async def test_a_job_that_is_submitted_carries_the_span_of_its_submit(app: StreamJobs, spans: Spans) -> None:
    @app.job(name="quick")
    async def quick(name: str) -> None: ...

    with app.producer() as producer:
        producer.submit(quick.call("Ada"))
    await drain(app)

    [send], [process] = spans.named("send q"), spans.named("process q")
    assert attributes(send)["streamjobs.kind"] == "quick"
    assert "messaging.message.id" not in attributes(send)
    assert links(process) == [key(send)]


async def test_a_job_has_a_span_where_it_is_sent_and_one_where_it_runs(app: StreamJobs, spans: Spans) -> None:
    @app.job(name="quick", result_ttl=0)
    async def quick(name: str) -> None: ...

    job = await quick.enqueue("Ada")
    await drain(app)

    [send], [process] = spans.named("send q"), spans.named("process q")
    assert (send.kind, process.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert attributes(send) == {
        "messaging.system": "streamjobs", "messaging.operation.name": "send", "messaging.operation.type": "send",
        "messaging.destination.name": "q", "messaging.message.id": job.id, "messaging.message.body.size": 14,
        "streamjobs.kind": "quick",
    }  # fmt: skip
    told = attributes(process)
    assert told.pop("messaging.client.id").count("-") >= 2
    assert told == {
        "messaging.system": "streamjobs", "messaging.operation.name": "process", "messaging.operation.type": "process",
        "messaging.destination.name": "q", "messaging.consumer.group.name": "workers", "messaging.message.id": job.id,
        "messaging.message.body.size": 14, "streamjobs.kind": "quick", "streamjobs.attempt": 1,
        "streamjobs.outcome": "returned",
    }  # fmt: skip
    assert process.status.status_code is StatusCode.UNSET
    assert process.parent is None
    assert links(process) == [key(send)]
    assert key(process)[0] != key(send)[0]


async def test_a_send_belongs_to_the_trace_of_its_caller(
    app: StreamJobs, provider: TracerProvider, spans: Spans
) -> None:
    """And what a handler sends to that of its run, also from its thread; a run to none that its worker began in."""

    @app.job(name="inner", result_ttl=0)
    async def inner() -> None: ...

    @app.job(name="outer", result_ttl=0)
    def outer() -> None:
        inner.enqueue_sync()

    with provider.get_tracer("test").start_as_current_span("request") as request:
        await outer.enqueue()
        await drain(app)

    first, second = spans.named("send q")
    runs = {attributes(span)["streamjobs.kind"]: span for span in spans.named("process q")}
    assert first.parent is not None
    assert first.parent.span_id == request.get_span_context().span_id
    assert second.parent is not None
    assert second.parent.span_id == key(runs["outer"])[1]
    assert links(runs["inner"]) == [key(second)]
    assert [runs[kind].parent for kind in ("inner", "outer")] == [None, None]


async def test_a_bulk_is_one_span_and_each_job_of_it_carries_it(app: StreamJobs, spans: Spans) -> None:
    @app.job(name="quick", result_ttl=0)
    async def quick() -> None: ...

    await app.enqueue_many([*(quick.call() for _ in range(3)), "no job"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    await asyncio.to_thread(app.enqueue_many_sync, [quick.call(), quick.options(queue="other").call()])
    await drain(app)

    one, two = spans.named("send q"), spans.named("send")
    assert [attributes(span)["messaging.batch.message_count"] for span in (*one, *two)] == [3, 2]
    assert (one[0].status.status_code, attributes(one[0])["error.type"]) == (StatusCode.ERROR, "UsageError")
    assert (one[0].status.description or "").startswith("1 of 4 were not sent: item 3")
    assert two[0].status.status_code is StatusCode.UNSET
    assert sorted(map(links, spans.named("process q"))) == sorted([[key(one[0])]] * 3 + [[key(two[0])]])


async def test_each_attempt_is_a_span_of_its_own(app: StreamJobs, spans: Spans) -> None:
    """With what it failed of; retries link to the one span in which their job was sent."""

    @app.job(name="fails", retry=Retry(max_attempts=2, backoff=Fixed(0.001)))
    async def fails() -> None:
        raise ValueError("no")

    await fails.enqueue()
    await drain(app)

    [send], runs = spans.named("send q"), spans.named("process q")
    assert [attributes(run)["streamjobs.attempt"] for run in runs] == [1, 2]
    for run in runs:
        assert (run.status.status_code, run.status.description) == (StatusCode.ERROR, "ValueError: no")
        assert attributes(run)["error.type"] == "validation"
        assert links(run) == [key(send)]
        [event] = run.events
        told = dict(event.attributes or {})
        assert (told["exception.type"], told["exception.message"]) == ("ValueError", "no")
        assert 'raise ValueError("no")' in str(told["exception.stacktrace"])


@pytest.mark.parametrize(
    ("error", "outcome", "failed"),
    [(Snooze(3600), "snoozed", False), (RateLimited(after=3600), "raised", False), (Permanent("no"), "raised", True)],
    ids=repr,
)
async def test_only_failures_are_errors(
    app: StreamJobs, spans: Spans, error: Exception, outcome: str, failed: bool
) -> None:
    @app.job(name="steers")
    async def steers() -> None:
        raise error

    await steers.enqueue()
    await drain(app)

    [run] = spans.named("process q")
    assert attributes(run)["streamjobs.outcome"] == outcome
    assert (run.status.status_code is StatusCode.ERROR) == failed


async def test_a_run_that_is_abandoned_ends_its_span_at_once(app: StreamJobs, spans: Spans) -> None:
    go_on = threading.Event()

    @app.job(name="hangs", timeout=0.01, retry=Retry(max_attempts=1))
    def hangs() -> None:
        go_on.wait(WITHIN_S)

    job = await hangs.enqueue()
    async with app.worker(["q"], FAST, grace=0):
        with pytest.raises(Exception, match="exhausted"):
            await job.result(timeout=WITHIN_S)
        [run] = spans.named("process q")
        go_on.set()

    assert (run.status.description, attributes(run)["error.type"]) == ("still running after 0.01 s", "timeout")
    assert len(spans.named("process q")) == 1


async def test_a_run_that_is_interrupted_ends_its_span(app: StreamJobs, gate: Gate, spans: Spans) -> None:
    await gate.kind.enqueue()
    async with app.worker(["q"], FAST, grace=0):
        await gate.started.wait()

    [run] = spans.named("process q")
    assert (attributes(run)["streamjobs.outcome"], run.status.status_code) == ("interrupted", StatusCode.UNSET)


async def test_a_send_that_fails_says_so(spans: Spans) -> None:
    app = make_app("redis://127.0.0.1:1/0", "ns", enqueue_timeout=0.01)

    with pytest.raises(NotSent):
        await app.send("k")

    [send] = spans.named("send q")
    assert (send.status.status_code, attributes(send)["error.type"]) == (StatusCode.ERROR, "NotSent")
    await app.aclose()


async def test_what_others_write_there_breaks_nothing(app: StreamJobs, queue: Queue, spans: Spans) -> None:
    @app.job(name="quick", result_ttl=0)
    async def quick(ctx: Context[None]) -> None: ...

    queue.add("kind", "quick", "body", "{}", "meta", '{"tp":"00-evil"}')
    queue.add("kind", "quick", "body", "{}", "meta", f'{{"tp":"00-{"a" * 32}-{"b" * 16}-01"}}')
    await drain(app)

    assert sorted(map(links, spans.named("process q"))) == [[], [(int("a" * 32, 16), int("b" * 16, 16))]]


async def test_a_decision_not_to_sample_travels_along(
    app: StreamJobs, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", TracerProvider(ALWAYS_OFF, shutdown_on_exit=False))

    await app.send("k", queue="q")

    queue.make_group()
    [claim] = queue.read("me")
    sent = tracing.span_context(decode_meta(claim.meta).traceparent)
    assert sent is not None
    assert not sent.trace_flags.sampled


async def test_without_a_tracer_a_job_carries_nothing(app: StreamJobs, queue: Queue) -> None:
    queue.make_group()

    await app.send("k", result_ttl=0)

    [claim] = queue.read("me")
    assert claim.meta == b""


async def test_a_tracer_that_fails_costs_no_job(
    app: StreamJobs, spans: Spans, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    @app.job(name="quick", result_ttl=60)
    async def quick() -> str:
        return "ran"

    monkeypatch.setattr(module.ProcessSpans, "_begin", fail)
    job = await quick.enqueue()
    await drain(app)

    assert await job.result(timeout=WITHIN_S) == "ran"
    assert "a span could not be made: ZeroDivisionError()" in messages(caplog)
    assert spans.named("process q") == []


async def test_each_job_of_a_batch_has_a_span_and_none_is_current(app: StreamJobs, spans: Spans) -> None:
    current: list[bool] = []

    @app.job(name="batch", result_ttl=0, batch=Batch(2, 60))
    async def batch(items: list[Item]) -> list[Exception | None]:
        current.append(trace.get_current_span().get_span_context().is_valid)
        return [None, Permanent("no")]

    ids = [(await batch.enqueue(Item(n))).id for n in range(2)]
    await drain(app)

    runs = spans.named("process q")
    assert [attributes(run)["messaging.message.id"] for run in runs] == ids
    assert [attributes(run)["streamjobs.outcome"] for run in runs] == ["returned", "raised"]
    assert [links(run) for run in runs] == [[key(send)] for send in spans.named("send q")]
    assert current == [False]
