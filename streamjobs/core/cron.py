"""Crons: when their slots are, and what follows from slots that were missed. Pure.

A slot is an instant for which a run is due, in ms since 1970, and also the name of that run. Whoever
knows a schedule knows its slots: nobody has to be asked, and nobody has to be elected.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from itertools import islice, takewhile
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError

from streamjobs.core.codec import encode_meta
from streamjobs.core.errors import InvalidOption
from streamjobs.core.job import Job
from streamjobs.core.names import milliseconds

CatchUp: TypeAlias = Literal["once", "none", "all"]
CATCH_UPS = ("once", "none", "all")
LATE_MS = 10_000
"""A slot that is begun later than this after it was due was missed: what becomes of it is for `catch_up` to say."""
MOST_CAUGHT_UP = 1000
"""Missed slots beyond the last so many are neither run nor counted."""
MAX_PERIOD_MS = 366 * 86_400_000
NEVER_MS = 253_370_764_800_000
"""The year 9999."""
_DAY_MS = 86_400_000
_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)
_EPOCH = date(1970, 1, 1)
_SEARCHED_DAYS = 30 * 366
"""A schedule without a slot in thirty years (the 5th Monday of a February comes every 28) has none."""


class Calendar:
    """The slots of a cron expression (minute, hour, day of month, month, day of week) in a time zone.

    Where clocks are set forward or back, it is as with the cron of Debian. A fixed time, where neither
    the minute nor the hour begins with `*`: one that does not exist comes at the next instant that does,
    one that occurs twice comes the first time. Anything else follows the clock on the wall: each minute
    that it shows and that matches, as often as it shows it, so `*/15` keeps its real interval.
    """

    def __init__(self, expr: str, tz: str = "UTC") -> None:
        """Read the expression; `L`, `LW` and `5#3` are those of the cronsim package.

        Raises:
            InvalidOption: it is no such expression, it has no slot, or there is no such zone here.
        """
        self.expr = " ".join(expr.split()) if isinstance(expr, str) else ""
        self.tz = tz
        self._zone = _zone(tz)
        if len(fields := self.expr.split(" ")) != 5:
            raise InvalidOption(f"cron {expr!r:.80}: expected 5 fields: minute hour day-of-month month day-of-week")
        try:
            self._fields = CronSim(self.expr, datetime(2000, 1, 1))  # noqa: DTZ001 - only its fields are used
        except CronSimError as error:
            raise InvalidOption(f"cron {expr!r:.80}: {error}") from error
        self._fixed = not (fields[0].startswith("*") or fields[1].startswith("*"))
        self._slots_on = lru_cache(maxsize=4)(self._find_slots_on)
        if next(self.after(946_684_800_000), None) is None:
            raise InvalidOption(f"cron {expr!r:.80}: there is no such day")

    @property
    def text(self) -> str:
        """The schedule as one line, as the server keeps it."""
        return f"{self.expr} {self.tz}"

    def after(self, instant_ms: int) -> Iterator[int]:
        """Yield the slots after an instant, the earliest first."""
        first = instant_ms // _DAY_MS
        for day in range(first, first + _SEARCHED_DAYS):
            yield from (slot for slot in self._slots_on(day) if slot > instant_ms)

    def until(self, instant_ms: int) -> Iterator[int]:
        """Yield the slots up to an instant, the latest first."""
        last = instant_ms // _DAY_MS
        for day in range(last, last - _SEARCHED_DAYS, -1):
            yield from (slot for slot in reversed(self._slots_on(day)) if slot <= instant_ms)

    def shown(self, instant_ms: int) -> str:
        """Return an instant as the clock on the wall of the zone shows it, with its offset from UTC."""
        return datetime.fromtimestamp(instant_ms / 1000, self._zone).isoformat()

    def _find_slots_on(self, day: int) -> list[int]:
        """Return the slots of one day of UTC, given as days since 1970.

        A day in a zone may overlap with three in UTC, and where clocks are set back at midnight the
        hours of two of its days come mixed: hence all three, and sorted.
        """
        begin = day * _DAY_MS
        found: set[int] = set()
        for near in (-1, 0, 1):
            here = _EPOCH + timedelta(days=day + near)
            if here.month in self._fields.months and self._fields.match_day(here):
                found.update(self._instants(here))
        return sorted(slot for slot in found if begin <= slot < begin + _DAY_MS)

    def _instants(self, here: date) -> Iterator[int]:
        times = [(hour, minute) for hour in self._fields.hours for minute in self._fields.minutes]
        midnights = [datetime(one.year, one.month, one.day, tzinfo=self._zone) for one in (here, here + _DAY)]
        if len({wall.replace(fold=fold).utcoffset() for wall in midnights for fold in (0, 1)}) == 1:
            # No clock is set on this day.
            begin = _ms(midnights[0])
            yield from (begin + (hour * 60 + minute) * 60_000 for hour, minute in times)
            return
        for hour, minute in times:
            wall = datetime(here.year, here.month, here.day, hour, minute, tzinfo=self._zone)
            if _exists(wall):
                yield from {_ms(wall)} if self._fixed else {_ms(wall), _ms(wall.replace(fold=1))}
            elif self._fixed:
                yield _ms(_next_existing(wall))


class Every:
    """Slots at the multiples of an interval since 1970: the same for all, whenever they start."""

    def __init__(self, seconds: float | timedelta) -> None:
        """
        Raises:
            InvalidOption: less than 1 s, or more than 366 days.
        """
        self.interval_ms = milliseconds(seconds, "every", low_ms=1000, high_ms=MAX_PERIOD_MS)

    @property
    def text(self) -> str:
        """The schedule as one line, as the server keeps it."""
        return f"every {self.interval_ms / 1000:g}"

    def after(self, instant_ms: int) -> Iterator[int]:
        """Yield the slots after an instant, the earliest first."""
        slot = instant_ms // self.interval_ms * self.interval_ms
        while True:
            slot += self.interval_ms
            yield slot

    def until(self, instant_ms: int) -> Iterator[int]:
        """Yield the slots up to an instant, the latest first."""
        slot = instant_ms // self.interval_ms * self.interval_ms
        while slot > 0:
            yield slot
            slot -= self.interval_ms

    def shown(self, instant_ms: int) -> str:
        """Return an instant in UTC."""
        return datetime.fromtimestamp(instant_ms / 1000, UTC).isoformat()


Schedule: TypeAlias = Calendar | Every


def parse_schedule(text: str) -> Schedule:
    """Return the schedule that a line says, as `text` wrote it.

    Raises:
        InvalidOption: it says none.
    """
    head, _, last = text.rpartition(" ")
    if head != "every":
        return Calendar(head, last)
    try:
        return Every(float(last))
    except ValueError:
        raise InvalidOption(f"schedule {text!r:.80}: expected seconds after `every`") from None


class Due(msgspec.Struct, frozen=True):
    """One slot to run."""

    slot_ms: int
    at_ms: int
    """Not before this: the slot, and its jitter."""
    late_ms: int = 0
    """How long after `at_ms` it is begun, if it was missed; else 0."""


class Turn(msgspec.Struct, frozen=True):
    """What is to be done for a cron now."""

    runs: tuple[Due, ...]
    passed: int
    """Slots that were missed and are not run, before the first of `runs`."""
    passed_to_ms: int
    """The last of those; 0 for none."""
    next_ms: int
    """When something is to be done again, once this is."""


class Cron(msgspec.Struct, frozen=True, eq=False):
    """A job that is enqueued at each slot of a schedule."""

    name: str
    job: Job
    schedule: Schedule
    catch_up: CatchUp = "once"
    jitter_ms: int = 0

    def turn(self, after_ms: int, now_ms: int) -> Turn:
        """Decide what follows from the slots after one instant and up to another, the server's now."""
        waiting = self._waiting(after_ms, now_ms)
        due = [one for one in waiting if one.at_ms <= now_ms]
        runs = [one for one in due if self._wanted(one, one is due[-1])]
        # Slots behind those that were passed over come later than they do, so one position tells them all.
        passed = [one for one in due if not runs or one.slot_ms < runs[0].slot_ms]
        next_ms = waiting[-1].at_ms if waiting and waiting[-1].at_ms > now_ms else self._next(now_ms, after_ms).at_ms
        return Turn(tuple(runs), len(passed), passed[-1].slot_ms if passed else 0, next_ms)

    def _wanted(self, one: Due, is_last: bool) -> bool:
        match self.catch_up:
            case "all":
                return True
            case "once":
                return is_last
            case "none":
                return is_last and not one.late_ms

    def _waiting(self, after_ms: int, now_ms: int) -> list[Due]:
        """Return the slots between two instants, the earliest first; of many, the last."""
        slots = takewhile(lambda slot: slot > after_ms, self.schedule.until(now_ms))
        latest = list(islice(slots, MOST_CAUGHT_UP))[::-1]
        ends = [*latest[1:], next(self.schedule.after(now_ms), NEVER_MS)]
        return [self._due(slot, end, now_ms) for slot, end in zip(latest, ends, strict=False)]

    def _next(self, now_ms: int, after_ms: int) -> Due:
        slot, end, *_ = *islice(self.schedule.after(max(now_ms, after_ms)), 2), NEVER_MS, NEVER_MS
        return self._due(slot, end, now_ms)

    def _due(self, slot: int, end: int, now_ms: int) -> Due:
        at_ms = slot + self._spread(slot, end)
        late_ms = now_ms - at_ms
        return Due(slot, at_ms, late_ms if late_ms > LATE_MS else 0)

    def _spread(self, slot: int, end: int) -> int:
        """Return the jitter of a slot: the same for all workers, and never up to the next slot."""
        if not self.jitter_ms:
            return 0
        draw = int.from_bytes(blake2b(f"{self.name} {slot}".encode(), digest_size=4).digest(), "big") / 2**32
        return int(draw * min(self.jitter_ms, end - slot))

    def meta(self, due: Due) -> bytes:
        """Return the meta of the job of a slot: its headers say which it is, and how late it began if it was missed."""
        headers = {**(self.job.meta.headers or {}), "cron": self.name, "cron-slot": rfc3339(due.slot_ms)}
        if due.late_ms:
            headers["cron-late"] = str(due.late_ms // 1000)
        return encode_meta(msgspec.structs.replace(self.job.meta, headers=headers))


def rfc3339(instant_ms: int) -> str:
    """Return an instant as `2026-03-29T01:00:00.000Z`."""
    return datetime.fromtimestamp(instant_ms / 1000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError) as error:
        raise InvalidOption(
            f"tz {name!r:.80}: there is no such time zone here; use a name of the IANA database, such as"
            " Europe/Berlin, and install the tzdata package where the system has none"
        ) from error


def _ms(wall: datetime) -> int:
    return round(wall.timestamp()) * 1000


def _exists(wall: datetime) -> bool:
    return wall.astimezone(UTC).astimezone(wall.tzinfo).replace(tzinfo=None) == wall.replace(tzinfo=None)


def _next_existing(wall: datetime) -> datetime:
    while not _exists(wall):
        # Arithmetic within a zone is that of the clock on the wall.
        wall += _MINUTE
    return wall
