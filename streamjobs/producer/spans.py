"""One span for each enqueue, or bulk, and its context in the jobs; after OpenTelemetry's conventions for messaging."""

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from streamjobs.core import tracing
from streamjobs.core.errors import StreamJobsError
from streamjobs.core.job import Job

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


class SendSpan:
    """A context manager: the span `send QUEUE`, current while its block runs. What is sent in it is carried first."""

    def __init__(self, tracer: "Tracer") -> None:
        from opentelemetry.trace import SpanKind

        self._queues: set[str] = set()
        self._jobs = 0
        attributes = {
            "messaging.system": tracing.SYSTEM,
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
        }
        self._scope = tracer.start_as_current_span("send", kind=SpanKind.PRODUCER, attributes=attributes)

    def __enter__(self) -> "SendSpan":
        self._span = self._scope.__enter__()
        self._traceparent = tracing.traceparent(self._span)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if len(self._queues) == 1:
            [queue] = self._queues
            self._span.update_name(f"send {queue}")
            self._span.set_attribute("messaging.destination.name", queue)
        if error is not None:
            self._span.set_attribute("error.type", type(error).__name__)
        self._scope.__exit__(kind, error, trace)

    def carry(self, job: Any) -> Any:
        """Return a job that carries the span's context along; what is no job is for others to refuse."""
        if not isinstance(job, Job):
            return job
        self._queues.add(job.queue)
        self._jobs += 1
        if not self._traceparent:
            return job
        return msgspec.structs.replace(job, meta=msgspec.structs.replace(job.meta, traceparent=self._traceparent))

    def sent(self, job: Job, handle: object = None) -> None:
        """Note the job that came of a single enqueue, or without a handle that is still to come of it."""
        if handle is not None:
            self._span.set_attribute("messaging.message.id", str(getattr(handle, "id", "")))
        self._span.set_attribute("messaging.message.body.size", len(job.body))
        self._span.set_attribute("streamjobs.kind", job.kind)

    def sent_many(self, results: Sequence[object]) -> None:
        """Note what came of a bulk: one that failed in part failed."""
        from opentelemetry.trace import Status, StatusCode

        self._span.set_attribute("messaging.batch.message_count", self._jobs)
        errors = [one for one in results if isinstance(one, StreamJobsError)]
        if errors:
            self._span.set_attribute("error.type", type(errors[0]).__name__)
            self._span.set_status(
                Status(StatusCode.ERROR, f"{len(errors)} of {len(results)} were not sent: {errors[0]}")
            )
