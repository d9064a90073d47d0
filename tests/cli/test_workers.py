"""workers list, show, quiet, stop, prune."""

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterator

import pytest

from streamjobs import StreamJobs, Worker
from streamjobs.client import Connections
from streamjobs.protocol import intake, leases, upkeep, workers
from streamjobs.protocol.keys import QueueKeys
from streamjobs.protocol.workers import Note, Running
from tests.cli.schema import load, problems
from tests.cli.support import Line, error_line
from tests.worker.support import FAST


class Crew:
    """Workers that nobody runs: they tell what the test says."""

    def __init__(self, line: Line) -> None:
        self._connections = Connections(line.url)
        self._executor = self._connections.sync()
        self._namespace = line.namespace
        self._executor.run(intake.announce(line.namespace, ["web"]))
        self._executor.run(leases.join(QueueKeys(line.namespace, "web"), 15_000))

    def meet(self, name: str, *, ago_ms: int = 0, state: str = "running", jobs: tuple[Running, ...] = ()) -> None:
        keys = QueueKeys(self._namespace, "web")
        at_ms = self._executor.run(upkeep.server_time()) - ago_ms
        self._executor.run(upkeep.promote(keys, name, rung=False, note="8", room=0, clock=str(at_ms)))
        jobs = tuple(Running(one.id, one.kind, at_ms - one.started_ms) for one in jobs)
        note = Note("host", 7, 0, "0.1.0", at_ms - 60_000, at_ms, state, queues=("web",), serves=1, slots=8,
                    running=len(jobs), jobs=jobs, rss_bytes=90_000_000, lag_ms=12)  # fmt: skip
        self._executor.run(workers.report(self._namespace, name, note))

    def close(self) -> None:
        self._connections.close()


@pytest.fixture
def crew(line: Line) -> Iterator[Crew]:
    crew = Crew(line)
    yield crew
    crew.close()


ONE = "a-very-long-host-name-of-a-container-1-123456-a1b2c3d4"


def test_list_names_each_and_fits(line: Line, crew: Crew) -> None:
    crew.meet(ONE, jobs=(Running("web:1-0", "pages.fetch", 4_200),))
    crew.meet("dead-1-11111111", ago_ms=65_000)

    shown = line("workers", "list").stdout.splitlines()

    assert shown[0].split() == "NAME HOST STATE RUN/SLOTS OLDEST RSS LAG SEEN QUEUES".split()
    assert [shown[1].split()[n] for n in (0, 2, 3, 4, 5, 6)] == [
        "a1b2c3d4", "running", "1/8", "4.2s", "85.8M", "0.0s",
    ]  # fmt: skip
    assert ("gone" in shown[2], "1m05s" in shown[2]) == (True, True)
    assert max(map(len, shown)) <= 80
    assert line.json("workers", "list", "-Q", "web")["workers"][0]["jobs"][0]["age_s"] == 4.2


def test_show_has_the_jobs_that_run(line: Line, crew: Crew) -> None:
    crew.meet(ONE, state="quiet", jobs=tuple(Running(f"web:{n}-0", "pages.fetch", 90_000 - n) for n in range(3)))

    shown = line("workers", "show", "a1b2c3d4").stdout

    assert ["state", "quiet"] in [row.split() for row in shown.splitlines()]
    assert "3 of 8 slots" in shown
    assert re.search(r"web:0-0 +pages\.fetch +1m30s", shown)
    assert line.json("workers", "show", ONE)["worker"]["name"] == ONE


def test_stats_by_worker_has_what_runs_for_longest_first(line: Line, crew: Crew) -> None:
    crew.meet(ONE, jobs=tuple(Running(f"web:{n}-0", "pages.fetch", 1000 * n) for n in range(1, 21)))
    crew.meet("b", state="quiet", jobs=(Running("web:99-0", "pages.parse", 90_000),))
    crew.meet("dead-1-11111111", ago_ms=65_000, jobs=(Running("web:98-0", "pages.parse", 99_000),))

    shown = line("stats", "--by", "worker").stdout.splitlines()
    document = line.stats("web", "--by", "worker")

    assert shown[2].split() == "NAME HOST VERSION STATE RUN/SLOTS RSS LAG SEEN QUEUES".split()
    assert [row.split()[0] for row in shown[3:6]] == ["a1b2c3d4", "b", "11111111"]
    assert [shown[3].split()[n] for n in (0, 2, 3, 4, 5, 6)] == [
        "a1b2c3d4", "0.1.0", "running", "20/8", "85.8M", "0.0s",
    ]  # fmt: skip
    # What a dead one ran, it runs no more.
    assert shown[7].split() == ["NAME", "ID", "KIND", "RUNS", "FOR"]
    assert shown[8].split() == ["b", "web:99-0", "pages.parse", "1m30s"]
    assert shown[9].split() == ["a1b2c3d4", "web:20-0", "pages.fetch", "20s"]
    assert shown[28] == "and 1 job more"
    assert max(map(len, shown[2:])) <= 80
    assert [one["name"] for one in document["workers"]] == [ONE, "b", "dead-1-11111111"]
    assert "workers" not in line.stats("web")


