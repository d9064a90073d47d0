"""cron list, next, run, pause, resume: what operators see of crons, and do with them."""

import re
from collections.abc import Iterator

import msgspec
import pytest

from streamjobs.client import Connections
from streamjobs.core.cron import Cron, Every
from streamjobs.protocol import crons, leases
from streamjobs.protocol.calls import Command
from streamjobs.protocol.keys import QueueKeys
from tests.cli.cron_app import app
from tests.cli.support import Line, error_line

APP = "tests.cli.cron_app:app"
NIGHTLY, HOURLY = (app.registry.crons()[name] for name in ("nightly", "hourly"))


class Workers:
    """Workers that schedule crons, as the server sees them."""

    def __init__(self, line: Line) -> None:
        self._connections = Connections(line.url)
        self._line = line
        self._run = self._connections.sync().run

    def close(self) -> None:
        self._connections.close()

    def start(self, consumer: str, *known: Cron, queue: str = "reports") -> None:
        """Let a worker tell what it schedules; the queue is announced."""
        keys = QueueKeys(self._line.namespace, queue)
        self._run(Command(["SADD", f"{self._line.namespace}:queues", queue], int))
        self._run(leases.join(keys, 15_000))
        self._run(crons.plan(keys, consumer, "10", known))

    def stop(self, consumer: str) -> None:
        self._run(leases.retire(QueueKeys(self._line.namespace, "reports"), [consumer]))


@pytest.fixture
def workers(line: Line) -> Iterator[Workers]:
    workers = Workers(line)
    yield workers
    workers.close()


def names(line: Line, *words: str) -> list[str]:
    return [one["name"] for one in line.json("cron", "list", *words)["crons"]]


def test_list_shows_what_live_workers_schedule(line: Line, workers: Workers) -> None:
    workers.start("a", NIGHTLY, HOURLY)
    workers.start("b", NIGHTLY, HOURLY)

    hourly, nightly = line.json("cron", "list")["crons"]

    assert (nightly["queue"], nightly["kind"], nightly["args"]) == ("reports", "report", {"region": "eu"})
    assert (nightly["schedule"], nightly["catch_up"], nightly["jitter_s"]) == ("30 2 * * * Europe/Berlin", "all", 60.0)
    assert re.search(r"T0[01]:30:\d\d", nightly["next"])
    assert (nightly["last_slot"], nightly["last_job"], nightly["runs"], nightly["paused"]) == (None, None, 0, False)
    assert (hourly["schedule"], hourly["workers"]) == ("every 3600", 2)


def test_list_as_a_table(line: Line, workers: Workers) -> None:
    assert "no crons in namespace" in line("cron", "list").stderr
    workers.start("a", HOURLY)

    titles, row = line("cron", "list").stdout.splitlines()

    assert titles.split() == "NAME QUEUE SCHEDULE NEXT LAST LATE SKIP STATE".split()
    assert re.fullmatch(r"hourly +reports +every 3600 +\S+ +- +0 +0 +ok", row)
    assert max(map(len, (titles, row))) <= 80


def test_a_cron_that_is_gone_from_the_code_is_gone_from_the_list(line: Line, workers: Workers) -> None:
    workers.start("old", NIGHTLY, HOURLY)
    workers.start("new", HOURLY)
    assert names(line) == ["hourly", "nightly"]

    workers.stop("old")

    assert names(line) == ["hourly"]
    assert names(line, "--all") == ["hourly", "nightly"]
    workers.start("newer", HOURLY)
    [_, gone] = line.json("cron", "list", "--all")["crons"]
    assert (gone["name"], gone["kind"], gone["next"]) == ("nightly", None, None)
    assert "no worker of queue reports schedules it" in error_line(line("cron", "run", "nightly", exit=4))


def test_crons_of_a_queue_without_workers_are_listed_and_said_to_have_none(line: Line, workers: Workers) -> None:
    workers.start("a", HOURLY)
    workers.stop("a")

    assert line("cron", "list").stdout.splitlines()[1].endswith("no worker")
    [hourly] = line.json("cron", "list")["crons"]
    assert (hourly["workers"], hourly["next"]) == (0, None)


def test_several_versions_have_a_row_each(line: Line, workers: Workers) -> None:
    workers.start("a", HOURLY)
    workers.start("b", msgspec.structs.replace(HOURLY, schedule=Every(60)))

    assert [one["schedule"] for one in line.json("cron", "list")["crons"]] == ["every 3600", "every 60"]


