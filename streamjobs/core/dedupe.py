"""Dedupe at the front: how long the job that holds a key keeps others of that key out.

A mode is a value. It says until when a key is held, and which arguments make the key where the
enqueue names none. The scripts in lua/ keep it: the key is taken in the step that takes the job, its
value is the job's id, and it is given back in the step that writes the event, by that value.
"""

import inspect
from collections.abc import Callable, Iterable
from datetime import timedelta
from hashlib import sha256
from typing import Any, TypeAlias

import msgspec

from streamjobs.core import names
from streamjobs.core.codec import canonical
from streamjobs.core.errors import InvalidOption, UsageError
from streamjobs.core.job import LATEST, UNTIL_STARTED, Meta

Key: TypeAlias = str | tuple[str, ...] | Callable[..., str] | None
"""One argument by name, several, a function of all of them (by name), or None: all of them."""


class Dedupe(msgspec.Struct, frozen=True, kw_only=True):
    """A mode. What the four share: which arguments make a key."""

    key: Key = None

    def __post_init__(self) -> None:
        if isinstance(self.key, tuple) and self.key and all(isinstance(name, str) for name in self.key):
            return
        if self.key is not None and not isinstance(self.key, str) and not callable(self.key):
            raise InvalidOption(
                f"dedupe: key={self.key!r:.80}: give an argument's name, a tuple of names, or a function of them all"
            )

    def check(self, arguments: Iterable[str], what: str) -> None:
        """Raise InvalidOption unless a function with these arguments has what the key is made of."""
        known = list(arguments)
        if callable(self.key):
            try:
                inspect.signature(self.key).bind(**dict.fromkeys(known))
            except (TypeError, ValueError) as error:
                raise InvalidOption(f"{what}: dedupe: key= is called with all arguments by name: {error}") from error
            return
        wanted = (self.key,) if isinstance(self.key, str) else self.key or ()
        for name in wanted:
            if name not in known:
                raise InvalidOption(
                    f"{what}: dedupe: key={self.key!r}: there is no argument {name!r}; use {', '.join(known) or 'none'}"
                )

    def key_of(self, kind: str, arguments: msgspec.Struct) -> str:
        """Return the key of a job of `kind` with these arguments as fields, its defaults among them.

        It is `<kind>:` and the canonical JSON of the chosen arguments by name: sorted names, no spaces,
        numbers, strings and booleans apart (`1`, `1.0`, `"1"` and `true` are four keys). A function's
        result stands there as it is. Over 256 bytes: `sha256:` and the hash of that.

        Raises:
            UsageError: the function fails, or what it returns is no string.
        """
        key = self.key
        if isinstance(key, str):
            text = canonical({key: getattr(arguments, key)})
        elif isinstance(key, tuple):
            text = canonical({name: getattr(arguments, name) for name in key})
        elif key is None:
            text = canonical(arguments)
        else:
            text = _called(key, kind, msgspec.structs.asdict(arguments))
        whole = kind.encode() + b":" + text
        return whole.decode() if len(whole) <= names.MAX_KEY_BYTES else f"sha256:{sha256(whole).hexdigest()}"


def _called(function: Callable[..., str], kind: str, arguments: dict[str, Any]) -> bytes:
    try:
        return function(**arguments).encode()
    except Exception as error:
        raise UsageError(f"{kind}: dedupe: key= must return a string for its arguments: {error}") from error


class UntilDone(Dedupe, frozen=True):
    """The key is held until its job is done, dead or cancelled."""


class UntilStarted(Dedupe, frozen=True):
    """The key is held until a worker starts its job for the first time, or the job ends before.

    An enqueue that was refused came before the handler began. What was given back, or taken from a
    worker that died, has started: it does not take its key again, and another job may have it.
    """


class Latest(Dedupe, frozen=True):
    """The key is held until its job has ended, and what is enqueued meanwhile brings newer arguments.

    A job that waits or is scheduled, for a retry too, starts next with the newest; it keeps its id, its
    place and its time. Behind one that runs, one more job follows with the newest, under an id of its own
    and no sooner than its own delay: when this one is done, dead, or cancelled by its handler. If this
    one is retried instead, it is the retry that takes them.
    """


class Window(Dedupe, frozen=True):
    """The key is held for a fixed time, whether its job runs longer or has ended.

    The time begins when the server takes the job, or when its delay has passed. Only a cancel or a purge
    ends it early; a replay begins it anew.
    """

    length: float | timedelta
    """Seconds; from 1 ms to 10 years."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.length_ms

    @property
    def length_ms(self) -> int:
        return names.milliseconds(self.length, "dedupe: Window")


def check_mode(value: Any) -> None:
    """Raise InvalidOption unless this is a mode, or None."""
    if value is not None and not isinstance(value, Dedupe):
        raise InvalidOption(
            f"dedupe={value!r:.80}: expected UntilDone(), UntilStarted(), Latest() or Window(timedelta(...))"
        )


def wire(mode: Dedupe | None) -> dict[str, Any]:
    """Return what a meta says of a mode; nothing of the default one."""
    match mode:
        case UntilStarted():
            return {"dedupe_mode": UNTIL_STARTED}
        case Latest():
            return {"dedupe_mode": LATEST}
        case Window():
            return {"dedupe_window_ms": mode.length_ms}
    return {}


def mode_name(meta: Meta) -> str:
    """Return the mode of a job as `streamjobs enqueue --dedupe` takes it; "" for a job without a key."""
    if not meta.dedupe_key:
        return ""
    if meta.dedupe_window_ms:
        return f"{meta.dedupe_window_ms / 1000:.10g}s"
    return {UNTIL_STARTED: "started", LATEST: "latest"}.get(meta.dedupe_mode, "done")
