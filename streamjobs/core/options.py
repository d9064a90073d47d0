"""Options as values: what a kind, one enqueue, and a worker can be told. Checked when made."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, Self, TypedDict, get_args

import msgspec
from msgspec import UNSET, UnsetType

from streamjobs.core import durability, names, redact
from streamjobs.core.addresses import parse_address
from streamjobs.core.cron import CATCH_UPS, CatchUp
from streamjobs.core.dedupe import Dedupe, check_mode
from streamjobs.core.errors import InvalidOption
from streamjobs.core.limits import Bound, Concurrencies, Concurrency, KeepDead, Limit, Rate, Rates, limits, queue_limits
from streamjobs.core.retry import Retry
from streamjobs.core.thresholds import Thresholds

WhenExpired = Literal["dead", "drop"]
WhenFull = Literal["raise", "wait"]
Loop = Literal["auto", "asyncio", "uvloop"]

DEFAULT_QUEUE = "default"
MAX_RESULT_TTL_MS = 30 * 86_400_000
MAX_BATCH_ITEMS = 10_000
MAX_BATCH_WAIT_MS = 60_000


class _Options(msgspec.Struct, frozen=True):
    """Options of any sort: each has a default, and may be given as a keyword."""

    @classmethod
    def of(cls, keywords: Mapping[str, Any]) -> Self:
        """Return the options that these keywords give.

        Raises:
            InvalidOption: a value is outside its range, or there is no such option.
        """
        try:
            return cls(**keywords)
        except TypeError:
            cls._check_known(keywords)
            raise

    def changed(self, keywords: Mapping[str, Any]) -> Self:
        """Return these options with some of them changed.

        Raises:
            InvalidOption: a value is outside its range, or there is no such option.
        """
        self._check_known(keywords)
        return msgspec.structs.replace(self, **keywords)

    @classmethod
    def _check_known(cls, keywords: Mapping[str, Any]) -> None:
        if unknown := sorted(set(keywords) - set(cls.__struct_fields__)):
            raise InvalidOption(f"option {unknown[0]!r}: there is none; use {', '.join(cls.__struct_fields__)}")


class JobOptions(_Options, frozen=True):
    """What holds for every job of a kind; also the app's defaults for kinds that say nothing.

    `timeout`: seconds a run may take, None for no limit. `result_ttl`: seconds a result is kept, 0
    for not at all. `dedupe`: how long a job keeps out others of its dedupe key, and which arguments
    make the key; None where only an enqueue that names a key has one. `rate`, `concurrency`: limits over
    all workers of a queue (docs/flow.md). `redact`: names of arguments whose values the command line does
    not show (docs/security.md). `process`: plain functions run in a process of their own (docs/handlers.md).
    `durability`: where a job must be before its enqueue returns (docs/producers.md).
    """

    queue: str = DEFAULT_QUEUE
    timeout: float | timedelta | None = 600.0
    retry: Retry = Retry()
    result_ttl: float | timedelta = 0
    dedupe: Dedupe | None = None
    rate: Rates = None
    concurrency: Concurrencies = None
    redact: Sequence[str] = ()
    process: bool = False
    durability: str = durability.MEMORY

    def __post_init__(self) -> None:
        names.check_name(self.queue, "queue")
        redact.check(self.redact)
        durability.parse(self.durability)
        if not isinstance(self.retry, Retry):
            raise InvalidOption(f"retry={self.retry!r:.80}: expected streamjobs.Retry(...)")
        check_mode(self.dedupe)
        _ = self.timeout_s, result_ttl_ms(self.result_ttl), self.limits

    @property
    def timeout_s(self) -> float | None:
        """Seconds a run may take, or None."""
        return None if self.timeout is None else names.milliseconds(self.timeout, "timeout") / 1000

    @property
    def result_ttl_ms(self) -> int:
        """How long a result is kept; 0 for not at all."""
        return result_ttl_ms(self.result_ttl) if self.result_ttl else 0

    @property
    def limits(self) -> tuple[Limit, ...]:
        """All limits of the kind."""
        return limits(self.rate, self.concurrency)


class Batch(_Options, frozen=True):
    """How jobs are gathered for a handler that takes a list of them (docs/batch.md).

    `max_items`: at most so many at once, 1 to 10,000; never more than a worker's `concurrency`, for each takes
    a slot. `max_wait`: seconds, 0 to 60, for which the first of them waits for others; with 0, for those that were
    fetched together with it.
    """

    max_items: int
    max_wait: float | timedelta = 0.05

    def __post_init__(self) -> None:
        items = self.max_items
        if isinstance(items, bool) or not isinstance(items, int) or not 1 <= items <= MAX_BATCH_ITEMS:
            raise InvalidOption(f"max_items={items!r:.80}: use 1 to {MAX_BATCH_ITEMS}")
        _ = self.max_wait_s

    @property
    def max_wait_s(self) -> float:
        """Seconds for which the first waits for others."""
        return names.milliseconds(self.max_wait, "max_wait", low_ms=0, high_ms=MAX_BATCH_WAIT_MS) / 1000


class JobKeywords(TypedDict, total=False):
    """The options of a kind as keywords; see `StreamJobs.job`."""

    queue: str | None
    timeout: float | timedelta | None
    retry: Retry | None
    result_ttl: float | timedelta | None
    dedupe: Dedupe | None
    rate: Rates
    concurrency: Concurrencies
    redact: Sequence[str] | None
    process: bool | None
    durability: str | None


def result_ttl_ms(value: float | timedelta) -> int:
    """Return a result's time to live in ms: 0, or up to 30 days."""
    return names.milliseconds(value, "result_ttl", low_ms=0, high_ms=MAX_RESULT_TTL_MS)