def test_next_by_the_code_needs_no_server(line: Line) -> None:
    words = ("cron", "next", "nightly", "-A", APP, "-n", "3", "--after", "2026-03-28T00:00:00Z")

    assert line(*words).stdout.splitlines() == [
        "2026-03-28T02:30:00+01:00",
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]
    document = line.json(*words)
    assert document["slots"][1] == "2026-03-29T01:00:00.000Z"
    assert document["schedule"] == "30 2 * * * Europe/Berlin"


def test_next_by_live_workers_and_by_the_servers_clock(line: Line, workers: Workers) -> None:
    workers.start("a", HOURLY)

    by_workers = line.json("cron", "next", "hourly")
    by_code = line.json("cron", "next", "hourly", "-A", APP)

    assert len(by_workers["slots"]) == 5
    assert all(slot.endswith(":00:00.000Z") for slot in by_workers["slots"])
    assert by_code["schedule"] == by_workers["schedule"] == "every 3600"


def test_run_enqueues_the_job_now(line: Line, workers: Workers) -> None:
    workers.start("a", HOURLY)

    document = line.json("cron", "run", "hourly")
    job = line.json("job", "show", document["id"])

    assert (document["cron"], document["queue"]) == ("hourly", "reports")
    assert (job["state"], job["kind"], job["args"]) == ("waiting", "report", {"region": "us"})
    assert job["headers"] == {"cron": "hourly"}
    assert line("cron", "run", "hourly").stdout.startswith("reports:")


def test_run_is_refused_where_the_queue_is_full(line: Line, workers: Workers) -> None:
    workers.start("a", HOURLY)
    line("queue", "limit", "reports", "--max-waiting", "1")
    line("cron", "run", "hourly")

    refused = line("cron", "run", "hourly", exit=5)

    assert "queue reports is full, nothing was enqueued: 1 job may wait there" in error_line(refused)
    assert refused.stdout == ""
    assert line.json("stats", "reports")["queues"][0]["waiting"] == 1


def test_pause_and_resume(line: Line, workers: Workers) -> None:
    workers.start("a", HOURLY)

    assert line("cron", "pause", "hourly").stdout == "paused hourly of reports\n"
    [paused] = line.json("cron", "list")["crons"]
    assert (paused["paused"], paused["next"]) == (True, None)
    assert line.json("cron", "pause", "hourly")["paused"] is True
    assert line.json("cron", "resume", "hourly") == {
        "schema": "streamjobs.cron.pause", "version": 1, "cron": "hourly", "queue": "reports", "paused": False,
    }  # fmt: skip
    [resumed] = line.json("cron", "list")["crons"]
    assert (resumed["paused"], resumed["next"] is None) == (False, False)


@pytest.mark.parametrize("words", [("next",), ("run",), ("pause",), ("resume",)])
def test_a_cron_that_is_not_there(line: Line, workers: Workers, words: tuple[str, ...]) -> None:
    workers.start("a", HOURLY)

    assert "cron weekly: there is none in namespace" in error_line(line("cron", *words, "weekly", exit=4))
    said = error_line(line("cron", *words, "hourly", "-Q", "other", exit=4))
    assert "there is none in queue other" in said


def test_a_cron_that_is_not_in_the_code(line: Line) -> None:
    said = error_line(line("cron", "next", "weekly", "-A", APP, exit=4))

    assert said == f"cron weekly: there is none in {APP}; there are hourly, nightly"


def test_a_name_in_several_queues_needs_the_queue(line: Line, workers: Workers) -> None:
    workers.start("a", HOURLY)
    workers.start("b", HOURLY, queue="others")

    assert "in each of the queues others, reports" in error_line(line("cron", "pause", "hourly", exit=2))
    assert line("cron", "pause", "hourly", "-Q", "others").stdout == "paused hourly of others\n"


def test_a_zone_that_is_not_known_here_hides_nothing(line: Line, workers: Workers) -> None:
    workers.start("a", msgspec.structs.replace(HOURLY, schedule=_Elsewhere()))

    [one] = line.json("cron", "list")["crons"]

    assert (one["schedule"], one["next"]) == ("0 * * * * Mars/Olympus", None)
    assert "no such time zone" in error_line(line("cron", "next", "hourly", exit=2))


class _Elsewhere(Every):
    """A schedule whose text this machine cannot read."""

    def __init__(self) -> None:
        super().__init__(60)

    @property
    def text(self) -> str:
        return "0 * * * * Mars/Olympus"
