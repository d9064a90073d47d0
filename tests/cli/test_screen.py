"""The screen of stats, as it is: at 80, 100 and 120 columns, with colours and without, and with large numbers."""

from collections.abc import Iterator
from typing import Any

import click
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamjobs.cli import screen, show
from streamjobs.cli.settings import Settings
from streamjobs.core.server import ServerFacts
from streamjobs.core.thresholds import Thresholds
from streamjobs.operate.health import QueueFacts, judge, judge_server
from streamjobs.operate.metrics import WINDOWS, KindStats, Spread, Tally
from streamjobs.operate.overview import Overview, QueueView
from streamjobs.operate.stats import QueueStats

SERVER = ServerFacts("valkey", "9.1.2", "master", "noeviction", 2_040_109_466, 4_294_967_296)
NOON_MS = 1_764_417_603_000
USUAL = Thresholds()


@pytest.fixture(autouse=True)
def _in_a_command() -> Iterator[None]:
    """Let `settings()` find a server."""
    settings = Settings()
    settings.flags["url"] = "redis://cache-1:6379/0"
    with click.Context(click.Command("x"), obj=settings):
        yield


def view(stats: QueueStats, came: float, went: float, failed: float = 0.0) -> QueueView:
    """Return a queue with so many jobs per second that came and went, and failures per minute."""
    minute = Tally(60, {"enqueued": came * 60, "done": went * 60, "retried": failed})
    return QueueView(
        stats,
        minute,
        [minute, minute],
        [Tally(60, {"enqueued": came * step, "done": went * step}) for step in range(20)],
        USUAL,
        judge(QueueFacts(stats), USUAL),
    )


def overview(*views: QueueView, server: ServerFacts = SERVER) -> Overview:
    return Overview(NOON_MS, server, 0.001, WINDOWS["1m"], judge_server(server, 0.001, USUAL), views)


WEB = view(
    QueueStats("web", waiting=12_418, running=96, slots=96, scheduled=204, retrying=7, dead=3, oldest_ready_ms=4200,
               workers=3, used_bytes=5_400_000),
    1930, 2011, 120,
)  # fmt: skip
MAIL = view(QueueStats("mail", running=4, slots=8, workers=1, used_bytes=900), 14, 14)
REPORTS = view(
    QueueStats("reports", waiting=87, scheduled=12, retrying=1, dead=41, oldest_ready_ms=1_082_000, paused=True,
               used_bytes=70_000),
    3, 0, 25,
)  # fmt: skip
ALL = overview(MAIL, REPORTS, WEB)


def drawn(monkeypatch: pytest.MonkeyPatch, columns: int, seen: Overview, **how: Any) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    how.setdefault("named", False)
    return screen.overview(seen, **how)


def plain(lines: list[str]) -> str:
    return "\n".join(click.unstyle(line) for line in lines)


def test_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        plain(drawn(monkeypatch, 80, ALL))
        == """\
valkey 9.1.2 @ …e-1:6379/0   namespace sj   noeviction   1.9G / 4.0G   12:00:03Z

QUEUE    WAITING RUN/SLOTS SCHED RETRY DEAD OLDEST  IN/s OUT/s FAIL% HEALTH
mail           0       4/8     0     0    0     0s    14    14   0.0 ok
reports*      87       0/0    12     1   41 18m02s     3     0 100.0 critical
web       12,418     96/96   204     7    3   4.2s 1,930 2,011   0.1 degraded

reports  critical  paused (streamjobs queue resume reports)
                   no worker is subscribed (streamjobs worker -A APP -Q reports)
                   oldest ready job has waited 18m02s (limit 5m)
                   41 dead jobs (streamjobs dead groups -Q reports)
web      degraded  3 dead jobs (streamjobs dead groups -Q web)"""
    )


def test_100_columns_have_the_time_to_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        plain(drawn(monkeypatch, 100, ALL))
        == """\
valkey 9.1.2 @ cache-1:6379/0   namespace sj   noeviction   1.9G / 4.0G                    12:00:03Z

QUEUE     WAITING  RUN/SLOTS  SCHED  RETRY  DEAD  OLDEST   IN/s  OUT/s  DRAIN  FAIL%  HEALTH
mail            0        4/8      0      0     0      0s     14     14     0s    0.0  ok
reports*       87        0/0     12      1    41  18m02s      3      0  never  100.0  critical
web        12,418      96/96    204      7     3    4.2s  1,930  2,011  2m30s    0.1  degraded

reports  critical  paused (streamjobs queue resume reports)
                   no worker is subscribed (streamjobs worker -A APP -Q reports)
                   oldest ready job has waited 18m02s (limit 5m)
                   41 dead jobs (streamjobs dead groups -Q reports)
web      degraded  3 dead jobs (streamjobs dead groups -Q web)"""
    )


