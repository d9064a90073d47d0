"""Conditions that a queue has to meet, as text: `oldest<60s,dead<100`. Pure."""

import operator
import re
from collections.abc import Callable, Sequence

import msgspec

from streamjobs.core.errors import UsageError
from streamjobs.core.text import age
from streamjobs.core.thresholds import Health
from streamjobs.operate.overview import Overview, QueueView

_COMPARED: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}


def _count(name: str) -> Callable[[QueueView, Overview], float]:
    return lambda view, _: float(getattr(view.stats, name))


_COUNTS = ("waiting", "limited", "running", "slots", "scheduled", "retrying", "dead", "workers")
_MEASURES: dict[str, Callable[[QueueView, Overview], float]] = {
    **{name: _count(name) for name in _COUNTS},
    "oldest": lambda view, _: view.stats.oldest_ready_ms / 1000,
    "in": lambda view, _: view.tally.in_per_s,
    "out": lambda view, _: view.tally.out_per_s,
    "drain": lambda view, _: view.drain_s,
    "fail": lambda view, _: 100 * (view.tally.failure_rate or 0.0),
    "latency": lambda _, seen: seen.latency_s,
    "health": lambda view, _: float(view.verdict.health),
}
"""All that can be compared: counts, seconds, jobs per second, per cent; health as 0, 1, 2."""
_FORM = re.compile(r"\s*(\w+)\s*(<=|>=|!=|<|>|==?)\s*(.+?)\s*")
_TIMES = ("oldest", "drain", "latency")


class Condition(msgspec.Struct, frozen=True):
    """One comparison of a measure with a value."""

    text: str
    name: str
    sign: str
    value: float


class Broken(msgspec.Struct, frozen=True):
    """A condition that a queue does not meet."""

    queue: str
    condition: Condition
    measured: float

    def __str__(self) -> str:
        return f"{self.queue}: {self.condition.name} is {shown(self.condition.name, self.measured)}"


def parse(text: str, seconds: Callable[[str], float]) -> list[Condition]:
    """Return the conditions of a text, which are parted by commas; `seconds` reads a duration.

    Raises:
        UsageError: one is none; the message says what was expected.
    """
    return [_condition(part, seconds) for part in text.split(",")]


def _condition(text: str, seconds: Callable[[str], float]) -> Condition:
    match = _FORM.fullmatch(text)
    if not match:
        raise UsageError(
            f"{text!r:.60} is no condition: write a name, a sign and a value, such as oldest<60s or dead=0"
        )
    name, sign, value = match.groups()
    if name not in _MEASURES:
        raise UsageError(f"{text!r:.60}: there is no {name!r:.40} to compare; there are {', '.join(_MEASURES)}")
    try:
        return Condition(text.strip(), name, sign[:1] if sign == "==" else sign, _value(name, value, seconds))
    except ValueError:
        what = "ok, degraded or critical" if name == "health" else "a number"
        what = "a duration such as 60s" if name in _TIMES else what
        raise UsageError(f"{text!r:.60}: {value!r:.40} is not {what}") from None


def _value(name: str, text: str, seconds: Callable[[str], float]) -> float:
    if name == "health":
        words = [health.word for health in Health]
        return float(words.index(text))
    if name in _TIMES:
        return seconds(text)
    number = float(text.removesuffix("%") if name == "fail" else text.replace("_", ""))
    if number != number:
        raise ValueError(text)
    return number


def broken(conditions: Sequence[Condition], seen: Overview) -> list[Broken]:
    """Return the conditions that are not met, queue by queue."""
    measured = [
        Broken(view.stats.queue, one, _MEASURES[one.name](view, seen)) for view in seen.queues for one in conditions
    ]
    return [one for one in measured if not _COMPARED[one.condition.sign](one.measured, one.condition.value)]


def shown(name: str, value: float) -> str:
    """Return a measure as people read it."""
    if name == "health":
        return Health(int(value)).word
    if name in _TIMES:
        return age(round(value * 1000)) if value != float("inf") else "never over"
    return f"{value:,.1f}%" if name == "fail" else f"{value:,.10g}" if value == int(value) else f"{value:,.1f}"
