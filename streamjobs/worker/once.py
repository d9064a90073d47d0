"""Guarded effects: `ctx.once`. A run begins one, has it, and records it; who finds the record skips it."""

import asyncio
import os
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from random import Random
from time import monotonic
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar

import msgspec

from streamjobs.client.talk import Leniently, Pause, Talk, atalk, talk
from streamjobs.core import codec, names
from streamjobs.core.errors import (
    EffectUnderWay,
    EffectUnsure,
    InvalidOption,
    LeaseLost,
    Permanent,
    StreamJobsError,
    Temporary,
    UsageError,
)
from streamjobs.protocol import effects
from streamjobs.protocol.calls import Request
from streamjobs.protocol.effects import Begun
from streamjobs.worker.execution import Access, Execution
from streamjobs.worker.service import HEALABLE, Backoff

T = TypeVar("T")

IfUnsure = Literal["raise", "skip", "run"]
KEEP = timedelta(days=7)
PATIENCE_S = 30.0
"""Twice a default lease: who cannot reach the server for so long has lost the job by then."""
LAST_S = 1.0
"""How long a record may hold up a cancellation."""


class Guard(msgspec.Struct, frozen=True):
    """What is guarded, and how: the arguments of `ctx.once`, checked."""

    key: str
    type: Any
    first: bool
    if_unsure: IfUnsure
    keep_ms: int

    @classmethod
    def of(
        cls,
        key: str | None,
        default: str,
        kind: Any,
        first: bool,
        if_unsure: IfUnsure | None,
        keep: float | timedelta,
    ) -> "Guard":
        """Check the arguments.

        Raises:
            InvalidOption: one is outside its range, or says nothing without another.
        """
        if if_unsure is not None and not first:
            raise InvalidOption("if_unsure: only with first=True; without it the effect is had again")
        if if_unsure not in (None, "raise", "skip", "run"):
            raise InvalidOption(f"if_unsure={if_unsure!r:.80}: use 'raise', 'skip' or 'run'")
        key = default if key is None else names.check_key(key, "the key of an effect")
        choice = (if_unsure or "raise") if first else "run"
        return cls(key, Any if kind is None else kind, first, choice, names.milliseconds(keep, "keep"))


_UNSET: Any = msgspec.UNSET


class Effect(Generic[T]):
    """An effect as one run finds it: what `ctx.once` gives to its block."""

    def __init__(self, key: str, *, needed: bool, unsure: bool = False, value: T = _UNSET) -> None:
        self.key = key
        self.needed = needed
        """Whether this run is to have the effect; else it is recorded, or skipped as unsure."""
        self.unsure = unsure
        """Whether an earlier run began it and did not come to its record: it may have happened."""
        self._value = value

    @property
    def value(self) -> T:
        """What is kept with the record; None where nothing is. Set it in the block: JSON, 256 KiB at most.

        Raises:
            UsageError: read before it was set, or set though the effect is not needed.
        """
        if self._value is _UNSET and self.needed:
            raise UsageError(f"effect {self.key!r} has no value yet: set effect.value behind `if effect.needed`")
        return self._value

    @value.setter
    def value(self, value: T) -> None:
        if not self.needed:
            raise UsageError(f"effect {self.key!r} is recorded already: have it only behind `if effect.needed`")
        self._value = value

    def encoded(self) -> bytes:
        """Return the value as it is kept."""
        return b"null" if self._value is _UNSET else codec.encode_value(self._value, f"the value of {self.key!r}")


