"""Options as values: what a kind, one enqueue, and a worker can be told. Checked when made."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict

import msgspec

from streamjobs.core import names
from streamjobs.core.errors import InvalidOption
from streamjobs.core.limits import Concurrencies, Limit, Rates, limits
from streamjobs.core.retry import Retry

DEFAULT_QUEUE = "default"
MAX_RESULT_TTL_MS = 30 * 86_400_000


class JobOptions(msgspec.Struct, frozen=True):
    """What holds for every job of a kind; also the app's defaults for kinds that say nothing.

    `timeout`: seconds a run may take, None for no limit. `result_ttl`: seconds a result is kept, 0
    for not at all. `rate`, `concurrency`: limits over all workers of a queue (docs/flow.md).
    """

    queue: str = DEFAULT_QUEUE
    timeout: float | timedelta | None = 600.0
    retry: Retry = Retry()
    result_ttl: float | timedelta = 0
    rate: Rates = None
    concurrency: Concurrencies = None

    def __post_init__(self) -> None:
        names.check_name(self.queue, "queue")
        if not isinstance(self.retry, Retry):
            raise InvalidOption(f"retry={self.retry!r:.80}: expected streamjobs.Retry(...)")
        _ = self.timeout_s, self.result_ttl_ms, self.limits

    def changed(self, keywords: Mapping[str, Any]) -> "JobOptions":
        """Return these options with some fields changed.

        Raises:
            InvalidOption: a value is outside its range, or there is no such field.
        """
        _check_known(type(self), keywords)
        return msgspec.structs.replace(self, **keywords)

    @property
    def timeout_s(self) -> float | None:
        """Seconds a run may take, or None."""
        return None if self.timeout is None else names.milliseconds(self.timeout, "timeout") / 1000

    @property
    def result_ttl_ms(self) -> int:
        """How long a result is kept; 0 for not at all."""
        return result_ttl_ms(self.result_ttl)

    @property
    def limits(self) -> tuple[Limit, ...]:
        """All limits of the kind."""
        return limits(self.rate, self.concurrency)


def result_ttl_ms(value: float | timedelta) -> int:
    """Return a result's time to live in ms: 0, or up to 30 days."""
    return names.milliseconds(value, "result_ttl", low_ms=0, high_ms=MAX_RESULT_TTL_MS)


class EnqueueKeywords(TypedDict, total=False):
    """The options of one enqueued job as keywords, for signatures that take them all; see `Kind.options`."""

    delay: float | timedelta | None
    at: datetime | None
    dedupe_key: str | None
    queue: str | None
    headers: dict[str, str] | None
    result_ttl: float | timedelta | None


class EnqueueOptions(msgspec.Struct, frozen=True):
    """What holds for one enqueued job; see `Kind.options`."""

    delay: float | timedelta | None = None
    at: datetime | None = None
    dedupe_key: str | None = None
    queue: str | None = None
    headers: dict[str, str] | None = None
    result_ttl: float | timedelta | None = None

    def __post_init__(self) -> None:
        if self.delay is not None and self.at is not None:
            raise InvalidOption("delay and at: give one of the two")
        if self.dedupe_key is not None:
            names.check_dedupe_key(self.dedupe_key)
        if self.queue is not None:
            names.check_name(self.queue, "queue")
        if self.headers is not None:
            _check_headers(self.headers)
        _ = self.delay_ms, self.at_ms, result_ttl_ms(self.result_ttl or 0)

    @classmethod
    def of(cls, keywords: EnqueueKeywords) -> "EnqueueOptions":
        """Return the options that these keywords give.

        Raises:
            InvalidOption: a value is outside its range, or there is no such option.
        """
        _check_known(cls, keywords)
        return cls(**keywords)

    @property
    def delay_ms(self) -> int:
        """Milliseconds from the server's receipt; 0 for none."""
        return 0 if self.delay is None else names.milliseconds(self.delay, "delay")

    @property
    def at_ms(self) -> int:
        """Instant in ms since 1970; 0 for none."""
        return 0 if self.at is None else names.instant_ms(self.at, "at")


def _check_known(options: type[msgspec.Struct], keywords: Mapping[str, object]) -> None:
    if unknown := sorted(set(keywords) - set(options.__struct_fields__)):
        raise InvalidOption(f"option {unknown[0]!r}: there is none; use {', '.join(options.__struct_fields__)}")


def _check_headers(headers: Any) -> None:
    if not isinstance(headers, dict) or not all(isinstance(part, str) for pair in headers.items() for part in pair):
        raise InvalidOption("headers: expected a dict of strings to strings")
    try:
        size = sum(len(part.encode()) for pair in headers.items() for part in pair)
    except UnicodeEncodeError as error:
        raise InvalidOption("headers: a string holds a lone surrogate, which has no UTF-8 form") from error
    if size > 4096:
        raise InvalidOption(f"headers: {size} bytes, the limit is 4096; put what the job needs into its arguments")


class WorkerKeywords(TypedDict, total=False):
    """The fields of `WorkerOptions` as keywords."""

    concurrency: int
    lease: float | timedelta
    sweep: float | timedelta
    grace: float | timedelta
    read_ahead: float | timedelta
    block: float | timedelta
    burst: bool


class WorkerOptions(msgspec.Struct, frozen=True):
    """How one worker works; durations in seconds."""

    concurrency: int = 100
    """Jobs that run at once; plain functions take a thread each."""
    lease: float | timedelta = 15.0
    """Used where the queue has none yet; a queue's own lease wins."""
    sweep: float | timedelta = 5.0
    grace: float | timedelta = 25.0
    read_ahead: float | timedelta = 0.1
    """Work worth at most this long is fetched beyond the free slots."""
    block: float | timedelta = 5.0
    burst: bool = False
    """End when nothing waits, runs or retries."""

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= 100_000:
            raise InvalidOption(f"concurrency={self.concurrency!r}: use 1 to 100000")
        for name, low_ms, high_ms in (
            ("lease", 100, 86_400_000),
            ("sweep", 10, 3_600_000),
            ("grace", 0, 86_400_000),
            ("read_ahead", 0, 60_000),
            ("block", 10, 60_000),
        ):
            names.milliseconds(getattr(self, name), name, low_ms=low_ms, high_ms=high_ms)

    def changed(self, keywords: WorkerKeywords) -> "WorkerOptions":
        """Return these options with some fields changed.

        Raises:
            InvalidOption: a value is outside its range, or there is no such field.
        """
        _check_known(type(self), keywords)
        return msgspec.structs.replace(self, **keywords)

    def ms(self, name: str) -> int:
        """Return one of the durations in milliseconds."""
        return names.milliseconds(getattr(self, name), name, low_ms=0)
