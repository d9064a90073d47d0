"""queue purge, queue delete."""

import pytest

from tests.cli.support import Line, error_line


@pytest.fixture
def full(line: Line) -> Line:
    for n in range(3):
        line.enqueue("tests.add", str(n))
    line.enqueue("tests.refuse", "1")
    line.enqueue("tests.add", "1", "--delay", "1h")
    return line


def counts(line: Line) -> dict[str, int]:
    [queue] = line.stats("math")["queues"]
    return {name: queue[name] for name in ("waiting", "scheduled", "dead")}


def test_purge_says_first_and_then_does_it(full: Line) -> None:
    assert full("queue", "purge", "math", "--dry-run").stdout == "would purge 5 jobs of math\n"
    refused = error_line(full("queue", "purge", "math", exit=5))
    assert refused == "this would purge 5 jobs of math: add --yes to do it, or --dry-run to see it; nothing was changed"
    assert counts(full)["waiting"] == 4

    assert full("queue", "purge", "math", "--yes").stdout == "purged 5 jobs of math\n"

    assert counts(full) == {"waiting": 0, "scheduled": 0, "dead": 0}
    assert full("queue", "purge", "math").stdout == "nothing to purge in math\n"
    assert full.stats("math")["queues"][0]["totals"]["cancelled"] == 5


def test_purge_takes_what_is_selected(full: Line) -> None:
    assert full("queue", "purge", "math", "--kind", "tests.refuse", "--dry-run").stdout == "would purge 1 job of math\n"
    assert full("queue", "purge", "math", "--since", "1h", "--dry-run").stdout == "would purge 5 jobs of math\n"
    assert full("queue", "purge", "math", "--until", "1h", "--dry-run").stdout == "nothing to purge in math\n"
    assert full("queue", "purge", "math", "--state", "scheduled", "--yes").stdout == "purged 1 job of math\n"
    assert full.json("queue", "purge", "math", "--limit", "2", "--yes")["jobs"] == 2
    assert full.json("queue", "purge", "math", "--limit", "1", "--dry-run") == {
        "schema": "streamjobs.queue.purge", "version": 1, "queue": "math", "dry_run": True, "jobs": 1,
        "left_running": 0,
    }  # fmt: skip
    assert counts(full) == {"waiting": 2, "scheduled": 0, "dead": 0}


def test_purge_leaves_dead_jobs(full: Line) -> None:
    full.work("-Q", "math")

    full("queue", "purge", "math", "--yes")

    assert counts(full)["dead"] == 1


@pytest.mark.parametrize("command", ["purge", "delete"])
def test_wrong_words(full: Line, command: str) -> None:
    assert "queue nope: there is none" in error_line(full("queue", command, "nope", "--yes", exit=4))
    assert "use 1 to 64 letters" in error_line(full("queue", command, "{a}", exit=2))
    assert "Missing argument 'QUEUE'" in error_line(full("queue", command, exit=2))


def test_wrong_selections(full: Line) -> None:
    assert "'running' is not one of" in error_line(full("queue", "purge", "math", "--state", "running", exit=2))
    assert "--since" in error_line(full("queue", "purge", "math", "--since", "x", exit=2))
    assert "use 1 or more" in error_line(full("queue", "purge", "math", "--limit", "0", exit=2))
    assert counts(full)["waiting"] == 4


def test_delete_says_what_goes_and_refuses_what_is_in_use(full: Line) -> None:
    full("queue", "limit", "math", "--concurrency", "5")

    shown = full("queue", "delete", "math", "--dry-run").stdout
    assert shown == (
        "would delete queue math with 4 waiting jobs, 1 scheduled job, 1 run-time limit (that needs --force)\n"
    )
    refused = error_line(full("queue", "delete", "math", "--yes", exit=5))
    assert "queue math with 4 waiting jobs, 1 scheduled job, 1 run-time limit: not deleted" in refused
    assert "add --yes" in error_line(full("queue", "delete", "math", "--force", exit=5))
    assert counts(full)["waiting"] == 4

    assert full("queue", "delete", "math", "--force", "--yes").stdout == "deleted math\n"

    assert full.json("queue", "list")["queues"] == []
    assert "there is none" in error_line(full("queue", "delete", "math", "--yes", exit=4))


def test_an_empty_queue_is_deleted_and_lives_again(full: Line) -> None:
    full("queue", "purge", "math", "--yes")

    document = full.json("queue", "delete", "math", "--yes")

    assert (document["deleted"], document["waiting"], document["workers"]) == (True, 0, 0)
    full.enqueue("tests.add", "1")
    full.work()
    assert full.stats("math")["queues"][0]["totals"] == {"done": 1, "enqueued": 1}
