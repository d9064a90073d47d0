"""Names, ids, delays and instants: what is refused before anything is sent."""

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from streamjobs.core import names
from streamjobs.core.errors import InvalidOption

TEN_YEARS_S = 10 * 366 * 86_400
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001


@pytest.mark.parametrize("name", ["mail", "a", "A-z_0.9", "x" * 64])
def test_case_H8_good_names_pass(name: str) -> None:
    assert names.check_name(name, "queue") == name


@pytest.mark.parametrize(
    "name", ["", "x:dead", "{a}b", "a b", "mail\n", "ä", "a/1", "x" * 65, "x" * 300, "a\x00", "\ud800", None, 7]
)
def test_case_H8_bad_names_are_refused_with_the_rule(name: Any) -> None:
    with pytest.raises(InvalidOption, match=r"^queue .*: use 1 to 64 letters, digits") as caught:
        names.check_name(name, "queue")

    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["pages.fetch", "größe.prüfen", "発送", "x" * 200, "a:b/c{d}"])
def test_case_H4_kinds_may_be_any_printable_text(kind: str) -> None:
    assert names.check_kind(kind) == kind


@pytest.mark.parametrize(
    "kind", ["", "a b", "a\n", "a\x00", "\ud800", "x" * 201, "ä" * 101, "\u202eevil", "\u2028", None, 5]
)
def test_case_H4_bad_kinds_are_refused(kind: Any) -> None:
    with pytest.raises(InvalidOption, match=r"^kind "):
        names.check_kind(kind)


@pytest.mark.parametrize("key", ["a", "user:42", "with space", "\n", "x" * 256, "ü" * 128])
def test_dedupe_keys_may_be_any_text_of_256_bytes(key: str) -> None:
    assert names.check_dedupe_key(key) == key


@pytest.mark.parametrize("key", ["", "x" * 257, "ü" * 129, "\udfff", 5, b"a"])
def test_bad_dedupe_keys_are_refused(key: Any) -> None:
    with pytest.raises(InvalidOption, match="dedupe_key"):
        names.check_dedupe_key(key)


@pytest.mark.parametrize(
    ("job_id", "parts"),
    [
        ("mail:1764412345678-0", ("mail", 0, "1764412345678-0")),
        ("mail:d1764412345678-12", ("mail", 0, "d1764412345678-12")),
        ("mail/3:1-1", ("mail", 3, "1-1")),
        ("a.b_c-d:0-18446744073709551615", ("a.b_c-d", 0, "0-18446744073709551615")),
    ],
)
def test_a_job_id_says_where_its_job_is(job_id: str, parts: tuple[str, int, str]) -> None:
    assert names.split_job_id(job_id) == parts


@pytest.mark.parametrize(
    "job_id", ["", "mail", "mail:", "mail:1", "mail:1-", "mail:x1-0", ":1-0", "a b:1-0", "mail:1-0\n", "mail:१-0"]
)
def test_what_is_no_job_id_is_refused(job_id: str) -> None:
    with pytest.raises(InvalidOption, match="expected QUEUE:ID"):
        names.split_job_id(job_id)


@pytest.mark.parametrize(
    ("delay", "ms"),
    [
        (1, 1000), (0.001, 1), (0.0011, 2), (2.5, 2500), (0.1 + 0.2, 300), (timedelta(minutes=1), 60_000),
        (timedelta(microseconds=1), 1), (TEN_YEARS_S, TEN_YEARS_S * 1000),
    ],
)  # fmt: skip
def test_delays_are_whole_milliseconds_rounded_up(delay: float | timedelta, ms: int) -> None:
    assert names.milliseconds(delay, "delay") == ms


@pytest.mark.parametrize(
    "delay",
    [
        0, 0.0, -0.0, -1, -0.001, 1e-9, float("nan"), float("inf"), float("-inf"), 1e400, 1e300, 10**400,
        TEN_YEARS_S + 1, timedelta(0), timedelta(-1), timedelta.max, True, "5", None, b"1", 1j,
    ],
)  # fmt: skip
def test_delays_out_of_range_are_refused(delay: Any) -> None:
    """Fault F50: negative, zero, NaN, 1e400, ages away."""
    with pytest.raises(InvalidOption, match="delay="):
        names.milliseconds(delay, "delay")


def test_an_instant_is_the_same_in_every_zone() -> None:
    berlin = datetime(2026, 3, 29, 3, 30, tzinfo=ZoneInfo("Europe/Berlin"))

    assert names.instant_ms(berlin, "at") == names.instant_ms(berlin.astimezone(UTC), "at") == 1_774_747_800_000


class NoZone(tzinfo):
    """A zone that does not know its own offset."""

    def utcoffset(self, _: datetime | None) -> None:
        return None


@pytest.mark.parametrize(
    "at",
    [
        NAIVE, datetime(2026, 1, 1, tzinfo=NoZone()), datetime(9999, 12, 31, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-12))), datetime.max.replace(tzinfo=UTC),
        datetime(1969, 12, 31, tzinfo=UTC), datetime.min.replace(tzinfo=UTC), date(2026, 1, 1), "2026-01-01",
        1_700_000_000,
    ],
)  # fmt: skip
def test_instants_without_zone_or_out_of_range_are_refused(at: Any) -> None:
    """Fault F50: naive datetimes, the year 9999."""
    with pytest.raises(InvalidOption, match="at="):
        names.instant_ms(at, "at")
