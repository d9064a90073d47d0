"""Trace contexts in the form of W3C, and a tracer that is found only where there is one."""

import subprocess
import sys
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import INVALID_SPAN, NoOpTracerProvider, SpanContext

from streamjobs.core import tracing

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_context_survives_the_way_there_and_back() -> None:
    span = TracerProvider().get_tracer("t").start_span("s")

    found = tracing.span_context(tracing.traceparent(span))

    own = span.get_span_context()
    assert isinstance(found, SpanContext)
    assert (found.trace_id, found.span_id, found.trace_flags) == (own.trace_id, own.span_id, own.trace_flags)
    assert found.is_remote
    assert tracing.traceparent(INVALID_SPAN) == ""


def test_later_versions_may_say_more() -> None:
    assert tracing.span_context(f"01-{TRACE}-{SPAN}-01-more") is not None


@pytest.mark.parametrize(
    "text",
    ["", "t", "00-1-2-01", "x" * 100_000, f"00-{TRACE}-{SPAN}", f"00-{TRACE}-{SPAN}-01-more", f"ff-{TRACE}-{SPAN}-01",
     f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE.upper()}-{SPAN}-01",
     f"00-{TRACE}-{SPAN}-01\n"],
    ids=lambda text: repr(text[:70]),
)  # fmt: skip
def test_what_breaks_the_form_is_no_context(text: str) -> None:
    assert tracing.span_context(text) is None


@pytest.mark.parametrize("provider", [None, NoOpTracerProvider(), trace.ProxyTracerProvider()])
def test_no_tracer_where_nobody_would_see_its_spans(monkeypatch: pytest.MonkeyPatch, provider: Any) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)

    assert tracing.tracer() is None


def test_no_tracer_where_the_sdk_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", TracerProvider())

    assert tracing.tracer() is None


def test_the_tracer_of_the_provider_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    providers = [TracerProvider(), TracerProvider()]
    found = []
    for provider in [*providers, providers[1]]:
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
        found.append(tracing.tracer())

    assert None not in found
    assert found[0] is not found[1]
    assert found[1] is found[2]


WORK = """
import asyncio, sys
{first}
before = set(sys.modules)
from streamjobs import StreamJobs

app = StreamJobs("memory://")

@app.job
async def quick() -> None: ...

async def main() -> None:
    await quick.enqueue()
    await app.enqueue_many([quick.call()])
    async with app.worker(health_port=0, burst=True): ...
    await app.aclose()

asyncio.run(main())
extras = ("opentelemetry", "prometheus_client")
print([name for name in sys.modules if name.split(".")[0] in extras and name not in before])
"""


@pytest.mark.parametrize(
    "first",
    ["import fakeredis, redis.asyncio", 'sys.modules["opentelemetry"] = sys.modules["prometheus_client"] = None'],
    ids=["there", "missing"],
)
def test_work_imports_neither_extra_and_needs_none(first: str) -> None:
    """The driver itself imports what it finds of OpenTelemetry."""
    program = WORK.replace("{first}", first)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
