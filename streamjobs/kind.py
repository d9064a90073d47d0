"""What `@app.job` makes of a function: a kind of job that can be enqueued."""

from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack

import msgspec

from streamjobs.core import codec, dedupe, redact
from streamjobs.core.cron import Cron, Schedule
from streamjobs.core.dedupe import Dedupe
from streamjobs.core.errors import InvalidOption, UsageError
from streamjobs.core.job import FRESH, Job, Meta
from streamjobs.core.options import CronOptions, EnqueueKeywords, EnqueueOptions, JobOptions, result_ttl_ms
from streamjobs.core.registry import Handler
from streamjobs.handle import Handle

if TYPE_CHECKING:
    from streamjobs.senders import Senders

P = ParamSpec("P")
R = TypeVar("R")


class Kind(Generic[P, R]):
    """A kind of job. Calling it calls the function, here and now; `enqueue` makes a job of the call."""

    def __init__(self, handler: Handler, senders: "Senders", options: EnqueueOptions | None = None) -> None:
        self._handler = handler
        self._senders = senders
        self.__doc__ = handler.function.__doc__
        self.__wrapped__ = handler.function
        self._queue = handler.options.queue
        self._delay_ms = self._at_ms = 0
        ttl_ms = handler.options.result_ttl_ms
        mode = handler.options.dedupe
        self._durability = handler.options.durability
        if options is not None:
            self._durability = options.durability or self._durability
            mode = options.mode(mode)
            self._queue = options.queue or self._queue
            if options.delay is not None or options.at is not None:
                self._delay_ms, self._at_ms = options.delay_ms, options.at_ms
            if options.result_ttl is not None:
                ttl_ms = result_ttl_ms(options.result_ttl)
            if mode is not None and mode is not handler.options.dedupe:
                mode.check(handler.signature.names, handler.kind)
        self._meta = make_meta(options, ttl_ms, mode)
        self._mode = None if options and options.dedupe_key else mode
        """What makes a key of each call's arguments; None where they make none."""

    @property
    def name(self) -> str:
        """The kind's name on the wire."""
        return self._handler.kind

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself; nothing is enqueued."""
        return self._handler.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Kind {self.name}>"

    def options(self, **options: Unpack[EnqueueKeywords]) -> "Kind[P, R]":
        """Return this kind with other options for what is enqueued through it.

        Args:
            delay: run no sooner than so many seconds after the server has taken the job; 1 ms to 10 years.
            at: run no sooner than this instant; must have a time zone.
            dedupe_key: at most one job with this key is waiting, scheduled or running in its queue: a
                second enqueue returns the first one's handle, with `duplicate` set. 1 to 256 bytes.
            dedupe: another rule than "until it has ended": `UntilStarted()`, `Latest()`, or a `Window`.
                Without a `dedupe_key`, the arguments that it names make the key, else all of them. None:
                no dedupe, whatever the kind says. Left out: what the kind says.
            queue: another queue than the kind's.
            headers: strings that travel along, for the handler's `ctx.headers`; 4 KiB at most.
            result_ttl: seconds for which what the handler returns is kept; 0 for not at all.
            expires: an instant, or seconds after the server has taken the job: if its first attempt has
                not started by then, it never does. A retry is started however late.
            when_expired: what becomes of it then: "dead" (the default), with the reason `expired`, or
                "drop": it ends as cancelled.
            durability: where the job must be before the enqueue returns: in the server's "memory" (the
                default), on its disk ("fsync"), or at N replicas ("replicas:N"). docs/producers.md.

        Raises:
            InvalidOption: a value is outside its range.
        """
        return Kind(self._handler, self._senders, EnqueueOptions.of(options))

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """Return the job that `enqueue` would send, for `enqueue_many`.

        Raises:
            UsageError: the arguments do not fit the function, or cannot be encoded.
            PayloadTooLarge: they exceed 256 KiB.
        """
        body, arguments = self._handler.signature.bind(args, kwargs)
        meta = self._meta if self._mode is None else with_key(self._meta, self._mode, self._handler, arguments)
        return Job(self._handler.kind, body, self._queue, self._delay_ms, self._at_ms, meta, self._durability)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Enqueue one job; calls that are made at once share round trips.

        Raises:
            UsageError, PayloadTooLarge: as `call`; nothing was sent.
            NotSent: the server could not be reached in time; the job was definitely not enqueued.
            OutcomeUnknown: the reply was lost; `await error.retry()` finds out, exactly.
            Rejected: the server refuses it for good.
        """
        return await self._senders.aio().enqueue(self.call(*args, **kwargs))

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """As `enqueue`, for plain code; `error.retry()` is plain too."""
        return self._senders.sync().enqueue(self.call(*args, **kwargs))

    def call_named(self, values: dict[str, Any]) -> Job:
        """Return the job for arguments by name, converted to the function's types where they are text."""
        body, arguments = self._handler.signature.convert(values)
        meta = self._meta if self._mode is None else with_key(self._meta, self._mode, self._handler, arguments)
        return Job(self._handler.kind, body, self._queue, self._delay_ms, self._at_ms, meta, self._durability)

    def cron(self, schedule: Schedule, options: CronOptions) -> Cron:
        """Return a cron that enqueues this kind, with its arguments checked and encoded; see `StreamJobs.cron`."""
        name = options.name or self.name
        if self._delay_ms or self._at_ms or self._meta.dedupe_key or self._mode:
            raise InvalidOption(f"cron {name!r}: a slot has its time and its one run: no delay, at or dedupe")
        body = self._handler.signature.encode((), dict(options.args or {}))
        job = Job(self.name, body, self._queue, meta=self._meta)
        return Cron(name, job, schedule, options.catch_up, options.jitter_ms)


