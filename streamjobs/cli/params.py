"""Values of options: durations, instants, names of queues, job ids.

Those in small letters are types for click's options: what they refuse is said with the option's name.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from streamjobs.cli import complete
from streamjobs.core.cpus import cpus
from streamjobs.core.errors import InvalidOption
from streamjobs.core.names import check_name, split_job_id

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem
    from msgspec import UnsetType

    from streamjobs.core.dedupe import Dedupe

if TYPE_CHECKING:
    _Type = click.types.FuncParamType[str, Any]
else:
    # Older versions of click cannot be asked for a type of that.
    _Type = click.types.FuncParamType


class Known(_Type):
    """A type of values that a shell can complete; to call it reads one."""

    def __init__(self, read: Callable[[str], Any], there_are: Callable[[click.Context], list[str]], sign: str) -> None:
        super().__init__(read)
        self._there_are = there_are
        self._sign = sign

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem[str]]":
        """Return what the word may become."""
        return complete.items(self._there_are, ctx, incomplete, self._sign)


def known(
    there_are: Callable[[click.Context], list[str]], *, sign: str = ""
) -> Callable[[Callable[[str], Any]], Known]:
    """Let a shell complete what a function reads, from what there is; `sign` parts several values in one word."""
    return lambda read: Known(read, there_are, sign)


MOST_PROCESSES = 256
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
        raise ValueError(f"{text!r:.40} is not an instant: use RFC 3339, such as 2030-01-31T12:00:00Z") from None
    if value.tzinfo is None:
        raise ValueError(f"{text!r:.40} has no time zone: add Z, or an offset such as +01:00")
    return value


def instant_or_seconds(text: str) -> datetime | float:
    """Return an RFC 3339 instant, or a duration in seconds.

    Raises:
        ValueError: it is neither.
    """
    return instant(text) if "-" in text else seconds(text)


def mode(text: str) -> "Dedupe | None":
    """Return a dedupe mode: `done`, `started`, `latest`, or the duration of a window; None for `none`.

    Raises:
        ValueError: it is none.
    """
    from streamjobs.core.dedupe import Latest, UntilDone, UntilStarted, Window

    modes = {"done": UntilDone, "started": UntilStarted, "latest": Latest}
    if text == "none":
        return None
    if text in modes:
        return modes[text]()
    try:
        return Window(seconds(text))
    except ValueError as error:
        raise ValueError(
            f"{text!r:.40} is no dedupe mode: use done, started, latest, a window such as 5m, or none"
        ) from error


def dedupe(_context: click.Context, _option: click.Parameter, text: str | None) -> "Dedupe | UnsetType | None":
    """Read a dedupe mode; UNSET where the option is not there."""
    from msgspec import UNSET

    try:
        return UNSET if text is None else mode(text)
    except (ValueError, InvalidOption) as error:
        raise click.BadParameter(str(error)) from error


def duration(text: str) -> float:
    """Read a duration, in seconds."""
    try:
        return seconds(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def rate(text: str) -> tuple[int, float] | str:
    """Read a rate, such as `100/s`, `5/m` or `3/10s`: how many in how many seconds; or `off`."""
    if text == "off":
        return text
    count, _, per = text.partition("/")
    try:
        found = int(count), seconds(per if per[:1].isdigit() else f"1{per}")
    except ValueError as error:
        raise click.BadParameter(f"{text!r:.40} is not a rate: use 100/s, 5/m, 3/10s, or off") from error
    if found[0] < 1:
        raise click.BadParameter(f"{text!r:.40} is not a rate: use 1 or more, such as 5/m")
    return found


def pace(text: str) -> float:
    """Read a rate as so many per second."""
    found = rate(text)
    if isinstance(found, str) or not found[1] > 0:
        raise click.BadParameter(f"{text!r:.40} is not a rate at which to go on: use 20/s, 5/m or 3/10s")
    return found[0] / found[1]


def places(text: str) -> int | str:
    """Read a concurrency, or `off`."""
    return text if text == "off" else numbers(1)(text)


def keep(text: str) -> int | timedelta | str:
    """Read how many dead jobs are kept, or how long, or `off`."""
    if text == "off":
        return text
    try:
        return timedelta(seconds=seconds(text)) if text[-1:].isalpha() else numbers(1)(text)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f"{text!r:.40}: use a number of jobs, a duration with its unit such as 30d, or off"
        ) from error


Pair = tuple[float | None, float | None]
"""From when on degraded, and critical; None for never."""


def threshold(text: str) -> tuple[str, Pair | float | None]:
    """Read a threshold: `oldest=30s/2m` for degraded and critical, `dead=10` for degraded, and critical as usual;
    `off` for never.
    """
    name, sign, value = text.partition("=")
    low, both, high = value.partition("/")
    if not sign or not low:
        raise click.BadParameter(
            f"{text!r:.40} is not a threshold: use oldest=30s/2m, dead=10, failures=20%/50%, dead=off"
        )
    try:
        return name, (_bound(low), _bound(high)) if both else _bound(low)
    except ValueError as error:
        raise click.BadParameter(f"{text!r:.40}: use a duration, a number, per cent, or off") from error


def _bound(text: str) -> float | None:
    if text == "off":
        return None
    return float(text[:-1]) / 100 if text.endswith("%") else seconds(text)


def number(text: str) -> int:
    """Read a whole number."""
    try:
        return int(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r:.40} is not a whole number") from error


def size(text: str) -> int:
    """Read a size in bytes: `512M`, `2G`, or a plain number."""
    number, unit = (text[:-1], text[-1]) if text[-1:].upper() in tuple("KMGT") else (text, "")
    if not (number.isascii() and number.isdigit() and int(number)):
        raise click.BadParameter(f"{text!r:.40} is not a size: use 512M, 2G, or a number of bytes")
    return int(number) << 10 * ("KMGT".index(unit.upper()) + 1 if unit else 0)


def numbers(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return a type that reads a whole number in this range."""

    def read(text: str) -> int:
        value = number(text)
        if value < low or (high is not None and value > high):
            raise click.BadParameter(f"{value}: use {low} to {high:,}" if high else f"{value}: use {low} or more")
        return value

    return read


