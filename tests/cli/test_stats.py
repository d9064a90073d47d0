"""stats, queue list: what there is, for people and for programs."""

import re

from tests.cli.support import Line, error_line


def test_counts_per_state(line: Line) -> None:
    line("enqueue", "tests.greet", "--count", "3")
    line.enqueue("tests.add", "1", "--delay", "1h")

    document = line.json("stats")

    default, math = document["queues"]
    assert (default["queue"], default["waiting"], default["scheduled"]) == ("default", 3, 0)
    assert (math["queue"], math["waiting"], math["scheduled"]) == ("math", 0, 1)
    assert default["totals"] == {"enqueued": 3}
    assert (math["oldest_ready_s"], math["workers"], math["lease_s"]) == (0, 0, None)
    assert document["namespace"] == line.namespace


def test_server_is_named(line: Line) -> None:
    server = line.json("stats")["server"]

    assert server["engine"] in ("redis", "valkey")
    assert re.match(r"\d+\.\d+\.\d+", server["version"])
    assert server["eviction"] == "noeviction"
    assert server["used_bytes"] > 0


def test_done_and_failed_are_counted(line: Line) -> None:
    line.enqueue("tests.greet", "Ada")
    line.enqueue("tests.fail")
    line.work()

    [queue] = line.json("stats", "default")["queues"]

    assert (queue["done"], queue["failed"], queue["dead"], queue["lease_s"]) == (1, 1, 1, 15.0)


def test_table_marks_a_queue_without_worker(line: Line) -> None:
    line("enqueue", "tests.greet", "--count", "12418")

    heading, empty, titles, row = line("stats").stdout.splitlines()

    assert "noeviction" in heading
    assert empty == ""
    assert titles.split()[:3] == ["QUEUE", "WAITING", "RUN/SLOTS"]
    assert row.split()[:3] == ["default*", "12,418", "0/0"]
    assert max(map(len, (titles, row))) <= 80


def test_stats_changes_nothing(line: Line) -> None:
    line.enqueue("tests.greet", "Ada")
    before = line.json("stats")["queues"]

    after = line.json("stats")["queues"]

    assert [{**queue, "oldest_ready_s": 0} for queue in before] == [{**queue, "oldest_ready_s": 0} for queue in after]


def test_no_queues_yet(line: Line) -> None:
    result = line("stats")

    assert len(result.stdout.splitlines()) == 2
    assert "no queues in namespace" in result.stderr
    assert line.json("stats")["queues"] == []


def test_queue_that_is_not_there(line: Line) -> None:
    line.enqueue("tests.greet", "Ada")

    assert "queue nowhere: there is none" in error_line(line("stats", "nowhere", exit=4))
    assert error_line(line("stats", "a b", exit=2))


def test_queue_list(line: Line) -> None:
    assert line("queue", "list").stdout == ""
    line.enqueue("tests.greet", "Ada")
    line.enqueue("tests.add", "1")

    assert line("queue", "list").stdout == "default\nmath\n"
    assert line.json("queue", "list")["queues"] == ["default", "math"]
