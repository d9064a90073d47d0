"""queue list, pause, resume."""

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