class EnqueueKeywords(TypedDict, total=False):
    """The options of one enqueued job as keywords, for signatures that take them all; see `Kind.options`."""

    delay: float | timedelta | None
    at: datetime | None
    dedupe_key: str | None
    dedupe: Dedupe | None
    queue: str | None
    headers: dict[str, str] | None
    result_ttl: float | timedelta | None
    expires: float | timedelta | datetime | None
    when_expired: WhenExpired
    durability: str | None


class EnqueueOptions(_Options, frozen=True):
    """What holds for one enqueued job; see `Kind.options`."""

    delay: float | timedelta | None = None
    at: datetime | None = None
    dedupe_key: str | None = None
    dedupe: Dedupe | UnsetType | None = UNSET
    """UNSET for what the kind says, None for none."""
    queue: str | None = None
    headers: dict[str, str] | None = None
    result_ttl: float | timedelta | None = None
    expires: float | timedelta | datetime | None = None
    when_expired: WhenExpired = "dead"
    durability: str | None = None

    def __post_init__(self) -> None:
        if self.durability is not None:
            durability.parse(self.durability)
        if self.dedupe_key is not None:
            names.check_dedupe_key(self.dedupe_key)
        if self.dedupe is not UNSET:
            check_mode(self.dedupe)
            if self.dedupe is None and self.dedupe_key is not None:
                raise InvalidOption(f"dedupe_key={self.dedupe_key!r:.80} and no dedupe: give one of the two")
        if self.queue is not None:
            names.check_name(self.queue, "queue")
        if self.headers is not None:
            _check_headers(self.headers)
        if self.result_ttl is not None:
            result_ttl_ms(self.result_ttl)
        if self.when_expired not in ("dead", "drop"):
            raise InvalidOption(f"when_expired={self.when_expired!r:.80}: use 'dead' or 'drop'")
        if self.delay is not None or self.at is not None or self.expires is not None:
            self._check_times()

    def _check_times(self) -> None:
        if self.delay is not None and self.at is not None:
            raise InvalidOption("delay and at: give one of the two")
        _ = self.delay_ms, self.at_ms
        if self.at is not None and self.expires_ms:
            raise InvalidOption("expires: counts from the enqueue; beside at= give an instant, at + timedelta(...)")
        if self.delay_ms >= self.expires_ms > 0 or self.at_ms >= self.expires_at_ms > 0:
            raise InvalidOption(f"expires={self.expires!s:.80}: the job would expire before it is due")

    def mode(self, default: Dedupe | None) -> Dedupe | None:
        """Return the dedupe mode, where `default` is what the kind says."""
        return default if isinstance(self.dedupe, UnsetType) else self.dedupe

    @property
    def delay_ms(self) -> int:
        """Milliseconds from the server's receipt; 0 for none."""
        return 0 if self.delay is None else names.milliseconds(self.delay, "delay")

    @property
    def at_ms(self) -> int:
        """Instant in ms since 1970; 0 for none."""
        return 0 if self.at is None else names.instant_ms(self.at, "at")

    @property
    def expires_ms(self) -> int:
        """Milliseconds from the server's receipt; 0 for none, or for an instant."""
        if self.expires is None or isinstance(self.expires, datetime):
            return 0
        return names.milliseconds(self.expires, "expires")

    @property
    def expires_at_ms(self) -> int:
        """Instant in ms since 1970; 0 for none, or for a time from the receipt."""
        return names.instant_ms(self.expires, "expires") if isinstance(self.expires, datetime) else 0


class QueueKeywords(TypedDict, total=False):
    """What is said of a queue as keywords; see `StreamJobs.queue`."""

    rate: Rate | None
    concurrency: Concurrency | int | None
    max_waiting: int | None
    when_full: WhenFull | None
    keep_dead: KeepDead | None
    thresholds: Thresholds | None


