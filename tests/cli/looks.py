"""What the golden screens show: fixed answers to the questions that commands ask the server."""

from collections.abc import Sequence
from typing import Any

import msgspec

from streamjobs.core.job import Attempt, Meta
from streamjobs.core.server import About, Finding, Level, ServerFacts
from streamjobs.core.states import State
from streamjobs.core.thresholds import Thresholds
from streamjobs.operate.crons import CronStatus
from streamjobs.operate.dead import Alike, Examined
from streamjobs.operate.doctor import Report
from streamjobs.operate.health import QueueFacts, judge, judge_server
from streamjobs.operate.jobs import JobStatus
from streamjobs.operate.limits import LimitStatus, Wait
from streamjobs.operate.metrics import WINDOWS, KindStats, Spread, Tally
from streamjobs.operate.one_queue import OneQueue
from streamjobs.operate.overview import Overview, QueueView
from streamjobs.operate.stats import QueueStats
from streamjobs.operate.workers import Workers, WorkerStatus
from streamjobs.protocol.crons import Definition, Row
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.workers import Note, Running

NOON_MS = 1_764_417_603_000
SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
SERVER = ServerFacts("valkey", "9.1.2", "master", "noeviction", 2_040_109_466, 4_294_967_296)
URL = "redis://cache-1:6379/0"


def ago(ms: int) -> int:
    return NOON_MS - ms


def view(stats: QueueStats, *kinds: KindStats) -> QueueView:
    tally = Tally(60, {"enqueued": 600, "done": 540, "retried": 9})
    verdict = judge(QueueFacts(stats), Thresholds())
    return QueueView(stats, tally, [tally, tally], [tally], Thresholds(), verdict, kinds)


def kind(name: str, done: int, failed: dict[str, float], mean_ms: float) -> KindStats:
    errors = {f"error.{word}": count for word, count in failed.items()}
    tally = Tally(300, {"enqueued": done, "done": done, "retried": sum(failed.values())} | errors)
    run = Spread(mean_ms, mean_ms * 0.9, mean_ms * 2.4, mean_ms * 7)
    return KindStats(name, tally, run, Spread(mean_ms / 6, mean_ms / 14, mean_ms, mean_ms * 90))


WEB = QueueStats("web", waiting=12_418, running=6, slots=16, scheduled=204, retrying=7, dead=41, workers=2,
                 oldest_ready_ms=92_000, lease_ms=15_000, totals={"enqueued": 918_273, "done": 905_590, "dead": 44,
                                                                  "replayed": 3})  # fmt: skip
MAIL = QueueStats("mail", workers=1, slots=8, lease_ms=15_000)
KINDS = [kind("pages.fetch", 538, {"timeout": 9, "http_5xx": 3}, 1230), kind("mail.send", 1930, {}, 12.3),
         kind("pages.a_kind_with_a_name_that_is_longer_than_anybody_expects", 1, {"other": 1}, 61_000)]  # fmt: skip


def worker(name: str, state: str, *, seen_ms: int, running: int, live: bool = True, order: str = "") -> WorkerStatus:
    jobs = tuple(Running(f"web:{ago(n * MINUTE)}-0", "pages.fetch", ago(n * 17_000)) for n in range(running, 0, -1))
    note = Note("web-1", 4711, version="0.1.0", started_ms=ago(9 * HOUR), at_ms=ago(seen_ms), state=state,
                queues=("web", "mail"), serves=2, slots=8, running=running, jobs=jobs, done=5012, failed=17,
                rss_bytes=73_400_320, lag_ms=100)  # fmt: skip
    return WorkerStatus(name, ago(seen_ms), live, ("mail", "web"), note, order=order)


WORKERS = [
    worker("web-1-4711-0a1b2c3d", "running", seen_ms=2 * SECOND, running=2),
    worker("web-2-17-99887766", "running", seen_ms=4 * SECOND, running=1, order="quiet"),
    worker("web-3-4712-deadbeef", "running", seen_ms=3 * MINUTE, running=0, live=False),
    WorkerStatus("an-older-one", ago(SECOND), True, ("web",), told=False),
]


def overview(**rest: Any) -> Overview:
    verdict = judge_server(SERVER, 0.001, Thresholds())
    return Overview(NOON_MS, SERVER, 0.001, WINDOWS["5m"], verdict, [view(MAIL), view(WEB, *KINDS)], **rest)


