"""One span for each run of a job, linked to the one in which it was enqueued; after the conventions for messaging."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamjobs.core import tracing
from streamjobs.core.job import Outcome, Raised, TimedOut
from streamjobs.protocol.keys import GROUP
from streamjobs.worker.execution import Execution
from streamjobs.worker.service import Complaints

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer


class ProcessSpans:
    """The spans `process QUEUE` of one worker: a trace of its own for each, and current while the handler runs.

    Not a part of the producer's trace: days may lie between the two, and retries make several of one.
    """

    def __init__(self, tracer: "Tracer", consumer: str, complaints: Complaints) -> None:
        self._tracer = tracer
        self._consumer = consumer
        self._complaints = complaints

    def begin(self, execution: Execution) -> None:
        """Start the span of a run; in the task of the run, whose context ends with it."""
        try:
            self._begin(execution)
            self._enter(execution.span)
        except Exception as error:
            self._fails(error)

    def begin_batch(self, executions: Sequence[Execution]) -> None:
        """Start a span for each of the jobs that one run takes; none of them is current."""
        try:
            for execution in executions:
                self._begin(execution)
            self._enter(None)
        except Exception as error:
            self._fails(error)

    def _enter(self, span: "Span | None") -> None:
        from opentelemetry.context import Context, attach
        from opentelemetry.trace import set_span_in_context

        attach(Context() if span is None else set_span_in_context(span, Context()))

    def _begin(self, execution: Execution) -> None:
        from opentelemetry.context import Context
        from opentelemetry.trace import Link, SpanKind

        queue, meta = execution.queue.keys.queue, execution.meta
        sender = tracing.span_context(meta.traceparent) if meta.traceparent else None
        execution.span = self._tracer.start_span(
            f"process {queue}",
            # Whatever this worker was started in.
            context=Context(),
            kind=SpanKind.CONSUMER,
            links=[Link(sender)] if sender else [],
            attributes={
                "messaging.system": tracing.SYSTEM,
                "messaging.operation.name": "process",
                "messaging.operation.type": "process",
                "messaging.destination.name": queue,
                "messaging.consumer.group.name": GROUP,
                "messaging.client.id": self._consumer,
                "messaging.message.id": execution.job_id,
                "messaging.message.body.size": len(execution.claim.body),
                "streamjobs.kind": execution.kind,
                "streamjobs.attempt": execution.attempt,
            },
        )

    def end(self, execution: Execution, outcome: Outcome) -> None:
        """End the span of a run, if it has one that goes on."""
        span, execution.span = execution.span, None
        if span is None:
            return
        try:
            span.set_attribute("streamjobs.outcome", type(outcome).__name__.lower())
            match outcome:
                case TimedOut(timeout_ms):
                    self._failed(span, "timeout", f"still running after {timeout_ms / 1000:g} s", "")
                case Raised(error, error_class, uncharged=False):
                    self._failed(span, error_class, error, execution.traceback)
            span.end()
        except Exception as error:
            self._fails(error)

    def _failed(self, span: "Span", error_class: str, error: str, traceback: str) -> None:
        from opentelemetry.trace import Status, StatusCode

        span.set_status(Status(StatusCode.ERROR, error))
        span.set_attribute("error.type", error_class)
        if traceback:
            kind, _, text = error.partition(": ")
            told = {"exception.type": kind, "exception.message": text, "exception.stacktrace": traceback}
            span.add_event("exception", told)

    def _fails(self, error: Exception) -> None:
        """Say that the tracer does not work; jobs do not depend on it."""
        self._complaints.say("tracing", "a span could not be made: %r", error)
