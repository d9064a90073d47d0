"""queue list, show, pause, resume."""

from streamjobs.client import Connections
from streamjobs.protocol.calls import Command
from tests.cli.support import Line, error_line


def test_nothing_of_a_paused_queue_runs_and_stats_says_so(line: Line) -> None:
    line.enqueue("tests.add", "1")

    assert line("queue", "pause", "math").stdout == "paused math\n"

    line.work()
    [queue] = line.stats("math")["queues"]
    assert (queue["waiting"], queue["paused"]) == (1, True)
    assert "paused (streamjobs queue resume math)" in line("stats", exit=1).stdout

    assert line("queue", "resume", "math").stdout == "resumed math\n"

    line.work()
    [queue] = line.stats("math")["queues"]
    assert (queue["waiting"], queue["paused"], queue["done"]) == (0, False, 1)


def test_age_of_the_oldest_ready_job_is_that_of_one_that_was_not_delivered(line: Line) -> None:
    line.enqueue("tests.add", "1")
    line.work()
    line("queue", "pause", "math")

    assert line.stats("math")["queues"][0]["oldest_ready_s"] == 0


def test_repeated_it_says_so(line: Line) -> None:
    line.enqueue("tests.add", "1")

    assert line("queue", "resume", "math").stdout == "math was not paused\n"
    line("queue", "pause", "math")
    assert line("queue", "pause", "math").stdout == "math was paused already\n"


def test_an_unknown_queue_is_named_and_the_others_are_paused(line: Line) -> None:
    line.enqueue("tests.add", "1")

    result = line("queue", "pause", "nope", "math", exit=4)

    assert "queue nope: there is none in namespace" in error_line(result)
    assert result.stdout == "paused math\n"


def test_show_has_it_all_on_one_screen(line: Line) -> None:
    line.enqueue("tests.add", "1")
    line.enqueue("tests.add", "1", "--delay", "1h")
    line("queue", "limit", "math", "--concurrency", "5", "--rate", "100/s")

    shown = line("queue", "show", "math").stdout

    rows = [row.split() for row in shown.splitlines()]
    assert ["state", "open,", "but", "no", "worker", "is", "subscribed"] in rows
    assert ["scheduled", "1"] in rows
    assert ["concurrency", "all", "5", "operator", "0"] in rows
    assert any(row[:1] == ["stream"] for row in rows)
    assert max(map(len, shown.splitlines())) <= 80
    found = line.json("queue", "show", "math")
    assert found["memory_bytes"] == sum(found["memory"].values()) > 0
    assert (found["waiting"], found["scheduled"], found["totals"]) == (1, 1, {"enqueued": 2})
    assert "there is none" in error_line(line("queue", "show", "nope", exit=4))


def test_show_without_the_right_to_ask_for_memory(line: Line) -> None:
    line.enqueue("tests.add", "1")
    connections = Connections(line.url)
    rules = ["reset", "on", ">pw", "~*", "resetchannels", "+@all", "-memory"]
    connections.sync().run(Command(["ACL", "SETUSER", line.namespace, *rules], bool))
    limited = Line(line.url.replace("unix://", f"unix://{line.namespace}:pw@"), line.namespace)

    assert limited.json("queue", "show", "math")["memory"] is None
    assert "memory" not in limited("queue", "show", "math").stdout

    connections.sync().run(Command(["ACL", "DELUSER", line.namespace], bool))
    connections.close()
