"""Limits at run time: set, lift, reset. They hold before what the code says, in all workers, within a second."""

from collections.abc import Mapping
from typing import Literal

from streamjobs.client.talk import Talk
from streamjobs.core.errors import InvalidOption
from streamjobs.core.limits import Concurrency, Limit, Rate, base_of, limits
from streamjobs.core.names import check_kind
from streamjobs.protocol import lanes
from streamjobs.protocol.keys import QueueKeys

Off = Literal["off"]


def changes(
    rate: Rate | Off | None,
    concurrency: Concurrency | int | Off | None,
    kind: str | None,
    key: str | None,
    reset: bool,
) -> dict[str, str | None]:
    """Return what to set, by base; None is what the code says.

    Raises:
        InvalidOption: there is nothing to change, or it contradicts itself.
    """
    if kind is not None:
        check_kind(kind)
    if reset:
        if rate is not None or concurrency is not None:
            raise InvalidOption("reset goes back to what the code says: give it no rate and no concurrency")
        _check_key(key, kind)
        return {base_of(letter, kind, key): None for letter in "rc"}
    if rate is None and concurrency is None:
        raise InvalidOption("nothing to change: give a rate, a concurrency, or reset")
    found: dict[str, str | None] = {}
    for letter, value in (("r", rate), ("c", concurrency)):
        if value == lanes.OFF:
            _check_key(key, kind)
            found[base_of(letter, kind, key)] = lanes.OFF
        elif value is not None:
            [limit] = _checked(rate=value) if letter == "r" else _checked(concurrency=value)
            if key is not None and limit.key not in (None, key):
                raise InvalidOption(f"key={key!r:.80} is not the key of {limit!r:.80}")
            _check_key(limit.key or key, kind)
            found[base_of(letter, kind, limit.key or key)] = limit.value
    return found


def _checked(**given: object) -> tuple[Limit, ...]:
    return limits(given.get("rate"), given.get("concurrency"))  # type: ignore[arg-type]


def _check_key(key: str | None, kind: str | None) -> None:
    if key is not None and (kind is None or not key.isidentifier()):
        raise InvalidOption(f"key={key!r:.80}: name an argument of a kind, and the kind")


def change(keys: QueueKeys, values: Mapping[str, str | None]) -> Talk[None]:
    """Set limits, and have those looked at who wait for them."""
    for base, value in values.items():
        cursor = ""
        while True:
            [cursor] = yield [lanes.limit(keys, base, value, cursor)]
            if not cursor:
                break


def shown(value: str) -> str:
    """Return a limit as people read it."""
    burst, _, interval = value.partition(" ")
    if not interval:
        return value
    return f"{1_000_000 / int(interval):.6g}/s, burst {burst}"
