"""Limits at run time: set, lift, reset. They hold before what the code says, in all workers, within a second."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from streamjobs.client.talk import Talk
from streamjobs.core.errors import InvalidOption
from streamjobs.core.limits import Bound, Concurrency, Limit, Rate, base_of, key_text, kind_of, limits
from streamjobs.core.names import check_kind
from streamjobs.core.numbers import whole
from streamjobs.operate.jobs import JobStatus
from streamjobs.operate.stats import snapshot
from streamjobs.protocol import intake, lanes
from streamjobs.protocol.keys import PARKED, QueueKeys

Off = Literal["off"]
MAX_WAITING = "max_waiting"
"""In the place of a base: how many jobs may wait in the queue."""


def changes(
    rate: Rate | Off | None,
    concurrency: Concurrency | int | Off | None,
    kind: str | None,
    key: str | None,
    reset: bool,
    max_waiting: int | Off | None = None,
) -> dict[str, str | None]:
    """Return what to set, by base; None is what the code says.

    Raises:
        InvalidOption: there is nothing to change, or it contradicts itself.
    """
    if kind is not None:
        check_kind(kind)
    if reset:
        if not rate is concurrency is max_waiting is None:
            raise InvalidOption(
                "reset goes back to what the code says: give it no rate and no concurrency, nor max_waiting"
            )
        _check_key(key, kind)
        whole: dict[str, str | None] = {MAX_WAITING: None} if kind is None else {}
        return whole | {base_of(letter, kind, key): None for letter in "rc"}
    if rate is concurrency is max_waiting is None:
        raise InvalidOption("nothing to change: give a rate, a concurrency, max_waiting, or reset")
    found: dict[str, str | None] = {}
    if max_waiting is not None:
        if kind is not None or key is not None:
            raise InvalidOption("max_waiting is for a whole queue: give no kind and no key")
        found[MAX_WAITING] = "off" if max_waiting == "off" else str(Bound(max_waiting).max_waiting)
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
        if base == MAX_WAITING:
            yield [intake.set_max_waiting(keys, value)]
            continue
        cursor = ""
        while True:
            [cursor] = yield [lanes.limit(keys, base, value, cursor)]
            if not cursor:
                break


class LimitStatus(msgspec.Struct, frozen=True):
    """One limit of a queue, as it holds now."""

    limits: str
    """`rate`, `concurrency` or `max_waiting`."""
    kind: str
    """"" for the whole queue."""
    key: str
    """The argument for each of whose values it holds; "" for none."""
    places: int = 0
    """Of a concurrency; of max_waiting how many jobs may wait in the queue."""
    burst: int = 0
    interval_us: int = 0
    """Of a rate: microseconds from one start to the next."""
    off: bool = False
    """An operator has lifted it."""
    by_operator: bool = False
    """Set at run time; else as the workers' code has it."""
    waiting: int = 0
    """Jobs that wait for it; of max_waiting, that wait in the queue."""
    code: str = ""
    """What the workers' code says instead, where an operator has set something; "" for nothing."""

    def __str__(self) -> str:
        if self.off:
            return "off"
        if self.limits != "rate":
            return str(self.places)
        return f"{1_000_000 / self.interval_us:.6g}/s, burst {self.burst}"


def current(keys: QueueKeys) -> Talk[list[LimitStatus]]:
    """Read the limits of a queue: those set at run time, and those of the code of workers that have come."""
    overrides, code = yield [lanes.overrides(keys), lanes.stored(keys)]
    values = code | overrides
    bases = sorted(values)
    counts = yield [lanes.waiting(keys, base) for base in bases]
    found = []
    for base, count in zip(bases, counts, strict=True):
        instead = str(_status(base, code[base], False, 0)) if base in overrides and base in code else ""
        found.append(_status(base, values[base], base in overrides, count, instead))
    return found + (yield from _max_waiting(keys))


class Wait(msgspec.Struct, frozen=True):
    """A lane in which a job waits."""

    limits: str
    """`rate` or `concurrency`."""
    kind: str
    """"" for the whole queue."""
    key: str
    """The argument for each of whose values it holds; "" for none."""
    value: str
    """That value, as JSON."""
    before: int
    """How many jobs go before it."""


def waits_for(keys: QueueKeys, status: JobStatus) -> Talk[list[Wait]]:
    """Find the lane in which a parked job waits, and how many stand before it there.

    None where that is not known here: a key of which the job has only the default, or that its handler writes
    in a way of its own.
    """
    if status.place != PARKED:
        return []
    overrides, code = yield [lanes.overrides(keys), lanes.stored(keys)]
    local = status.id.partition(":")[2]
    found = []
    for base, value in _lanes_of(status, code | overrides):
        lane = f"{base} {value}" if value else base
        place, before = yield [*lanes.place(keys, lane, local, status.entry)]
        if place is not None:
            limits = "rate" if base.startswith("r") else "concurrency"
            found.append(Wait(limits, kind_of(base), base.partition(" ")[2], value, before))
    return found


def _lanes_of(status: JobStatus, bases: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the bases that hold for a job, each with the value of its key, "" for none."""
    try:
        arguments = msgspec.json.decode(status.body)
    except ValueError:
        arguments = None
    for base in sorted(bases):
        key = base.partition(" ")[2]
        if kind_of(base) not in ("", status.kind):
            continue
        if not key:
            yield base, ""
        elif isinstance(arguments, dict) and key in arguments:
            yield base, key_text(arguments[key])


def _max_waiting(keys: QueueKeys) -> Talk[list[LimitStatus]]:
    [(by_operator, code)] = yield [intake.max_waiting(keys)]
    value = by_operator or code
    if not value:
        return []
    now = yield from snapshot(keys.namespace, [keys.queue])
    off = value == intake.OFF
    return [
        LimitStatus(
            MAX_WAITING,
            "",
            "",
            places=0 if off else whole(value),
            off=off,
            by_operator=bool(by_operator),
            waiting=now.queues[0].waiting,
            code=code if by_operator else "",
        )
    ]


def _status(base: str, value: str, by_operator: bool, waiting: int, code: str = "") -> LimitStatus:
    first, _, interval = ("0", "", "") if value == lanes.OFF else value.partition(" ")
    rate = base.startswith("r")
    return LimitStatus(
        "rate" if rate else "concurrency",
        kind_of(base),
        base.partition(" ")[2],
        places=0 if rate else whole(first),
        burst=whole(first) if rate else 0,
        interval_us=whole(interval, 1) if rate else 0,
        off=value == lanes.OFF,
        by_operator=by_operator,
        waiting=waiting,
        code=code,
    )
