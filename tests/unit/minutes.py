"""A slow reference for crons: it looks at a clock on the wall minute after minute. Shares no code with the product."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
BEGIN, END = datetime(2024, 1, 1, tzinfo=UTC), datetime(2029, 1, 1, tzinfo=UTC)
ZONES = (
    "UTC Europe/Berlin Europe/London America/New_York America/St_Johns America/Santiago America/Havana Africa/Cairo"
    " Africa/Casablanca Asia/Kolkata Australia/Lord_Howe Pacific/Chatham"
).split()
"""Their clocks are set by an hour or half of one, from 0 to 3 o'clock, back to before midnight, or never."""
AROUND = timedelta(hours=15)

WHOLE = os.environ.get("STREAMJOBS_TEST_WHOLE_YEARS") == "1"
"""Look at every minute of the five years, and not only at those around each change."""

_LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


class Field:
    """One field of an expression: `*`, `7`, `1-5`, `*/15`, `8-18/2`, or several parted by commas."""

    def __init__(self, text: str, low: int, high: int) -> None:
        self.starred = text.startswith("*")
        self.values: set[int] = set()
        for part in text.split(","):
            span, _, step = part.partition("/")
            first, _, last = span.partition("-")
            start, end = (low, high) if span == "*" else (int(first), int(last or (high if step else first)))
            self.values |= set(range(start, end + 1, int(step or 1)))


class Reference:
    """An expression, asked about one minute after the other."""

    def __init__(self, expr: str) -> None:
        self.fields = [Field(text, *limits) for text, limits in zip(expr.split(), _LIMITS, strict=True)]
        minute, hour, *_ = self.fields
        self.fixed = not (minute.starred or hour.starred)

    def shows(self, wall: datetime) -> bool:
        minute, hour, day, month, weekday = self.fields
        if wall.minute not in minute.values or wall.hour not in hour.values or wall.month not in month.values:
            return False
        is_day, is_weekday = wall.day in day.values, bool({wall.isoweekday(), wall.isoweekday() % 7} & weekday.values)
        both = day.starred or weekday.starred
        return (is_day and is_weekday) if both else (is_day or is_weekday)

    def slots(self, begin: datetime, end: datetime, zone: tzinfo) -> Iterator[datetime]:
        """Yield the slots of [begin, end), by the rules of docs/cron.md."""
        for at, wall, missing in minutes(begin, end, zone):
            if (self.shows(wall) and not (self.fixed and wall.fold)) or (self.fixed and any(map(self.shows, missing))):
                yield at


@lru_cache(maxsize=1)
def minutes(begin: datetime, end: datetime, zone: tzinfo) -> list[tuple[datetime, datetime, list[datetime]]]:
    """Return each minute of [begin, end): the instant, what the clock shows then, and what it has just left out."""
    found, before = [], (begin - MINUTE).astimezone(zone)
    while begin < end:
        wall = begin.astimezone(zone)
        found.append((begin, wall, list(_skipped(before, wall))))
        before, begin = wall, begin + MINUTE
    return found


def _skipped(before: datetime, wall: datetime) -> Iterator[datetime]:
    """Yield the minutes that the clock did not show between two that follow each other."""
    missing = before.replace(tzinfo=None) + MINUTE
    while missing < wall.replace(tzinfo=None):
        yield missing
        missing += MINUTE


@cache
def spans(name: str) -> list[tuple[datetime, datetime]]:
    """Return what to look at in a zone: the time around each change of its clocks, or all of the five years."""
    if WHOLE:
        years = [datetime(year, 1, 1, tzinfo=UTC) for year in range(BEGIN.year, END.year + 1)]
        return list(pairwise(years))
    zone, hour, found = ZoneInfo(name), timedelta(hours=1), []
    at = BEGIN
    while at < END:
        if (at + hour).astimezone(zone).utcoffset() != at.astimezone(zone).utcoffset():
            found.append((at - AROUND, at + AROUND))
        at += hour
    return found or [(datetime(2027, 12, 30, tzinfo=UTC), datetime(2028, 1, 2, tzinfo=UTC))]
