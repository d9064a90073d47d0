"""Other arguments for dead jobs, and a look at whether their handlers would take them."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from streamjobs.core import codec
from streamjobs.core.errors import UsageError
from streamjobs.core.registry import Handler
from streamjobs.operate.jobs import JobStatus

Encode = Callable[[Handler | None, str, Any], bytes]
"""From the handler of a kind, where it is known, the name of an argument and its value to its JSON."""

_arguments = msgspec.json.Decoder(dict[str, msgspec.Raw])


def encode(handler: Handler | None, name: str, value: Any) -> bytes:
    """Return the JSON of an argument, converted to the handler's type where that is known.

    Raises:
        UsageError: the handler has no such argument, or the value does not fit.
    """
    return handler.signature.argument(name, value) if handler else codec.encode_value(value, name)


class Edit:
    """Sets arguments of dead jobs; all others stay digit by digit."""

    def __init__(
        self,
        changes: Mapping[str, Any],
        find: Callable[[str], Handler | None] | None = None,
        encode: Encode = encode,
        *,
        strangers: bool = False,
    ) -> None:
        """
        Args:
            changes: names and values.
            find: returns the handler of a kind: jobs of a kind without one, and those whose arguments it would not
                take, are left dead. Without it nothing is checked.
            encode: how a value becomes JSON.
            strangers: put back jobs of a kind without a handler unchecked.
        """
        self._changes = changes
        self._find = find
        self._encode = encode
        self._strangers = strangers
        self._encoded: dict[str, dict[str, msgspec.Raw]] = {}

    def __call__(self, job: JobStatus) -> bytes | None:
        """Return the arguments that a job is to begin with; None for its own.

        Raises:
            UsageError: they would not fit.
        """
        handler = self._find(job.kind) if self._find else None
        if self._find and handler is None and not self._strangers:
            raise UsageError(f"kind {job.kind!r:.80} has no handler in this app: its arguments cannot be checked")
        body = self._changed(job, handler) if self._changes else None
        if handler:
            handler.signature.check(job.body if body is None else body)
        return body

    def _changed(self, job: JobStatus, handler: Handler | None) -> bytes:
        try:
            values: dict[str, Any] = dict(_arguments.decode(job.body))
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{job.kind}: its arguments are no JSON object, so none can be set") from error
        changes = self._encoded.get(job.kind)
        if changes is None:
            changes = {name: msgspec.Raw(self._encode(handler, name, value)) for name, value in self._changes.items()}
            self._encoded[job.kind] = changes
        return codec.encode_object(values | changes, job.kind)