def test_stats_by_worker_without_any(line: Line) -> None:
    line.enqueue("tests.greet", "Ada")

    shown = line("stats", "--by", "worker", exit=1).stdout.splitlines()

    assert shown[2] == "no workers"
    assert "no worker is subscribed" in shown[4]


def test_nobody_and_wrong_words(line: Line, crew: Crew) -> None:
    assert "no workers in namespace" in line("workers", "list").stderr
    assert "no live workers" in line("workers", "quiet", "--all").stderr
    assert "worker x: there is none" in error_line(line("workers", "show", "x", exit=4))
    assert "queue nope: there is none" in error_line(line("workers", "list", "-Q", "nope", exit=4))
    assert "Name them" in error_line(line("workers", "stop", exit=2))
    assert "Name them" in error_line(line("workers", "stop", "x", "--all", exit=2))
    assert "worker x: there is none" in error_line(line("workers", "quiet", "x", exit=4))
    assert line("workers", "prune").stderr == "no dead workers\n"


def test_an_order_to_all_asks_first(line: Line, crew: Crew) -> None:
    crew.meet(ONE)
    crew.meet("b")

    said = error_line(line("workers", "stop", "--all", exit=5))

    assert said.startswith("this would order 2 workers to stop: add --yes to do it")
    assert [one["order"] for one in line.json("workers", "list")["workers"]] == [None, None]


def test_who_is_gone_or_deaf_is_said(line: Line, crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjobs.operate.workers.WITHIN_S", 0.1)
    crew.meet("dead", ago_ms=60_000)
    crew.meet("deaf")

    assert "worker dead is gone" in error_line(line("workers", "quiet", "dead", "deaf", exit=5))
    assert "worker deaf has not taken the order in time" in error_line(line("workers", "quiet", "deaf", exit=1))
    assert "quiet (quiet)" not in line("workers", "list").stdout
    assert "running (quiet)" in line("workers", "list").stdout


def test_prune_says_what_it_does(line: Line, crew: Crew) -> None:
    crew.meet("dead", ago_ms=60_000)

    assert line("workers", "prune", "--dry-run").stdout == "would forget 1 dead worker of web\n"
    assert line("workers", "prune").stdout == "forgot 1 dead worker of web\n"
    assert line.json("workers", "prune")["queues"] == [{"queue": "web", "forgotten": 0, "holding": 0}]


def in_a_thread(app: StreamJobs, body: Callable[[Worker], None]) -> None:
    """Run a worker in another thread's event loop while the body goes on here."""
    found: list[Worker] = []
    ready = threading.Event()

    async def work() -> None:
        worker = app.make_worker(["web"], FAST)
        running = asyncio.create_task(worker.run())
        await worker.ready.wait()
        found.append(worker)
        ready.set()
        await running
        await app.aclose()

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    try:
        assert ready.wait(20)
        body(found[0])
    finally:
        found[0].stop()
        thread.join()


def test_a_worker_takes_orders(line: Line, crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjobs.worker.report.EVERY_S", 0.05)
    app = StreamJobs(line.url, namespace=line.namespace)
    app.job(name="none", queue="web")(lambda: None)
    go_on = threading.Event()

    @app.job(name="waits", queue="web")
    def waits() -> None:
        go_on.wait(20)

    documents = []

    def body(worker: Worker) -> None:
        name = worker.consumer
        while not line.json("workers", "list")["workers"]:
            pass
        documents.append(line.json("workers", "list"))
        documents.append(line.json("workers", "show", name))
        job = app.send_sync("waits", queue="web").id
        while not line.json("job", "show", job)["started"]:
            pass
        assert re.search(r"started +20.* \(\ds ago\)", line("job", "show", job).stdout)
        go_on.set()
        assert line("workers", "quiet", name).stdout == f"{name} is quiet\n"
        assert worker.state == "quiet"
        assert line("workers", "quiet", name, "--undo").stdout == f"{name} is running\n"
        assert worker.state == "running"
        documents.append(line.json("workers", "stop", "--all", "--yes"))

    in_a_thread(app, body)

    assert documents[-1]["workers"][0]["taken"] is True
    documents.append(line.json("workers", "prune"))
    for document in documents:
        assert problems(document, load(document["schema"])) == [], json.dumps(document)
