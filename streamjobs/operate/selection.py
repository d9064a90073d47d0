"""Which dead jobs are meant."""

from collections.abc import Mapping

import msgspec

from streamjobs.core.likeness import likeness
from streamjobs.operate import jobs

_arguments = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Selection(msgspec.Struct, frozen=True):
    """Which dead jobs are meant; empty fields select all."""

    kinds: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    """Of the last error."""
    error: str = ""
    """A part of the last error's type or text, as it is or as its likeness has it."""
    where: tuple[tuple[str, str], ...] = ()
    """Names and values of arguments; a value is JSON, or text."""
    since_ms: int = 0
    until_ms: int = 0
    """Both are instants of the server's clock, and included; what counts is when the dead row was written."""

    def other(self, row: Mapping[str, bytes], at_ms: int) -> str:
        """Return in what a row of the dead stream differs from those meant; "" when it is one of them."""
        if self.kinds and jobs.text(row, "kind") not in self.kinds:
            return "other kind"
        if self.reasons and jobs.text(row, "reason") not in self.reasons:
            return "other reason"
        if self.error and not self._has(jobs.text(row, "error")):
            return "other error"
        if self.classes and error_class(row) not in self.classes:
            return "other class"
        if self.where and not self._fits(row.get("body", b"")):
            return "other arguments"
        if at_ms < self.since_ms or (self.until_ms and at_ms > self.until_ms):
            return "other time"
        return ""

    def _has(self, error: str) -> bool:
        return self.error in error or self.error in likeness(error)

    def _fits(self, body: bytes) -> bool:
        try:
            arguments = _arguments.decode(body)
        except (ValueError, RecursionError):
            return False
        return all(name in arguments and _equal(bytes(arguments[name]), text) for name, text in self.where)


def error_class(row: Mapping[str, bytes]) -> str:
    """Return the class of the last error; "" where it is not known."""
    history = jobs.attempts(row.get("history", b""))
    return history[-1].error_class if history else ""


def _equal(raw: bytes, text: str) -> bool:
    """Say whether an argument is what a text says: the same JSON, or a string of this text."""
    if raw.strip() == text.encode("utf-8", "surrogateescape"):
        return True
    try:
        value = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        return False
    if value == text:
        return True
    try:
        wanted = msgspec.json.decode(text.encode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return False
    # In Python 1 is True.
    return bool(value == wanted) and isinstance(value, bool) == isinstance(wanted, bool)
