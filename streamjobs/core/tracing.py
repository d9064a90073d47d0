"""Traces, where this process has a tracer of OpenTelemetry's: found in passing, and never imported for.

A process in which nothing has set a tracer provider pays for a look into a dict at each enqueue, and for nothing in
a worker.
"""

import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext, Tracer

SYSTEM = "streamjobs"

_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_found: "tuple[Any, Tracer | None]" = None, None
"""The provider that was asked last, and what it gave."""


def tracer() -> "Tracer | None":
    """Return the tracer to make spans with; None where nobody would see them."""
    global _found
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    # Its own function reads the environment each time while there is none, which costs more than all else here.
    provider = getattr(trace, "_TRACER_PROVIDER", trace)
    if provider is trace:
        provider = trace.get_tracer_provider()
    if provider is not _found[0]:
        _found = provider, _made_by(provider, trace)
    return _found[1]


def _made_by(provider: Any, trace: Any) -> "Tracer | None":
    if provider is None or isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    made: Tracer = provider.get_tracer(SYSTEM)
    return None if isinstance(made, trace.NoOpTracer) else made


def traceparent(span: "Span") -> str:
    """Return a span's context in the form of W3C Trace Context; "" for a span without one."""
    context = span.get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def span_context(traceparent: str) -> "SpanContext | None":
    """Return the context that a traceparent names; None for none, or one that breaks the form."""
    from opentelemetry.trace import SpanContext, TraceFlags

    match = _PARENT.fullmatch(traceparent)
    if match is None or match[1] == "ff" or (match[1] == "00" and match[5]):
        return None
    context = SpanContext(int(match[2], 16), int(match[3], 16), True, TraceFlags(int(match[4], 16)))
    return context if context.is_valid else None
