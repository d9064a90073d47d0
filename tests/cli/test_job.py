"""job list, show, wait, cancel, run-now, reschedule."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from streamjobs.client import Connections
from streamjobs.protocol import lanes, leases
from streamjobs.protocol.keys import QueueKeys
from tests.cli.schema import load, problems
from tests.cli.support import Line, error_line


def test_waiting_job(line: Line) -> None:
    job = line.enqueue("tests.add", "1")

    found = line.json("job", "show", job)

    assert (found["id"], found["state"], found["attempt"], found["worker"]) == (job, "waiting", 1, None)
    shown = line("job", "show", job).stdout
    assert '{"a":1,"b":0,"tags":null}' in shown
    assert "waiting" in shown


def test_scheduled_job_says_when(line: Line) -> None:
    job = line.enqueue("tests.add", "1", "--at", "2030-01-31T12:00:00+01:00")

    found = line.json("job", "show", job)

    assert (found["state"], found["due"]) == ("scheduled", "2030-01-31T11:00:00.000Z")
    assert "2030-01-31T11:00:00.000Z (in " in line("job", "show", job).stdout


def test_dead_job_says_why(line: Line) -> None:
    job = line.enqueue("tests.fail", "broken")
    line.work()

    found = line.json("job", "show", job)

    assert (found["state"], found["reason"], found["error"]) == ("dead", "exhausted", "ValueError: broken")
    assert "ValueError: broken" in line("job", "show", job).stdout


def test_done_job_is_finished(line: Line) -> None:
    job = line.enqueue("tests.add", "1")
    line.work()

    found = line.json("job", "show", job)

    assert (found["state"], found["kind"], found["args"]) == ("finished", None, None)
    assert "state     finished (done or cancelled: no result of it is kept)\n" in line("job", "show", job).stdout


def test_unknown_and_impossible_ids(line: Line) -> None:
    line.enqueue("tests.add", "1")

    assert "there is no such job" in error_line(line("job", "show", "math:99999999999999-0", exit=4))
    assert "job id 'x'" in error_line(line("job", "show", "x", exit=2))


def test_cancelled_jobs_do_not_run(line: Line) -> None:
    one, two = line.enqueue("tests.fail"), line.enqueue("tests.fail", "--delay", "1h")

    assert line("job", "cancel", one, two).stdout == f"cancelled {one}\ncancelled {two}\n"

    line.work()
    assert line.json("dead", "list")["jobs"] == []
    assert line.stats()["queues"][0]["totals"]["cancelled"] == 2


def test_cancel_goes_on_after_one_that_cannot_be(line: Line) -> None:
    job = line.enqueue("tests.fail")

    result = line("job", "cancel", "default:99999999999999-0", job, exit=4)

    assert result.stdout == f"cancelled {job}\n"
    assert "there is no such job" in error_line(result)
    assert "has ended already" in error_line(line("job", "cancel", job, exit=5))


def test_cancel_as_document(line: Line) -> None:
    job = line.enqueue("tests.fail")

    assert line.json("job", "cancel", job)["cancelled"] == [{"id": job, "was_running": False}]


def test_run_now_makes_delayed_jobs_due(line: Line) -> None:
    one, two = (line.enqueue("tests.fail", "--delay", delay) for delay in ("1h", "400d"))

    assert line("job", "run-now", one, two).stdout == f"runs now: {one}\nruns now: {two}\n"

    line.work()
    assert len(line.json("dead", "list")["jobs"]) == 2
    assert "is dead, not scheduled" in error_line(line("job", "run-now", one, exit=5))


def test_reschedule_goes_on_after_one_that_cannot_be(line: Line) -> None:
    waits, delayed = line.enqueue("tests.fail"), line.enqueue("tests.fail", "--delay", "1h")

    result = line("job", "reschedule", waits, delayed, "--at", "2030-01-31T12:00:00Z", exit=5)

    assert result.stdout == f"rescheduled {delayed}\n"
    assert f"job {waits} is waiting, not scheduled; nothing was changed" in error_line(result)
    assert line.json("job", "show", delayed)["due"] == "2030-01-31T12:00:00.000Z"
    assert line.json("job", "reschedule", delayed, "--delay", "1s")["rescheduled"] == [{"id": delayed}]


def test_reschedule_needs_a_time_that_can_be(line: Line) -> None:
    job = line.enqueue("tests.fail", "--delay", "1h")

    assert "Give --delay or --at" in error_line(line("job", "reschedule", job, exit=2))
    assert "delay=0" in error_line(line("job", "reschedule", job, "--delay", "0", exit=2))
    assert "10 years" in error_line(line("job", "reschedule", job, "--delay", "9999d", exit=2))
    assert "no time zone" in line("job", "reschedule", job, "--at", "2030-01-31T12:00:00", exit=2).stderr
    assert "there is no such job" in error_line(line("job", "run-now", "math:99999999999999-0", exit=4))


def test_list_has_every_state_and_says_which(line: Line) -> None:
    waiting = [line.enqueue("tests.fail"), line.enqueue("tests.fail", "x")]
    later = line.enqueue("tests.add", "1", "--delay", "1h")

    found = line.json("job", "list")

    assert [(one["id"], one["state"]) for one in found["jobs"]] == [
        *((one, "waiting") for one in waiting),
        (later, "scheduled"),
    ]
    assert (found["next"], found["looked_at"]) == (None, 3)
    shown = line("job", "list").stdout.splitlines()
    assert shown[0].split() == ["ID", "KIND", "STATE", "N", "ENQUEUED", "NOTE"]
    assert shown[1].split()[:4] == [waiting[0], "tests.fail", "waiting", "1"]
    assert "in 59m" in shown[3] or "in 1h00m" in shown[3]


def test_list_selects_and_goes_on_where_it_ended(line: Line) -> None:
    fails = [line.enqueue("tests.fail", str(n)) for n in range(3)]
    line.enqueue("tests.greet", "Ada")

    first = line("job", "list", "--kind", "tests.fail", "--limit", "2", "-Q", "default")

    assert [row.split()[0] for row in first.stdout.splitlines()[1:]] == fails[:2]
    place = first.stderr.split("--after ")[1].strip()
    rest = line.json("job", "list", "--kind", "tests.fail", "-Q", "default", "--after", place)
    assert [one["id"] for one in rest["jobs"]] == fails[2:]
    assert line.json("job", "list", "--state", "scheduled")["jobs"] == []
    assert line.json("job", "list", "--until", "1h")["jobs"] == []
    assert len(line.json("job", "list", "--since", "1h")["jobs"]) == 4


def test_list_fits_eighty_columns(line: Line) -> None:
    line.enqueue("tests.fail", "x" * 500, "--delay", "400d")
    line.enqueue("tests.fail", "x" * 500)

    assert max(map(len, line("job", "list").stdout.splitlines())) <= 80


def test_list_of_nothing_and_wrong_words(line: Line) -> None:
    assert line("job", "list").stderr == "no such jobs\n"
    line.enqueue("tests.fail")

    assert "queue nope: there is none" in error_line(line("job", "list", "-Q", "nope", exit=4))
    assert "is no place in a listing" in error_line(line("job", "list", "--after", "x", exit=2))
    assert "--state" in error_line(line("job", "list", "--state", "dead", exit=2))
    assert "use 1 to 1,000" in error_line(line("job", "list", "--limit", "0", exit=2))
    assert "--since" in error_line(line("job", "list", "--since", "yesterday", exit=2))


def test_show_tells_where_it_is_and_for_what_it_waits(line: Line) -> None:
    one, two = line.enqueue("tests.add", "1"), line.enqueue("tests.add", "1")
    line("queue", "limit", "math", "--concurrency", "1", "--kind", "tests.add", "--key", "a")
    park(line, one, two)

    found = line.json("job", "show", two)

    assert (found["state"], found["place"], found["worker"]) == ("waiting", "parked", None)
    assert found["waits_for"] == [{"limits": "concurrency", "kind": "tests.add", "key": "a", "value": "1", "before": 0}]
    assert "the concurrency of tests.add by a=1; 0 jobs before it" in line("job", "show", two).stdout
    running = line.json("job", "show", one)
    assert (running["state"], running["worker"], running["waits_for"]) == ("running", "w", [])
    assert 0 <= running["silent_s"] < 60
    assert running["started"] is None
    assert "heard of" in line("job", "show", one).stdout


def park(line: Line, *jobs: str) -> None:
    """Let a worker claim jobs of which only the first may start."""
    connections = Connections(line.url)
    keys = QueueKeys(line.namespace, "math")
    executor = connections.sync()
    executor.run(leases.join(keys, 15_000))
    executor.run(leases.read([keys.stream], "w", 10, None))
    locals_ = [one.partition(":")[2] for one in jobs]
    lane = "c:k:tests.add a 1"
    entrants = [lanes.Entrant(one.encode(), 1, lanes.order(one), [lane]) for one in locals_]
    executor.run(lanes.admit(keys, "w", {}, entrants))
    connections.close()


def test_wait_prints_the_result(line: Line) -> None:
    [row] = line.json(
        "enqueue", "--file", "-", stdin='{"kind":"tests.add","args":{"a":1,"b":2},"queue":"math","result_ttl":60}'
    )["jobs"]
    line.work()

    assert line("job", "wait", row["id"]).stdout == "3\n"
    document = line.json("job", "wait", row["id"])
    assert (document["state"], document["result"]) == ("done", 3)
    assert problems(document, load("result")) == []


def test_wait_for_a_job_without_a_result_says_that_it_has_ended(line: Line) -> None:
    job = line.enqueue("tests.add", "1")
    line.work()

    ended = line("job", "wait", job)

    assert (ended.stdout, "done or cancelled: no result of it is kept" in ended.stderr) == ("", True)
    assert line.json("job", "wait", job)["state"] == "finished"


def test_wait_ends_with_the_job(line: Line) -> None:
    """Also of a job whose result is not kept, of whose end nobody is told."""
    job = line.enqueue("tests.fail", "no luck", "--delay", "1s")
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(
            subprocess.run,
            [sys.executable, "-m", "streamjobs", "job", "wait", job, "--url", line.url, "--namespace", line.namespace],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        while not waiting.done():
            line.work()
        ended = waiting.result()

    assert ended.returncode == 1
    assert ended.stderr == f"error: job {job} is dead: exhausted: ValueError: no luck\n"


def test_wait_gives_up_in_time(line: Line) -> None:
    job = line.enqueue("tests.fail", "--delay", "1h")

    assert "has not ended within 0.1 s; it goes on" in error_line(
        line("job", "wait", job, "--timeout", "100ms", exit=1)
    )
    line("job", "cancel", job)
    assert "there is no such job" in error_line(line("job", "wait", "default:99999999999999-0", exit=4))


def test_a_job_of_a_kind_that_no_worker_knows_says_so(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    job = line("enqueue", "from.the.next.release", "-Q", "q").stdout.strip()
    line.work("-Q", "q")

    assert "parked     no worker knows kind from.the.next.release\n" in line("job", "show", job).stdout
    assert ": parked, no worker knows kind from.the.next.release\n" in line("job", "list").stdout
    [queue] = line.stats()["queues"]
    assert "unknown_kinds" in [reason["about"] for reason in queue["reasons"]]
