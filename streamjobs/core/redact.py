"""Arguments whose values operators do not see: which they may be, and a job's arguments without them. Pure."""

from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from streamjobs.core.dedupe import Dedupe
from streamjobs.core.errors import InvalidOption

HIDDEN = msgspec.Raw(b'"***"')
"""Stands in the place of what is not shown."""


def check(names: Any) -> None:
    """Raise InvalidOption unless this can be a `redact=`."""
    if isinstance(names, str) or not isinstance(names, Collection) or not all(isinstance(one, str) for one in names):
        raise InvalidOption(f"redact={names!r:.80}: give the names of arguments, such as ('password',)")


def check_arguments(names: Iterable[str], known: Collection[str], kind: str) -> None:
    """Raise InvalidOption unless each is an argument of the kind."""
    for name in names:
        if name not in known:
            there = ", ".join(known) or "none at all"
            raise InvalidOption(f"kind {kind!r}: redact={name!r:.80} is not an argument of it; it has {there}")


def check_key(names: Collection[str], mode: Dedupe, kind: str) -> None:
    """Raise InvalidOption if a key that this mode makes of arguments would show one of these."""
    key = mode.key
    if callable(key):
        return
    told = [name for name in names if key is None or name in ((key,) if isinstance(key, str) else key)]
    if told:
        raise InvalidOption(
            f"kind {kind!r}: the value of {told[0]!r} is redacted and would stand in the dedupe key: name other"
            " arguments with key=, or give dedupe_key="
        )


def hide(body: bytes, names: Collection[str]) -> bytes:
    """Return a job's arguments with `***` for those of these names; all that is left is as it was, digit by digit.

    What is no JSON object may be any of them, and is hidden whole.
    """
    try:
        values = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except (ValueError, RecursionError):
        return bytes(HIDDEN)
    return msgspec.json.encode({name: HIDDEN if name in names else value for name, value in values.items()})