def processes(text: str) -> int:
    """Read how many processes share the work; `auto` is one for each CPU."""
    if text == "auto":
        return min(cpus(), MOST_PROCESSES)
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_PROCESSES):
        raise click.BadParameter(f"{text:.40}: use 1 to {MOST_PROCESSES}, or auto")
    return int(text)


def time(text: str) -> datetime:
    """Read an instant."""
    try:
        return instant(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def when(text: str) -> datetime | float:
    """Read an instant, or how far it is away, in seconds."""
    try:
        return instant_or_seconds(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def instant_ms(when: datetime | float | None, now_ms: int) -> int:
    """Return the server's time that `when` means; 0 for none. Whatever lies before 1970 is its beginning."""
    if when is None:
        return 0
    if isinstance(when, datetime):
        return max(1, round(when.timestamp() * 1000))
    return max(1, now_ms - round(min(when, now_ms / 1000) * 1000))


@known(complete.kinds)
def kind(text: str) -> str:
    """Read the name of a kind."""
    return words(text)


def words(text: str) -> str:
    """Read a text that is not empty: an empty one, such as a shell's unset variable, would mean all."""
    if not text:
        raise click.BadParameter("it is empty; leave the option out, or give it a value")
    return text


def pair(text: str) -> tuple[str, str]:
    """Read `name=value`."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.BadParameter(f"{text!r:.80}: expected NAME=VALUE, such as user_id=42")
    return name, value


@known(complete.queue_names)
def queue(text: str) -> str:
    """Read the name of one queue."""
    try:
        return check_name(text, "queue")
    except InvalidOption as error:
        raise click.BadParameter(str(error)) from error


@known(complete.queue_names, sign=",")
def queues(text: str) -> tuple[str, ...]:
    """Read names of queues, parted by commas."""
    return tuple(queue(word) for word in text.split(","))


@known(complete.queue_names, sign=",")
def subscriptions(text: str) -> tuple[str, ...]:
    """Read what a worker serves: names or patterns of queues, each perhaps with its weight, parted by commas."""
    from streamjobs.core.subscription import subscriptions as read

    words = tuple(text.split(","))
    try:
        read(words)
    except InvalidOption as error:
        raise click.BadParameter(str(error)) from error
    return words


def address(text: str) -> str:
    """Read where to listen."""
    from streamjobs.core.addresses import parse_address

    try:
        parse_address(text, "port")
    except InvalidOption as error:
        raise click.BadParameter(str(error)) from error
    return text


def job_id(text: str) -> str:
    """Read the id of a job."""
    try:
        split_job_id(text)
    except InvalidOption as error:
        raise click.BadParameter(str(error)) from error
    return text


Names = tuple[tuple[str, ...], ...]
"""What an option of a type that reads several that may be repeated gives."""


def flat(groups: Names) -> list[str]:
    """Return the names of a repeated option, in order, each once."""
    return list(dict.fromkeys(name for group in groups for name in group))