class QueueOptions(_Options, frozen=True):
    """What is said of a queue; None is said of nothing. See `StreamJobs.queue`."""

    rate: Rate | None = None
    concurrency: Concurrency | int | None = None
    max_waiting: int | None = None
    when_full: WhenFull | None = None
    keep_dead: KeepDead | None = None
    thresholds: Thresholds | None = None

    def __post_init__(self) -> None:
        _ = self.limits, self.bounded(Bound())
        if not isinstance(self.thresholds, Thresholds | None):
            raise InvalidOption(f"thresholds={self.thresholds!r:.80}: expected streamjobs.Thresholds(...)")

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits of the whole queue."""
        return queue_limits(self.rate, self.concurrency)

    def bounded(self, before: Bound) -> Bound:
        """Return how many jobs may wait, and are kept dead, from now on; what is not said stays as it was."""
        return before.changed(self.max_waiting, self.when_full, self.keep_dead)


class CronKeywords(TypedDict, total=False):
    """The options of a cron as keywords."""

    name: str | None
    args: Mapping[str, Any] | None
    catch_up: CatchUp
    jitter: float | timedelta


class CronOptions(_Options, frozen=True):
    """What a cron is told beside its schedule; see `StreamJobs.cron`."""

    name: str | None = None
    args: Mapping[str, Any] | None = None
    catch_up: CatchUp = "once"
    jitter: float | timedelta = 0

    def __post_init__(self) -> None:
        if self.name is not None:
            names.check_kind(self.name, "cron")
        if self.catch_up not in CATCH_UPS:
            raise InvalidOption(f"catch_up={self.catch_up!r:.80}: use {', '.join(CATCH_UPS)}")
        if self.args is not None and not isinstance(self.args, Mapping):
            raise InvalidOption(f"args={self.args!r:.80}: expected arguments by name, such as {{'region': 'eu'}}")
        _ = self.jitter_ms

    @property
    def jitter_ms(self) -> int:
        """Milliseconds by which a run may come after its slot, at most a day."""
        return names.milliseconds(self.jitter, "jitter", low_ms=0, high_ms=86_400_000)


def _check_number(value: int, name: str, high: int) -> None:
    if not 1 <= value <= high:
        raise InvalidOption(f"{name}={value!r}: use 1 to {high}")


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
    pool: int | None
    max_jobs_per_process: int
    max_process_bytes: int | None
    burst: bool
    strict: bool
    allow_eviction: bool
    health_port: int | str | None
    metrics_port: int | str | None
    loop: Loop


class WorkerOptions(_Options, frozen=True):
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
    pool: int | None = None
    """Processes at most for handlers with `process=True`; default one for each CPU."""
    max_jobs_per_process: int = 1000
    """After so many jobs a process is replaced."""
    max_process_bytes: int | None = None
    """One that holds more memory than this behind a job is replaced; None for no limit."""
    burst: bool = False
    """End when nothing waits, runs or retries."""
    strict: bool = False
    """Read a queue only when those given before it have no more; one passed over for long ages."""
    allow_eviction: bool = False
    """Start also on a server that deletes keys, and so jobs, when its memory is full."""
    health_port: int | str | None = None
    """Serve `/livez` and `/readyz`: at a port of this machine alone, `HOST:PORT`, or `:PORT` for all interfaces."""
    metrics_port: int | str | None = None
    """Serve `/metrics` for Prometheus likewise; it may be the same place."""
    loop: Loop = "auto"
    """Of a worker that has a process to itself: `uvloop`, which must be installed (else MissingExtra), `asyncio`, or
    `auto` for uvloop where it is."""

    def __post_init__(self) -> None:
        _check_number(self.concurrency, "concurrency", 100_000)
        if self.loop not in get_args(Loop):
            raise InvalidOption(f"loop={self.loop!r:.80}: use {', '.join(get_args(Loop))}")
        if self.pool is not None:
            _check_number(self.pool, "pool", 1024)
        _check_number(self.max_jobs_per_process, "max_jobs_per_process", 1_000_000_000)
        if self.max_process_bytes is not None:
            _check_number(self.max_process_bytes, "max_process_bytes", 1 << 50)
        for name, low_ms, high_ms in (
            ("lease", 100, 86_400_000),
            ("sweep", 10, 3_600_000),
            ("grace", 0, 86_400_000),
            ("read_ahead", 0, 60_000),
            ("block", 10, 60_000),
        ):
            names.milliseconds(getattr(self, name), name, low_ms=low_ms, high_ms=high_ms)
        for name in ("health_port", "metrics_port"):
            if (place := getattr(self, name)) is not None:
                parse_address(place, name)

    def ms(self, name: str) -> int:
        """Return one of the durations in milliseconds."""
        return names.milliseconds(getattr(self, name), name, low_ms=0)
