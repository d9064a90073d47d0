"""Values of options: durations, instants, names of queues, job ids."""

import re
from datetime import datetime
from typing import Any

import click

from streamjobs.core.errors import InvalidOption
from streamjobs.core.names import check_name, split_job_id

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_PLAIN = re.compile(r"\d+(?:\.\d+)?")


def seconds(text: str) -> float:
    """Return a duration in seconds: `90`, `90s`, `250ms`, `10m`, `1h30m`, `2d`.

    Raises:
        ValueError: it is none.
    """
    if _PLAIN.fullmatch(text):
        return float(text)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r:.40} is not a duration: use 90, 90s, 250ms, 10m, 1h30m or 2d")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def instant(text: str) -> datetime:
    """Return an RFC 3339 instant, such as `2030-01-31T12:00:00Z`.

    Raises:
        ValueError: it is none, or has no time zone.
    """
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r:.40} is not an instant: use RFC 3339, such as 2030-01-31T12:00:00Z"
        ) from None
    if value.tzinfo is None:
        raise ValueError(f"{text!r:.40} has no time zone: add Z, or an offset such as +01:00")
    return value


class Duration(click.ParamType):
    """A duration, in seconds once read."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        try:
            return seconds(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Instant(click.ParamType):
    """An instant."""

    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            return value if isinstance(value, datetime) else instant(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class When(click.ParamType):
    """An instant, or how long ago, in seconds."""

    name = "when"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime | float:
        if isinstance(value, datetime | float):
            return value
        try:
            return instant(value) if "-" in value else seconds(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class QueueName(click.ParamType):
    """The name of one queue."""

    name = "queue"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return check_name(value, "queue")
        except InvalidOption as error:
            self.fail(str(error), param, ctx)


class QueueNames(click.ParamType):
    """Names of queues, parted by commas."""

    name = "queues"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        words = value if isinstance(value, list) else str(value).split(",")
        return tuple(QueueName().convert(word, param, ctx) for word in words)


class JobId(click.ParamType):
    """The id of a job."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            split_job_id(value)
        except InvalidOption as error:
            self.fail(str(error), param, ctx)
        return str(value)


DURATION, INSTANT, WHEN, QUEUE, QUEUES, JOB_ID = (
    Duration(),
    Instant(),
    When(),
    QueueName(),
    QueueNames(),
    JobId(),
)

Names = tuple[tuple[str, ...], ...]
"""What an option of type QUEUES that may be repeated gives."""


def flat(groups: Names) -> list[str]:
    """Return the names of a repeated option, in order, each once."""
    return list(dict.fromkeys(name for group in groups for name in group))