def job_of(
    kind: str, arguments: dict[str, Any], options: EnqueueOptions, handler: Handler | None, defaults: JobOptions
) -> Job:
    """Return a job of a kind by its name, checked against its handler's signature if that is known."""
    body = codec.encode_object(arguments, kind)
    fields = None if handler is None else handler.signature.check(body)
    defaults = defaults if handler is None else handler.options
    ttl = defaults.result_ttl if options.result_ttl is None else options.result_ttl
    mode = options.mode(defaults.dedupe)
    meta = make_meta(options, result_ttl_ms(ttl), mode)
    if mode is not None and mode is not defaults.dedupe and handler is not None:
        mode.check(handler.signature.names, kind)
    if mode is not None and not options.dedupe_key:
        meta = with_key(meta, mode, handler, fields)
    queue, durability = options.queue or defaults.queue, options.durability or defaults.durability
    return Job(kind, body, queue, options.delay_ms, options.at_ms, meta, durability)


def make_meta(options: EnqueueOptions | None, ttl_ms: int, mode: Dedupe | None) -> Meta:
    """Return the meta that these options ask for; FRESH itself when they ask for nothing."""
    told = {} if mode is None else dedupe.wire(mode)
    if ttl_ms:
        told["result_ttl_ms"] = ttl_ms
    if options is not None:
        if options.dedupe_key:
            told["dedupe_key"] = options.dedupe_key
        if options.headers:
            told["headers"] = options.headers
        if options.expires is not None:
            told |= {"expires_ms": options.expires_ms, "expires_at_ms": options.expires_at_ms}
            told["drop_expired"] = options.when_expired == "drop"
    return Meta(**told) if told else FRESH


def with_key(meta: Meta, mode: Dedupe, handler: Handler | None, arguments: msgspec.Struct | None) -> Meta:
    """Return the meta of a job with these arguments, with the key that they make.

    Raises:
        UsageError: the handler, and with it the names and defaults of its arguments, is not known here, or one
            of those that make the key is redacted.
    """
    if handler is None or arguments is None:
        raise UsageError(
            "dedupe: the handler is not known here, so its arguments make no key: give a dedupe_key, or the app"
        )
    if handler.options.redact:
        redact.check_key(handler.options.redact, mode, handler.kind)
    return msgspec.structs.replace(meta, dedupe_key=mode.key_of(handler.kind, arguments))