HISTORY = tuple(
    Attempt(ago(minutes * MINUTE), number, "TimeoutError: still running after 20 s", "timeout", "web-1-4711-0a1b2c3d")
    for number, minutes in ((1, 31), (2, 29), (3, 21))
)
BODY = '{"url":"https://example.org/a","depth":2,"title":"Größe \\u001b[31m"}'.encode()


def died(number: int, minutes: int, name: str, reason: str, error: str, **rest: Any) -> JobStatus:
    found = JobStatus(f"web:{ago(minutes * MINUTE + 500)}-{number}", "web", State.DEAD, kind=name, attempt=3,
                      reason=reason, error=error, died_ms=ago(minutes * MINUTE), body=BODY, place="dead")  # fmt: skip
    return msgspec.structs.replace(found, **rest)


DEAD = [
    died(0, 12, "pages.fetch", "exhausted", HISTORY[0].error, history=HISTORY,
         meta=Meta(generation=1, dedupe_key="page-1", headers={"tenant": "blue"})),
    died(1, 95, "mail.send", "permanent", "ValueError: no user '\x1b[2J' in " + "a very long text " * 9),
    died(0, 3000, "", "", "", foreign=True, attempt=0),
]  # fmt: skip
GROUPS = [
    Alike("web", "pages.fetch", "exhausted", "TimeoutError: still running after N s", "timeout", 1_038,
          ago(3 * HOUR), ago(2 * MINUTE)),
    Alike("mail", "mail.send", "permanent", "ValueError: no user '…' in " + "a very long text " * 9, "validation", 3,
          ago(26 * HOUR), ago(25 * HOUR)),
    Alike("web", "pages.parse", "crash_limit", "", "", 1, ago(HOUR), ago(HOUR)),
]  # fmt: skip
JOB = JobStatus(
    f"web:{ago(40 * MINUTE)}-3", "web", State.RUNNING, kind="pages.fetch", attempt=4, worker="web-1-4711-0a1b2c3d",
    silent_ms=2100, deliveries=1, place="stream", entry=f"{ago(2 * MINUTE)}-0", body=BODY, history=HISTORY,
    meta=Meta(traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
)  # fmt: skip
QUEUE = OneQueue(
    NOON_MS, WEB,
    [LimitStatus("rate", "pages.fetch", "", burst=20, interval_us=50_000, waiting=12_000),
     LimitStatus("concurrency", "", "tenant", places=4, by_operator=True, code="8")],
    [CronStatus("nightly", QueueKeys("sj", "web"), "every 3600",
                Definition("nightly", "pages.sweep", msgspec.Raw(b"{}"), "every 3600", "once"),
                Row(ago(MINUTE), 0, 7, 0, 0, "", "every 3600"), False, 2)],
    WORKERS[:3], {"stream": 5_662_310, "bodies": 40_960, "dead": 92_160},
)  # fmt: skip
REPORT = Report(NOON_MS, SERVER, [
    Finding(About.LATENCY, Level.OK, "0.2 ms"),
    Finding(About.EVICTION, Level.FAIL, "the server deletes whole queues when its memory is full (maxmemory-policy "
            "allkeys-lru)", "set maxmemory-policy noeviction there"),
    Finding(About.PERSISTENCE, Level.WARN, "append-only file, synced every second: a crash of the machine loses up to "
            "1 s", "set appendfsync always where that is too much"),
    Finding(About.SLOW_LOG, Level.UNKNOWN, "this user may not read it"),
    Finding(About.BACKLOG, Level.WARN, "queue web: 12,418 jobs waiting, and all its workers are quiet",
            "let them go on: streamjobs workers quiet NAME --undo"),
])  # fmt: skip

SCREENS: dict[str, tuple[Sequence[Any], int]] = {
    "stats --by kind": ([overview()], 0),
    "stats --by worker": ([overview(workers=Workers(NOON_MS, WORKERS))], 0),
    "dead list": ([DEAD, []], 0),
    "dead groups": ([GROUPS], 0),
    f"dead show {DEAD[0].id} --reveal": ([Examined(DEAD[0], "web:1764417000000-9")], 0),
    "workers list": ([Workers(NOON_MS, WORKERS)], 0),
    "queue show web": ([QUEUE], 0),
    f"job show {JOB.id} --reveal": ([JOB, [Wait("rate", "pages.fetch", "", "", 3)], ago(2 * MINUTE)], 0),
    "doctor": ([REPORT], 1),
}
"""By command line: what it is answered, and its exit code."""
