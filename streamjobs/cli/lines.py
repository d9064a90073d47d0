"""Many jobs from a file, one JSON object a line, in bounded batches."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from streamjobs.cli.arguments import find_kind
from streamjobs.cli.params import instant, instant_or_seconds, mode, seconds
from streamjobs.core.errors import StreamJobsError, UsageError
from streamjobs.core.options import EnqueueOptions, WhenExpired

if TYPE_CHECKING:
    from streamjobs.app import StreamJobs
    from streamjobs.core.job import Job
    from streamjobs.handle import Handle

BATCH = 500


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """One line of a file of jobs; what it leaves out is taken from the command line."""

    kind: str | None = None
    args: dict[str, msgspec.Raw] = {}
    queue: str | None = None
    delay: float | str | None = None
    at: str | None = None
    dedupe_key: str | None = None
    dedupe: str | None = None
    headers: dict[str, str] | None = None
    result_ttl: float | str | None = None
    expires: float | str | None = None
    when_expired: WhenExpired | None = None
    durability: str | None = None


class BadLine(UsageError):
    """A line that is no job; its message says which and why."""


class Lines:
    """Makes jobs of lines."""

    def __init__(self, app: "StreamJobs", kind: str | None, options: EnqueueOptions, *, by_signature: bool) -> None:
        """`kind` and `options` hold for lines that say nothing else."""
        self._app = app
        self._kind = kind
        self._options = options
        self._by_signature = by_signature
        self._decoder = msgspec.json.Decoder(Line)
        self.read = 0
        """Lines read so far."""

    def jobs(self, lines: Iterable[bytes]) -> "Iterator[tuple[int, Job]]":
        """Yield (line number, job); empty lines are passed over.

        Raises:
            BadLine: a line is no job.
        """
        for number, text in enumerate(lines, 1):
            self.read = number
            if text.strip():
                try:
                    yield number, self._job(self._decoder.decode(text))
                except (ValueError, RecursionError, UsageError) as error:
                    raise BadLine(f"line {number}: {error}") from error

    def _job(self, line: Line) -> "Job":
        kind = line.kind or self._kind
        if kind is None:
            raise UsageError("no kind: add one, or name one on the command line")
        if self._by_signature:
            kind = find_kind(self._app, kind).kind
        return self._app.job_of(kind, line.args, self._merged(line))

    def _merged(self, line: Line) -> EnqueueOptions:
        given: dict[str, Any] = {
            "queue": line.queue,
            "delay": _seconds(line.delay),
            "at": None if line.at is None else instant(line.at),
            "dedupe_key": line.dedupe_key,
            "headers": line.headers,
            "result_ttl": _seconds(line.result_ttl),
            "expires": instant_or_seconds(line.expires) if isinstance(line.expires, str) else line.expires,
            "when_expired": line.when_expired,
            "durability": line.durability,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if line.dedupe is not None:
            given["dedupe"] = mode(line.dedupe)
        base = self._options
        if "delay" in given or "at" in given:
            base = msgspec.structs.replace(base, delay=None, at=None)
        return msgspec.structs.replace(base, **given) if given else base


def _seconds(value: float | str | None) -> float | None:
    return seconds(value) if isinstance(value, str) else value


def send_all(
    app: "StreamJobs", jobs: "Iterator[tuple[int, Job]]"
) -> "Iterator[list[tuple[int, Handle[Any] | StreamJobsError]]]":
    """Send jobs in batches of 500; yield for each batch (number, handle or error).

    Whatever the iterator raises comes after the jobs before it have been sent.
    """
    failure: Exception | None = None
    while failure is None:
        numbers: list[int] = []
        batch: list[Job] = []
        try:
            for number, job in islice(jobs, BATCH):
                numbers.append(number)
                batch.append(job)
        except Exception as error:
            failure = error
        if batch:
            yield list(zip(numbers, app.enqueue_many_sync(batch), strict=True))
        elif failure is None:
            return
    raise failure
