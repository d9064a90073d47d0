"""Limits at run time: set, lift, reset. They hold before what the code says, in all workers, within a second."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Literal

import msgspec

from streamjobs.client.talk import Talk
from streamjobs.core.errors import InvalidOption
from streamjobs.core.limits import (
    Bound,
    Concurrency,
    KeepDead,
    Limit,
    Rate,
    base_of,
    keep_dead_text,
    key_text,
    kind_of,
    limits,
)
from streamjobs.core.names import check_kind
from streamjobs.core.numbers import whole
from streamjobs.operate.jobs import JobStatus
from streamjobs.operate.stats import snapshot
from streamjobs.protocol import config, lanes, views
from streamjobs.protocol.config import KEEP_DEAD, MAX_WAITING, OFF
from streamjobs.protocol.keys import PARKED, QueueKeys

Off = Literal["off"]
OF_QUEUES = (MAX_WAITING, KEEP_DEAD)
"""In the place of a base: how many jobs may wait in the queue, how many dead ones are kept."""


def changes(
    rate: Rate | Off | None,
    concurrency: Concurrency | int | Off | None,
    kind: str | None,
    key: str | None,
    reset: bool,
    max_waiting: int | Off | None = None,
    keep_dead: KeepDead | Off | None = None,
) -> dict[str, str | None]:
    """Return what to set, by base; None is what the code says.

    Raises:
        InvalidOption: there is nothing to change, or it contradicts itself.
    """
    if kind is not None:
        check_kind(kind)
    if reset:
        if not rate is concurrency is max_waiting is keep_dead is None:
            raise InvalidOption(
                "reset goes back to what the code says: give it no rate and no concurrency, no max_waiting or keep_dead"
            )
        _check_key(key, kind)
        whole: dict[str, str | None] = dict.fromkeys(OF_QUEUES) if kind is None else {}
        return whole | {base_of(letter, kind, key): None for letter in "rc"}
    if rate is concurrency is max_waiting is keep_dead is None:
        raise InvalidOption("nothing to change: give a rate, a concurrency, max_waiting, keep_dead, or reset")
    found = _of_whole(max_waiting, keep_dead)
    if found and (kind is not None or key is not None):
        raise InvalidOption(f"{min(found)} is for a whole queue: give no kind and no key")
    for letter, value in (("r", rate), ("c", concurrency)):
        if value == OFF:
            _check_key(key, kind)
            found[base_of(letter, kind, key)] = OFF
        elif value is not None:
            [limit] = _checked(rate=value) if letter == "r" else _checked(concurrency=value)
            if key is not None and limit.key not in (None, key):
                raise InvalidOption(f"key={key!r:.80} is not the key of {limit!r:.80}")
            _check_key(limit.key or key, kind)
            found[base_of(letter, kind, limit.key or key)] = limit.value
    return found


def _of_whole(max_waiting: int | Off | None, keep_dead: KeepDead | Off | None) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    if max_waiting is not None:
        found[MAX_WAITING] = OFF if max_waiting == "off" else str(Bound(max_waiting).max_waiting)
    if keep_dead is not None:
        found[KEEP_DEAD] = OFF if keep_dead == "off" else keep_dead_text(keep_dead)
    return found


def _checked(**given: object) -> tuple[Limit, ...]:
    return limits(given.get("rate"), given.get("concurrency"))  # type: ignore[arg-type]


def _check_key(key: str | None, kind: str | None) -> None:
    if key is not None and (kind is None or not key.isidentifier()):
        raise InvalidOption(f"key={key!r:.80}: name an argument of a kind, and the kind")


def change(keys: QueueKeys, values: Mapping[str, str | None]) -> Talk[None]:
    """Set limits, and have those looked at who wait for them."""
    for base, value in values.items():
        if base in OF_QUEUES:
            yield [config.override(keys, base, value)]
            continue
        cursor = ""
        while True:
            [cursor] = yield [lanes.limit(keys, base, value, cursor)]
            if not cursor:
                break


class LimitStatus(msgspec.Struct, frozen=True):
    """One limit of a queue, as it holds now."""

    limits: str
    """`rate`, `concurrency`, `max_waiting` or `keep_dead`."""
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
    """Jobs that wait for it; of max_waiting, that wait in the queue; of keep_dead, that are dead."""
    age_ms: int = 0
    """Of keep_dead: how long dead jobs are kept; 0 where a count is said."""
    code: str = ""
    """What the workers' code says instead, where an operator has set something; "" for nothing."""

    @property
    def broken(self) -> bool:
        """Whether it is no limit: somebody else wrote it."""
        if self.off or self.limits in OF_QUEUES:
            return False
        return self.places < 1 if self.limits == "concurrency" else self.burst < 1 or self.interval_us < 1

    def __str__(self) -> str:
        if self.off:
            return "off"
        if self.broken:
            return "broken"
        if self.age_ms:
            return str(timedelta(milliseconds=self.age_ms))
        if self.limits != "rate":
            return str(self.places)
        return f"{1_000_000 / self.interval_us:.6g}/s, burst {self.burst}"


def current(keys: QueueKeys) -> Talk[list[LimitStatus]]:
    """Read the limits of a queue: those set at run time, and those of the code of workers that have come."""
    overrides, code = yield [lanes.overrides(keys), views.table(keys.limits)]
    values = code | overrides
    bases = sorted(values)
    counts = yield [lanes.waiting(keys, base) for base in bases]
    found = []
    for base, count in zip(bases, counts, strict=True):
        instead = str(_status(base, code[base], False, 0)) if base in overrides and base in code else ""
        found.append(_status(base, values[base], base in overrides, count, instead))
    return found + (yield from _of_queue(keys))


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
    overrides, code = yield [lanes.overrides(keys), views.table(keys.limits)]
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


def _of_queue(keys: QueueKeys) -> Talk[list[LimitStatus]]:
    found = []
    said = yield [config.said(keys, name) for name in OF_QUEUES]
    for name, (by_operator, code) in zip(OF_QUEUES, said, strict=True):
        if not (value := by_operator or code):
            continue
        if name == MAX_WAITING:
            now = yield from snapshot(keys.namespace, [keys.queue])
            count = now.queues[0].waiting
        else:
            [count] = yield [views.length(keys.dead)]
        instead = str(_of_whole_queue(name, code)) if by_operator and code else ""
        found.append(_of_whole_queue(name, value, by_operator=bool(by_operator), waiting=count, code=instead))
    return found


def _of_whole_queue(
    name: str, value: str, *, by_operator: bool = False, waiting: int = 0, code: str = ""
) -> LimitStatus:
    return LimitStatus(
        name,
        "",
        "",
        places=whole(value),
        off=value == OFF,
        by_operator=by_operator,
        waiting=waiting,
        age_ms=whole(value.removesuffix("ms")) if value.endswith("ms") else 0,
        code=code,
    )


def _status(base: str, value: str, by_operator: bool, waiting: int, code: str = "") -> LimitStatus:
    first, _, interval = ("0", "", "") if value == OFF else value.partition(" ")
    rate = base.startswith("r")
    return LimitStatus(
        "rate" if rate else "concurrency",
        kind_of(base),
        base.partition(" ")[2],
        places=0 if rate else whole(first),
        burst=whole(first) if rate else 0,
        interval_us=whole(interval, 1) if rate else 0,
        off=value == OFF,
        by_operator=by_operator,
        waiting=waiting,
        code=code,
    )
