"""Limits as values: how many jobs may start in a time, and how many may run at once. Pure.

A limit holds in one queue, over all its workers: for the whole queue, for a kind, or for each value
of an argument of a kind. On the wire it is a *base*, the name of what it limits, and a *value*; a
base with one value of the argument is a *lane* (docs/flow.md).
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Any, TypeAlias

import msgspec

from streamjobs.core import codec, names
from streamjobs.core.errors import InvalidOption

MAX_PLACES = 1_000_000
MAX_WAITING = 1_000_000_000
MIN_INTERVAL_US = 100
"""10,000 starts per second: beyond that, rounding to whole microseconds would be felt."""
LEAST_BURST_US = 100_000
"""A burst holds at least what comes in this time: lanes are looked at every 25 ms at the soonest, late under load."""
BURST_US = 200_000
"""By default it holds this: a worker that was held up for a moment loses no start."""


KeepDead: TypeAlias = int | timedelta
"""How many dead jobs are kept, or how long."""
LEAST_KEPT_MS = 60_000
"""Workers look once a minute."""


class Rate(msgspec.Struct, frozen=True):
    """At most `count` starts per `per` seconds, evenly, and `burst` at once after a pause.

    In any time t at most t · count / per + burst jobs start. `key`: an argument of the kind; each of
    its values has a rate of its own. `burst`: by default what a fifth of a second brings, at least 1.

    Raises:
        InvalidOption: count is below 1, the rate above 10,000 per second, or burst below what a tenth of a
            second brings.
    """

    count: int
    per: float | timedelta = 1.0
    key: str | None = None
    burst: int | None = None

    def __post_init__(self) -> None:
        _check_whole(self.count, "count", 1_000_000_000)
        per_ms = names.milliseconds(self.per, "per")
        if self.count * MIN_INTERVAL_US > per_ms * 1000:
            raise InvalidOption(f"Rate({self.count}, per={per_ms / 1000:g}): use up to 10,000 per second")
        if self.burst is not None:
            _check_whole(self.burst, "burst", MAX_PLACES)
            if self.burst < (least := self._bringing(LEAST_BURST_US)):
                raise InvalidOption(
                    f"burst={self.burst}: use {least} or more, what a tenth of a second brings at this rate: tokens"
                    " that come between two looks at those who wait would be lost"
                )

    @property
    def interval_us(self) -> int:
        """Microseconds from one token to the next, rounded up."""
        return -(-names.milliseconds(self.per, "per") * 1000 // self.count)

    def _bringing(self, us: int) -> int:
        return max(1, -(-us // self.interval_us))

    @property
    def value(self) -> str:
        """The limit as the server has it: the burst, and the microseconds from token to token."""
        return f"{self.burst or self._bringing(BURST_US)} {self.interval_us}"


class Concurrency(msgspec.Struct, frozen=True):
    """At most `places` jobs at once. `key`: an argument of the kind; each of its values has places of its own.

    Jobs of one lane start in the order in which they were enqueued while nothing fails: a failed one
    that comes back after its delay goes before those that wait, but does not hold its place meanwhile.

    Raises:
        InvalidOption: places is not a whole number from 1 to 1,000,000.
    """

    places: int
    key: str | None = None

    def __post_init__(self) -> None:
        _check_whole(self.places, "concurrency", MAX_PLACES)

    @property
    def value(self) -> str:
        """The limit as the server has it."""
        return str(self.places)


class Bound(msgspec.Struct, frozen=True):
    """How many jobs may wait in a queue before more are refused, whether this process waits for room then, and how
    many dead jobs are kept, or how long.
    """

    max_waiting: int | None = None
    when_full: str = "raise"
    keep_dead: KeepDead | None = None

    def __post_init__(self) -> None:
        if self.max_waiting is not None:
            _check_whole(self.max_waiting, "max_waiting", MAX_WAITING)
        if self.when_full not in ("raise", "wait"):
            raise InvalidOption(f'when_full={self.when_full!r:.80}: use "raise" or "wait"')
        if self.keep_dead is not None:
            keep_dead_text(self.keep_dead)

    def changed(self, max_waiting: int | None, when_full: str | None, keep_dead: KeepDead | None = None) -> "Bound":
        """Return a copy; what is None stays as it was."""
        return Bound(
            self.max_waiting if max_waiting is None else max_waiting,
            when_full or self.when_full,
            self.keep_dead if keep_dead is None else keep_dead,
        )


def keep_dead_text(value: KeepDead) -> str:
    """Return how many dead jobs are kept, or how long, as the server has it.

    Raises:
        InvalidOption: it is neither a whole number from 1 to 1,000,000,000 nor a timedelta of a minute or more.
    """
    if isinstance(value, timedelta):
        return f"{names.milliseconds(value, 'keep_dead', low_ms=LEAST_KEPT_MS)}ms"
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_WAITING:
        raise InvalidOption(
            f"keep_dead={value!r:.80}: use a whole number of jobs from 1 to {MAX_WAITING:,}, or a timedelta"
        )
    return str(value)


Limit: TypeAlias = Rate | Concurrency
Rates: TypeAlias = Rate | Sequence[Rate] | None
Concurrencies: TypeAlias = Concurrency | int | Sequence[Concurrency] | None


def _check_whole(value: object, what: str, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidOption(f"{what}={value!r:.80}: use a whole number from 1 to {most:,}")


def limits(rate: Rates, concurrency: Concurrencies) -> tuple[Limit, ...]:
    """Return the limits that these options give.

    Raises:
        InvalidOption: they are none, or two limit the same.
    """
    given: list[Limit] = []
    for value, of, what in ((rate, Rate, "rate"), (concurrency, Concurrency, "concurrency")):
        several = [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
        for one in several:
            if of is Concurrency and isinstance(one, int):
                one = Concurrency(one)
            if not isinstance(one, of):
                raise InvalidOption(f"{what}={value!r:.80}: expected streamjobs.{of.__name__}(...)")
            given.append(one)
    bases = [base(one, "-") for one in given]
    if len(set(bases)) < len(bases):
        raise InvalidOption("two limits for the same: give each of the two another key, or only one")
    return tuple(given)


def queue_limits(rate: Rate | None, concurrency: Concurrency | int | None) -> tuple[Limit, ...]:
    """Return the limits that these options give to a whole queue.

    Raises:
        InvalidOption: they are none, or have a key.
    """
    found = limits(rate, concurrency)
    if keyed := next((one.key for one in found if one.key is not None), None):
        raise InvalidOption(f"key={keyed!r:.80}: a queue has no arguments; give the limit to a kind, @app.job(...)")
    return found


def base(limit: Limit, kind: str | None) -> str:
    """Return the name of what a limit of this kind, or with None of a whole queue, limits."""
    return base_of("r" if isinstance(limit, Rate) else "c", kind, limit.key)


def base_of(letter: str, kind: str | None, key: str | None) -> str:
    """Return the name of what is limited: `c` for a concurrency, `r` for a rate."""
    if kind is None:
        return f"{letter}:q"
    return f"{letter}:k:{kind} {key}" if key else f"{letter}:k:{kind}"


def kind_of(name: str) -> str:
    """Return the kind of a base; "" for one of a whole queue."""
    return name.partition(":k:")[2].partition(" ")[0]


def key_text(value: object) -> str:
    """Return the value of a key as lanes name it: its JSON, or a hash of that when it exceeds 256 bytes."""
    raw = codec.canonical(value)
    return raw.decode() if len(raw) <= names.MAX_KEY_BYTES else "#" + sha256(raw).hexdigest()


class Plan(msgspec.Struct, frozen=True):
    """The limits that hold for the jobs of one kind in one queue."""

    bases: tuple[tuple[str, str], ...] = ()
    """Base and argument ("" for none), from the narrow to the wide: keys, the kind, the queue."""
    values: dict[str, str] = {}
    """What the code says of each base that it knows."""

    @property
    def ordered(self) -> bool:
        """Whether jobs of one key go in order, and tokens do not have to wait for the very start."""
        return any(key for _, key in self.bases) and all(name.startswith("c") for name, _ in self.bases)

    def lanes(self, argument: Callable[[str], Any]) -> list[str]:
        """Return the lanes of one job, whose arguments these are."""
        return [f"{name} {key_text(argument(key))}" if key else name for name, key in self.bases]


def plan(
    kind: str,
    of_kind: Sequence[Limit],
    of_queue: Sequence[Limit],
    overrides: Mapping[str, str],
    arguments: Sequence[str],
) -> Plan:
    """Return what limits hold for a kind: those of the code, and those set at run time (`overrides`)."""
    values = {base(one, kind): one.value for one in of_kind} | {base(one, None): one.value for one in of_queue}
    found = []
    for name in {*values, *overrides}:
        whose, key = kind_of(name), name.partition(" ")[2]
        if not whose or (whose == kind and (not key or key in arguments)):
            # Narrow before wide, and of two alike the concurrency first: whoever waits for a token keeps its place.
            found.append((0 if key else 1 if whose else 2, key, name[0], name))
    return Plan(tuple((name, key) for _, key, _, name in sorted(found)), values)
