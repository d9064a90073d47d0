"""The kinds and the crons that this process knows, by name."""

import inspect
from collections.abc import Callable
from typing import Any

import msgspec

from streamjobs.core import redact
from streamjobs.core.codec import Signature
from streamjobs.core.cron import Cron
from streamjobs.core.errors import InvalidOption, UnknownKind
from streamjobs.core.items import ItemSignature
from streamjobs.core.limits import Bound, Limit
from streamjobs.core.meter import Meter
from streamjobs.core.names import check_kind
from streamjobs.core.options import Batch, JobOptions
from streamjobs.core.thresholds import Thresholds


class Handler(msgspec.Struct, frozen=True, eq=False):
    """One kind: the function behind it, how its arguments travel, and its options."""

    kind: str
    function: Callable[..., Any]
    signature: Signature
    options: JobOptions
    is_async: bool
    timeout_s: float | None
    limits: tuple[Limit, ...] = ()
    known: bool = True
    batch: Batch | None = None
    """Where the function takes a list of jobs: how they are gathered."""

    @property
    def ends_when_cancelled(self) -> bool:
        """Whether its run can be ended: a thread goes on."""
        return self.is_async or self.options.process


class Registry:
    """Kinds and crons by name; a name stands for one of each for as long as the process lives."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._crons: dict[str, Cron] = {}
        self.bounds: dict[str, Bound] = {}
        """By queue, what the code says of how many jobs may wait."""
        self.secrets: dict[str, tuple[str, ...]] = {}
        """By kind, the arguments that operators do not see."""
        self.meter = Meter()
        """What this app does, counted."""
        self.thresholds: dict[str, Thresholds] = {}
        """By queue, from when on it is degraded or critical, where the code says so."""

    def add(
        self,
        function: Callable[..., Any],
        name: str,
        options: JobOptions,
        *,
        context: type,
        batch: Batch | None = None,
    ) -> Handler:
        """Register `function` under `name`; with `batch` it takes a list, and each job is one item of it.

        Raises:
            InvalidOption: the name is taken, or the function cannot be a handler.
        """
        check_kind(name)
        if not inspect.isfunction(function) and not inspect.ismethod(function):
            raise InvalidOption(f"kind {name!r}: expected a function, not {function!r:.80}")
        if name in self._handlers:
            raise InvalidOption(f"kind {name!r} is registered already: give one of the two another name=")
        if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
            raise InvalidOption(f"kind {name!r}: a generator cannot be a handler; return a value instead")
        if not isinstance(batch, Batch | None):
            raise InvalidOption(f"kind {name!r}: batch={batch!r:.80}: expected streamjobs.Batch(...)")
        signature = (ItemSignature if batch else Signature)(function, context=context, kind=name)
        if options.dedupe is not None:
            options.dedupe.check(signature.names, name)
            redact.check_key(options.redact, options.dedupe, name)
        redact.check_arguments(options.redact, signature.names, name)
        # A plain decorator around an async handler leaves a plain function that returns a coroutine.
        is_async = any(map(inspect.iscoroutinefunction, (function, inspect.unwrap(function))))
        if batch is not None and options.process:
            raise InvalidOption(f"kind {name!r}: batch= and process=True: give one of the two")
        if is_async and options.process:
            raise InvalidOption(f"kind {name!r}: process=True is for plain functions; this one is async: write `def`")
        for limit in options.limits:
            if limit.key is not None and limit.key not in signature.names:
                known = ", ".join(signature.names) or "none at all"
                raise InvalidOption(f"kind {name!r}: key={limit.key!r:.80} is not an argument of it; it has {known}")
            if limit.key in options.redact:
                raise InvalidOption(
                    f"kind {name!r}: key={limit.key!r:.80} is redacted and would stand in the lane's name"
                )
        handler = Handler(name, function, signature, options, is_async, options.timeout_s, options.limits, batch=batch)
        self._handlers[name] = handler
        if options.redact:
            self.secrets[name] = tuple(options.redact)
        self.meter.kinds.add(name)
        self.meter.queues.add(options.queue)
        return handler

    def find(self, kind: str) -> Handler | None:
        """Return the handler of `kind`, or None."""
        return self._handlers.get(kind)

    def require(self, kind: str) -> Handler:
        """Return the handler of `kind`.

        Raises:
            UnknownKind: there is none; the message names those that look like it.
        """
        handler = self._handlers.get(kind)
        if handler is None:
            # difflib costs 10 ms to import and is needed only here.
            from difflib import get_close_matches

            near = get_close_matches(kind, self._handlers, 3, 0.4) or sorted(self._handlers)[:5]
            known = ", ".join(near) or "none at all"
            raise UnknownKind(f"kind {kind!r:.80} is not registered in this app; known here: {known}")
        return handler

    def all(self) -> dict[str, Handler]:
        """Return every handler by its kind."""
        return dict(self._handlers)

    def add_cron(self, cron: Cron) -> None:
        """Register a cron.

        Raises:
            InvalidOption: its name is taken.
        """
        if cron.name in self._crons:
            raise InvalidOption(f"cron {cron.name!r} is registered already: give one of the two another name=")
        self._crons[cron.name] = cron

    def crons(self) -> dict[str, Cron]:
        """Return every cron by its name."""
        return dict(self._crons)


def stranger(kind: str) -> Handler:
    """Stand for a kind that this process does not know: its jobs are parked for a worker that does."""
    return Handler(kind, _nothing, _NO_ARGUMENTS, _DEFAULTS, is_async=False, timeout_s=None, known=False)


def _nothing() -> None:
    """The function of a stranger; never called."""


_NO_ARGUMENTS = Signature(_nothing, context=object)
_DEFAULTS = JobOptions()
