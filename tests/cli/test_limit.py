"""`streamjobs queue limit`: shows limits, and changes them at run time."""

import pytest

from tests.cli.support import Line, error_line


@pytest.fixture
def queue(line: Line) -> str:
    line.enqueue("add", "1")
    return "math"


def test_a_queue_without_limits_says_so(line: Line, queue: str) -> None:
    assert "has no limits" in line("queue", "limit", queue).stderr


def test_limits_are_set_and_reset(line: Line, queue: str) -> None:
    line("queue", "limit", queue, "--rate", "100/s", "--concurrency", "20")
    line("queue", "limit", queue, "--rate", "5/m", "--burst", "3", "--kind", "tests.add", "--key", "a")

    shown = [row.split() for row in line("queue", "limit", queue).stdout.splitlines()[1:]]
    assert shown == [
        ["concurrency", "all", "20", "operator", "0"],
        ["rate", "tests.add", "a", "0.0833333/s,", "burst", "3", "operator", "0"],
        ["rate", "all", "100/s,", "burst", "20", "operator", "0"],
    ]

    line("queue", "limit", queue, "--concurrency", "off")
    line("queue", "limit", queue, "--reset", "--kind", "tests.add", "--key", "a")
    assert [(one["limits"], one["off"]) for one in line.json("queue", "limit", queue)["limits"]] == [
        ("concurrency", True),
        ("rate", False),
    ]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--rate", "fast"], "is not a rate"),
        (["--rate", "0/s"], "is not a rate: use 1 or more"),
        (["--rate", "100/s", "--burst", "1"], "use 10 or more"),
        (["--burst", "5"], "--burst goes with a --rate"),
        (["--concurrency", "0"], "use 1 or more"),
        (["--concurrency", "1", "--reset"], "give it no rate and no concurrency"),
        (["--concurrency", "1", "--key", "a"], "name an argument of a kind"),
        (["--kind", "tests.add"], "go with --rate"),
    ],
)
def test_what_makes_no_limit_is_refused(line: Line, queue: str, options: list[str], says: str) -> None:
    assert says in error_line(line("queue", "limit", queue, *options, exit=2))


def test_a_queue_that_is_not_there_is_not_limited(line: Line) -> None:
    assert "there is none" in error_line(line("queue", "limit", "nothing", "--concurrency", "1", exit=4))


def test_how_many_dead_jobs_are_kept_is_set_and_reset(line: Line, queue: str) -> None:
    line("queue", "limit", queue, "--keep-dead", "30d")
    shown = line("queue", "limit", queue).stdout.splitlines()[1]
    assert shown.split() == ["keep_dead", "all", "30", "days,", "0:00:00", "operator", "0"]

    line("queue", "limit", queue, "--keep-dead", "10000")
    [one] = line.json("queue", "limit", queue)["limits"]
    assert (one["limits"], one["places"], one["age_ms"], one["off"]) == ("keep_dead", 10_000, 0, False)

    line("queue", "limit", queue, "--keep-dead", "off")
    assert line.json("queue", "limit", queue)["limits"][0]["off"]
    assert "has no limits" in line("queue", "limit", queue, "--reset").stderr


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("0", "use 1 or more"),
        ("-1", "--keep-dead"),
        ("30x", "use a number of jobs, a duration with its unit such as 30d, or off"),
        ("d", "use a number of jobs"),
        ("1.5", "'1.5' is not a whole number"),
        ("10s", "keep_dead=10 s: must be from 60 s"),
        ("9" * 400 + "d", "use a number of jobs"),
        ("10000000000", "keep_dead"),
    ],
)
def test_what_cannot_be_kept_is_refused(line: Line, queue: str, value: str, says: str) -> None:
    assert says in error_line(line("queue", "limit", queue, "--keep-dead", value, exit=2))
    assert "has no limits" in line("queue", "limit", queue).stderr


def test_a_maximum_is_set_lifted_and_reset(line: Line, queue: str) -> None:
    line("queue", "limit", queue, "--max-waiting", "1")

    assert "queue math is full" in error_line(line("enqueue", "tests.add", "-Q", queue, "--arg", "a=1", exit=5))
    shown = [row.split() for row in line("queue", "limit", queue).stdout.splitlines()[1:]]
    assert shown == [["max_waiting", "all", "1", "operator", "1"]]

    line("queue", "limit", queue, "--max-waiting", "off")
    line("enqueue", "tests.add", "-Q", queue, "--arg", "a=1")
    [one] = line.json("queue", "limit", queue)["limits"]
    assert (one["limits"], one["off"], one["waiting"]) == ("max_waiting", True, 2)

    assert "has no limits" in line("queue", "limit", queue, "--reset").stderr
    assert "for a whole queue" in error_line(
        line("queue", "limit", queue, "--kind", "tests.add", "--max-waiting", "1", exit=2)
    )


def test_a_kind_or_a_key_that_nobody_knows_gets_a_note(line: Line) -> None:
    line.enqueue("tests.add", "1")
    [queue] = line.json("queue", "list")["queues"]

    assert line("queue", "limit", queue, "--kind", "tests.add", "--rate", "5/s").stderr == ""
    said = line("queue", "limit", queue, "--kind", "tests.ad", "--key", "a", "--rate", "5/s").stderr
    assert f"no job of kind tests.ad was counted in queue {queue} within 24h" in said
    assert "no code limits by a: a kind without an argument of that name has no limit by it\n" in said


def test_a_reset_says_what_stays(line: Line, queue: str) -> None:
    line("queue", "limit", queue, "--kind", "tests.add", "--key", "a", "--rate", "5/s")
    line("queue", "limit", queue, "--rate", "5/s")

    said = line("queue", "limit", queue, "--reset").stderr

    again = f"streamjobs queue limit {queue} --reset --kind tests.add --key a"
    assert said == f"that of kind tests.add stays: {again}\n"
    assert line(*again.split()[1:]).stderr == f"queue {queue} has no limits\n"