def test_120_columns_have_the_size_too(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = plain(drawn(monkeypatch, 120, ALL, named=True)).splitlines()

    assert lines[2:6] == [
        "QUEUE     WAITING  RUN/SLOTS  SCHED  RETRY  DEAD   SIZE  OLDEST   IN/s  OUT/s  DRAIN  FAIL%  HEALTH",
        "mail            0        4/8      0      0     0   900B      0s     14     14     0s    0.0  ok",
        "reports*       87        0/0     12      1    41  68.4K  18m02s      3      0  never  100.0  critical",
        "web        12,418      96/96    204      7     3   5.1M    4.2s  1,930  2,011  2m30s    0.1  degraded",
    ]
    # Packed where there is room, and the trends of queues that were named.
    assert lines[9].endswith("(limit 5m); 41 dead jobs (streamjobs dead groups -Q reports)")
    assert lines[-6:] == [
        "mail     in   ▁▂▂▃▃▃▄▄▄▅▅▆▆▆▇▇▇███  4.4/s at most, 20m",
        "         out  ▁▂▂▃▃▃▄▄▄▅▅▆▆▆▇▇▇███  4.4/s at most, 20m",
        "reports  in   ▁▂▂▃▃▃▄▄▄▅▅▆▆▆▇▇▇███  0.9/s at most, 20m",
        "         out  ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁  0/s at most, 20m",
        "web      in   ▁▂▂▃▃▃▄▄▄▅▅▆▆▆▇▇▇███  611/s at most, 20m",
        "         out  ▁▂▂▃▃▃▄▄▄▅▅▆▆▆▇▇▇███  637/s at most, 20m",
    ]


@pytest.mark.parametrize("columns", [40, 50, 53, 54, 60, 79, 80])
def test_health_has_room_on_every_screen(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    lines = plain(drawn(monkeypatch, columns, ALL)).splitlines()[2:6]

    assert [line.split()[-1] for line in lines] == ["HEALTH", "ok", "critical", "degraded"]
    assert max(map(len, lines)) <= columns


def test_healthy_queues_are_left_out_first_and_reasons_never(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = plain(drawn(monkeypatch, 80, ALL)).splitlines()

    # heading, empty, titles, queues, empty, reasons
    assert plain(drawn(monkeypatch, 80, ALL, room=12)).splitlines() == whole
    fewer = plain(drawn(monkeypatch, 80, ALL, room=11)).splitlines()
    assert len(fewer) == 11
    assert [line.split()[0] for line in fewer[2:5]] == ["QUEUE", "reports*", "…"]
    assert fewer[-5:] == whole[-5:]
    least = plain(drawn(monkeypatch, 80, ALL, room=5)).splitlines()
    assert (least[3], least[-5:]) == ("… and 3 rows more", whole[-5:])


def test_a_queue_that_nobody_works_off_never_drains() -> None:
    assert WEB.drain_s < 200
    for changes in ({"paused": True}, {"slots": 0}):
        assert view(msgspec.structs.replace(WEB.stats, **changes), 1, 100).drain_s == float("inf")


def test_verdicts_have_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn(monkeypatch, 80, ALL)

    assert lines[2].startswith("\x1b[1mQUEUE")
    assert lines[3].endswith(" ok")
    assert lines[4].endswith("\x1b[31mcritical\x1b[0m")
    assert lines[5].endswith("\x1b[33mdegraded\x1b[0m")
    assert lines[7].startswith("reports  \x1b[31mcritical\x1b[0m  paused")


def test_the_server_has_reasons_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    evicts = msgspec.structs.replace(SERVER, eviction="allkeys-lru")

    lines = plain(drawn(monkeypatch, 80, overview(MAIL, server=evicts))).splitlines()

    assert lines[5:] == [
        "(server)  critical  the server deletes whole queues when its memory is full",
        "                    (maxmemory-policy allkeys-lru); set maxmemory-policy",
        "                    noeviction there",
    ]


def test_notes_on_what_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = QueueStats("q", waiting=950, limited=900, workers=1, slots=4, max_waiting=1000)

    lines = plain(drawn(monkeypatch, 80, overview(view(crowd, 1, 1)))).splitlines()

    assert lines[5:] == [
        "q  note      900 of those waiting wait for a rate or a concurrency",
        "             (streamjobs queue limit q); 950 of 1,000 jobs wait that may",
    ]


def test_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run, wait = Spread(12.3, 11, 30.4, 80), Spread(2, 0.9, 9.4, 1240)
    tally = Tally(300, {"enqueued": 1930, "done": 1918, "retried": 12, "error.timeout": 9.4, "error.http_5xx": 2.6})
    kinds = [KindStats("mail.send", tally, run, wait), KindStats("mail.never", Tally(300, {"enqueued": 1}))]
    seen = overview(msgspec.structs.replace(MAIL, kinds=kinds))

    assert (
        plain(screen.kinds(seen)[2:])
        == """\
QUEUE  KIND         RUNS  FAIL%  TIME   MEAN    P50    P95   P99
mail   mail.send   1,930    0.6  run    12ms   11ms   30ms  80ms
                                 wait  2.0ms  900us  9.4ms  1.2s
mail   mail.never      0      -  run       -      -      -     -
                                 wait      -      -      -     -

QUEUE  KIND       ERRORS
mail   mail.send  timeout 9, http_5xx 3"""
    )
    assert "nothing was counted within 1m" in plain(screen.kinds(overview(MAIL)))


NUMBERS = st.integers(0, 10**10)


@given(st.lists(NUMBERS, min_size=7, max_size=7), st.floats(0, 1e7), st.floats(0, 1e7), st.integers(0, 10**10))
def test_the_greatest_numbers_fit_80_columns(numbers: list[int], came: float, went: float, age_ms: int) -> None:
    waiting, running, slots, scheduled, retrying, dead, _ = numbers
    stats = QueueStats(
        "a-queue-with-a-name-that-is-far-too-long", waiting=waiting, running=running, slots=slots, scheduled=scheduled,
        retrying=retrying, dead=dead, oldest_ready_ms=age_ms,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        lines = plain(drawn(patch, 80, overview(view(stats, came, went, 60), REPORTS))).splitlines()

    # But for a command that is longer than that: it is to be copied.
    assert max(show.width(line) for line in lines if "(streamjobs" not in line) <= 80, "\n".join(lines)