class Once(Generic[T]):
    """What `ctx.once` returns: a block to be entered by `async with`, or by `with` in a plain function."""

    def __init__(self, execution: Execution, guard: Guard) -> None:
        assert execution.access is not None
        self._access: Access = execution.access
        self._execution = execution
        self._guard = guard
        self._effect: Effect[T] | None = None

    async def __aenter__(self) -> Effect[T]:
        return self._entered(await atalk(self._access.aio, self._begin()))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        effect = self._left()
        if error is None and effect.needed:
            await _through_cancellation(atalk(self._access.aio, self._record(effect)))

    def __enter__(self) -> Effect[T]:
        if _in_event_loop():
            raise UsageError("ctx.once: `with` would block the event loop here; use `async with`")
        return self._entered(talk(self._access.sync, self._begin()))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        effect = self._left()
        if error is None and effect.needed:
            talk(self._access.sync, self._record(effect))

    def _begin(self) -> Talk[Begun]:
        execution, guard = self._execution, self._guard
        run = effects.Run(self._access.consumer, execution.claim.entry, execution.local_id, os.urandom(8).hex())
        call = effects.once(
            execution.queue.keys,
            guard.key,
            run,
            lease_ms=execution.queue.lease_ms,
            keep_ms=guard.keep_ms,
            take_over=guard.if_unsure == "run",
        )
        begun: Begun = yield from _patiently(call, f"effect {guard.key!r} was not begun")
        return begun

    def _record(self, effect: Effect[T]) -> Talk[None]:
        execution, guard = self._execution, self._guard
        failure = None
        try:
            value = effect.encoded()
        except UsageError as error:
            # It has happened: without a record the retries would have it again and again.
            value, failure = b"null", error
        call = effects.record(execution.queue.keys, guard.key, execution.local_id, value, guard.keep_ms)
        yield from _patiently(call, f"effect {guard.key!r} has happened and is not recorded")
        if failure is not None:
            raise Permanent(f"effect {guard.key!r} has happened, and is recorded without its value") from failure

    def _entered(self, begun: Begun) -> Effect[T]:
        if self._effect is not None:
            raise UsageError("ctx.once: one block for each call; call it again for the next")
        self._effect = self._judged(begun)
        return self._effect

    def _left(self) -> Effect[T]:
        assert self._effect is not None
        return self._effect

    def _judged(self, begun: Begun) -> Effect[T]:
        """Return what this run is to do, given what the server knows."""
        guard, keys = self._guard, self._execution.queue.keys
        job_id = keys.job_id(begun.job)
        match begun.word:
            case "DONE":
                return Effect(guard.key, needed=False, value=self._kept(begun.value))
            case "UNDERWAY":
                raise EffectUnderWay(f"effect {guard.key!r} is under way in job {job_id}", key=guard.key, job_id=job_id)
            case "UNSURE" if guard.if_unsure == "raise":
                when = datetime.fromtimestamp(begun.at_ms / 1000, UTC).isoformat(timespec="seconds")
                text = f"effect {guard.key!r} was begun by job {job_id} at {when} and never recorded"
                raise EffectUnsure(text, key=guard.key, job_id=job_id)
            case "UNSURE" if guard.if_unsure == "skip":
                return Effect(guard.key, needed=False, unsure=True, value=self._kept(b"null"))
            case "UNSURE":
                return Effect(guard.key, needed=True, unsure=True)
            case "LOST":
                raise LeaseLost(f"job {self._execution.job_id} is not held any more: {guard.key!r} was not begun")
        return Effect(guard.key, needed=True)

    def _kept(self, raw: bytes) -> Any:
        return None if raw == b"null" else codec.decode_value(raw, self._guard.type, "effect.value")


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _patiently(request: Request[T], fallen: str) -> Talk[T]:
    """Send a request until the server answers; it is one that may be sent twice.

    Raises:
        Temporary: the server cannot be reached; begins with `fallen`.
        Rejected: it refuses for good.
    """
    backoff, deadline = Backoff(Random()), monotonic() + PATIENCE_S
    while True:
        [answer] = yield Leniently([request])
        if not isinstance(answer, StreamJobsError):
            found: T = answer
            return found
        if not isinstance(answer, HEALABLE):
            raise answer
        if monotonic() > deadline:
            raise Temporary(f"{fallen}: {answer}") from answer
        yield Pause(backoff.pause_s())


async def _through_cancellation(work: Coroutine[Any, Any, None]) -> None:
    """Bring this to its end also when a cancellation comes meanwhile: what has happened is to be recorded."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=LAST_S)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise
