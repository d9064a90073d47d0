"""What names, ids and times may be; every check that needs nothing but the value itself."""

import math
import re
from datetime import UTC, datetime, timedelta

from streamjobs.core.errors import InvalidOption

MAX_DELAY_MS = 10 * 366 * 86_400_000
"""Ten years: further away a delay is a mistake in its unit."""
MAX_PAYLOAD_BYTES = 256 * 1024
MAX_KEY_BYTES = 256
MAX_KIND_BYTES = 200

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_LOCAL_ID = re.compile(r"d?[0-9]{1,20}-[0-9]{1,20}\Z")
_JOB_ID = re.compile(rf"([A-Za-z0-9_.-]{{1,64}})(?:/([0-9]{{1,4}}))?:({_LOCAL_ID.pattern})")


def is_name(value: str) -> bool:
    """Say whether this can name a queue or a namespace."""
    return bool(_NAME.match(value))


def check_name(value: str, what: str) -> str:
    """Return `value` if it can name a queue or a namespace.

    Raises:
        InvalidOption: it does not match `[A-Za-z0-9_.-]{1,64}`.
    """
    if not isinstance(value, str) or not _NAME.match(value):
        raise InvalidOption(
            f"{what} {value!r:.80}: use 1 to 64 letters, digits, '_', '.', '-' (no braces, colons, spaces)"
        )
    return value


def check_kind(value: str, what: str = "kind") -> str:
    """Return `value` if it can name a kind, or a cron: 1 to 200 bytes of UTF-8, printable, without spaces."""
    try:
        size = len(value.encode())
    except (UnicodeEncodeError, AttributeError) as error:
        raise InvalidOption(f"{what} {value!r:.80}: not a string of valid Unicode") from error
    if not 0 < size <= MAX_KIND_BYTES or not value.isprintable() or " " in value:
        raise InvalidOption(f"{what} {value!r:.80}: use 1 to {MAX_KIND_BYTES} bytes, printable, without spaces")
    return value


def check_dedupe_key(value: str) -> str:
    """Return `value` if it can be a dedupe key: 1 to 256 bytes of UTF-8."""
    return check_key(value, "dedupe_key")


def check_key(value: str, what: str) -> str:
    """Return `value` if it can be a key that users choose: 1 to 256 bytes of UTF-8."""
    try:
        size = len(value.encode())
    except (UnicodeEncodeError, AttributeError) as error:
        raise InvalidOption(f"{what} {value!r:.80}: not a string of valid Unicode") from error
    if not 0 < size <= MAX_KEY_BYTES:
        raise InvalidOption(f"{what} of {size} bytes: use 1 to {MAX_KEY_BYTES}; hash longer keys")
    return value


def is_local_id(value: str) -> bool:
    """Say whether this can be the id of a job in its queue, such as `1764412345678-0`."""
    return bool(_LOCAL_ID.match(value))


def split_job_id(job_id: str) -> tuple[str, int, str]:
    """Return the queue, the partition and the local id of a job id such as `mail:1764412345678-0`.

    Raises:
        InvalidOption: this is not a job id.
    """
    match = _JOB_ID.match(job_id)
    if not match:
        raise InvalidOption(f"job id {job_id!r:.80}: expected QUEUE:ID such as mail:1764412345678-0")
    return match[1], int(match[2] or 0), match[3]


def milliseconds(value: float | timedelta, what: str, *, low_ms: int = 1, high_ms: int = MAX_DELAY_MS) -> int:
    """Return seconds or a timedelta as whole milliseconds, rounded up.

    Raises:
        InvalidOption: not a number, or outside the range given.
    """
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds != seconds:
        raise InvalidOption(f"{what}={value!r:.80}: expected seconds or a timedelta")
    # Compared before it is rounded: neither an infinity nor a huge int has a rounded form.
    if abs(seconds) <= high_ms / 1000 and low_ms <= (result := math.ceil(round(seconds * 1000, 3))) <= high_ms:
        return result
    high = "10 years" if high_ms == MAX_DELAY_MS else f"{high_ms / 1000:.10g} s"
    shown = f"{value.total_seconds():g} s" if isinstance(value, timedelta) else f"{value!r:.80}"
    raise InvalidOption(f"{what}={shown}: must be from {low_ms / 1000:g} s to {high}")


def instant_ms(value: datetime, what: str) -> int:
    """Return an aware datetime as milliseconds since 1970.

    Raises:
        InvalidOption: it has no time zone, or lies before 1970 or after 9998.
    """
    if not isinstance(value, datetime):
        raise InvalidOption(f"{what}={value!r:.80}: expected a datetime")
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidOption(
            f"{what}={value.isoformat()}: has no time zone, so it names no instant; use datetime.now(UTC) or a ZoneInfo"
        )
    result = (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    if not 0 < result < 253_370_764_800_000:
        raise InvalidOption(f"{what}={value.isoformat()}: must lie in the years 1970 to 9998")
    return result
