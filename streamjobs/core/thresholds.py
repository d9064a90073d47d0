"""From when on a queue is degraded, and from when on critical. Pure values."""

import math
from collections.abc import Mapping
from datetime import timedelta
from enum import IntEnum
from typing import Any, TypeAlias

import msgspec

from streamjobs.core.errors import InvalidOption

Bound: TypeAlias = float | timedelta | None
Bounds: TypeAlias = Bound | tuple[Bound, Bound]
"""From when on degraded and critical; one alone is for degraded, and critical stays as usual; None is for never."""
Pair: TypeAlias = tuple[float | None, float | None]


class Health(IntEnum):
    """How a queue, or a server, is."""

    OK = 0
    DEGRADED = 1
    """It works, and somebody should look at it."""
    CRITICAL = 2
    """Jobs do not run, or wait too long."""

    @property
    def word(self) -> str:
        return self.name.lower()


UNITS = {"oldest": "s", "latency": "s", "failures": "%", "memory": "%"}
"""What thresholds are measured in; all others count."""


class Thresholds(msgspec.Struct, frozen=True):
    """From when on a queue is degraded, and critical: each a pair, a number, or None for never.

    A number alone is for degraded: critical is then as usual, or from the same number on where that is greater.

    Raises:
        InvalidOption: one is negative, no number, a share above 1, or critical before it is degraded.
    """

    oldest: Bounds = (60, 300)
    """How long the oldest ready job has waited: seconds, or timedeltas."""
    waiting: Bounds = None
    """Jobs that wait."""
    dead: Bounds = (1, None)
    """Dead jobs."""
    failures: Bounds = (0.25, 0.75)
    """Share of the runs of the last 5 min that failed, where 20 or more ended."""
    crashes: Bounds = (3, 10)
    """Worker processes that vanished within the last 10 min without a farewell."""
    lost: Bounds = (10, None)
    """Endings of jobs within the last 5 min that came after another worker had taken the job over."""
    latency: Bounds = (0.25, 2)
    """How long the server takes for an answer: seconds, or timedeltas."""
    memory: Bounds = (0.85, 0.95)
    """Share of the server's maxmemory that is used."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            self.pair(name)

    def pair(self, name: str) -> Pair:
        """Return from when on a measure is degraded and critical; None for never; times in seconds."""
        given = getattr(self, name)
        if not isinstance(given, tuple):
            low = _number(name, given)
            usual = _USUAL[name]
            high = _number(name, usual[1]) if isinstance(usual, tuple) else None
            return low, None if low is None or high is None else max(low, high)
        two = given
        if len(two) != 2:
            raise InvalidOption(f"threshold {name}={given!r:.80}: give one number, or two: (degraded, critical)")
        low, high = (_number(name, value) for value in two)
        if low is not None and high is not None and low > high:
            raise InvalidOption(f"threshold {name}={given!r:.80}: it would be critical before it is degraded")
        return low, high

    def level(self, name: str, value: float) -> Health:
        """Return how bad a measure is that has come to this."""
        low, high = self.pair(name)
        if high is not None and value >= high:
            return Health.CRITICAL
        return Health.DEGRADED if low is not None and value >= low else Health.OK

    def passed(self, name: str, value: float) -> float:
        """Return the bound that a measure has passed; 0 where it has passed none."""
        return next((bound for bound in reversed(self.pair(name)) if bound is not None and value >= bound), 0.0)

    def changed(self, changes: Mapping[str, Any]) -> "Thresholds":
        """Return these with some changed.

        Raises:
            InvalidOption: there is no such threshold, or a value cannot be used.
        """
        if unknown := sorted(set(changes) - set(self.__struct_fields__)):
            raise InvalidOption(f"threshold {unknown[0]!r:.80}: there is none; use {', '.join(self.__struct_fields__)}")
        return msgspec.structs.replace(self, **changes)

    def differing(self) -> dict[str, Pair]:
        """Return those that differ from the defaults, as pairs."""
        usual = Thresholds()
        names = self.__struct_fields__
        return {name: self.pair(name) for name in names if self.pair(name) != usual.pair(name)}


def _number(name: str, value: Any) -> float | None:
    if value is None:
        return None
    number = value.total_seconds() if isinstance(value, timedelta) and UNITS.get(name) == "s" else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < math.inf:
        raise InvalidOption(f"threshold {name}={value!r:.80}: expected a number, 0 or more, or None for never")
    if UNITS.get(name) == "%" and number > 1:
        raise InvalidOption(
            f"threshold {name}={value!r:.80}: expected a share, 0 to 1 (on the command line 0% to 100%)"
        )
    return float(number)


_USUAL: dict[str, Bounds] = dict(zip(Thresholds.__struct_fields__, Thresholds.__struct_defaults__, strict=True))


def stored(text: str) -> Thresholds:
    """Return the thresholds that a queue's configuration has; the defaults for what is not said, or not understood."""
    try:
        said = msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.DecodeError:
        return Thresholds()
    found = Thresholds()
    for name, value in said.items():
        try:
            found = found.changed({name: tuple(value) if isinstance(value, list) else value})
        except InvalidOption:
            # Written by a later version.
            continue
    return found
