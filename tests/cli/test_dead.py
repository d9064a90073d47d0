"""dead: what died is listed, grouped, shown, replayed and purged; nothing is touched without a word."""

import re

import pytest

from streamjobs.cli.selection import named
from streamjobs.client import Connections
from streamjobs.core import failpoints
from streamjobs.operate import batches, scan
from streamjobs.protocol.calls import Command
from tests.cli.support import Line, error_line


@pytest.fixture
def died(line: Line) -> Line:
    """A command line whose queues hold 3 dead of one kind and 2 of another."""
    line.bury("user 1", "user 2", "user 3")
    return line


def ids(line: Line, *words: str) -> list[str]:
    return [job["id"] for job in line.dead(*words)]


def test_list_shows_the_newest_first(died: Line) -> None:
    jobs = died.json("dead", "list")["jobs"]

    assert [job["died"] for job in jobs] == sorted((job["died"] for job in jobs), reverse=True)
    assert {(job["kind"], job["reason"], job["attempts"]) for job in jobs} == {
        ("tests.fail", "exhausted", 1),
        ("tests.refuse", "permanent", 1),
    }


def test_list_goes_on_where_the_last_one_ended(died: Line) -> None:
    whole = ids(died)
    found: list[str] = []
    after: list[str] = []
    for _ in range(len(whole)):
        page = died.json("dead", "list", "--limit", "2", *after)
        found += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        after = ["--after", page["next"]]

    assert found == whole
    shown = died("dead", "list", "--limit", "2")
    assert len(shown.stdout.splitlines()) == 3
    assert re.fullmatch(r"there are more: --after \d+-\d+@\w+\n", shown.stderr)
    rest = died("dead", "list", *shown.stderr.split()[3:])
    assert (len(rest.stdout.splitlines()), rest.stderr) == (4, "")


def test_list_stops_at_100_without_a_limit(line: Line) -> None:
    line("enqueue", "tests.fail", "--count", "103")
    line.work()

    first = line.json("dead", "list")

    assert len(first["jobs"]) == 100
    assert len(line.json("dead", "list", "--after", first["next"])["jobs"]) == 3
    assert len(ids(line, "--limit", "1000")) == 103


def test_list_is_a_table_for_people(died: Line) -> None:
    shown = died("dead", "list", "-Q", "math").stdout.splitlines()

    assert shown[0].split() == ["ID", "KIND", "REASON", "N", "DIED", "ERROR"]
    assert len(shown) == 3
    assert "Permanent: refused" in shown[1]
    assert max(map(len, shown)) <= 80


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ([], 5),
        (["-Q", "math"], 2),
        (["-Q", "math,default"], 5),
        (["--kind", "tests.fail"], 3),
        (["--kind", "tests.fail", "--kind", "tests.refuse"], 5),
        (["--reason", "permanent"], 2),
        (["--error", "ValueError"], 3),
        (["--error", "user 2"], 1),
        (["--error", "ValueError: user N"], 3),
        (["--class", "validation"], 3),
        (["--class", "validation", "--class", "bug"], 3),
        (["--class", "no such"], 0),
        (["--where", "text=user 2"], 1),
        (["--where", "n=2"], 1),
        (["--where", "n=2", "--where", "text=x"], 0),
        (["--where", "n="], 0),
        (["--since", "1h"], 5),
        (["--since", "9" * 400], 5),
        (["--since", "0001-01-01T00:00:00Z"], 5),
        (["--until", "9" * 400], 0),
        (["--until", "0001-01-01T00:00:00Z"], 0),
        (["--until", "1970-01-01T00:00:00Z"], 0),
        (["--since", "2100-01-01T00:00:00Z"], 0),
        (["--until", "1h"], 0),
        (["--until", "2100-01-01T00:00:00Z"], 5),
        (["--limit", "4"], 4),
        (["--kind", "tests.fail", "--error", "refused"], 0),
    ],
)
def test_selections(died: Line, words: list[str], count: int) -> None:
    assert len(ids(died, *words)) == count


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--reason", "bad"], 2, "--reason"),
        (["--since", "yesterday"], 2, "--since"),
        (["--id", "nonsense"], 2, "job id 'nonsense'"),
        (["-Q", "a b"], 2, "queue 'a b'"),
        (["-Q", "nowhere"], 4, "queue nowhere"),
        (["--limit", "-1"], 2, "--limit"),
        (["--limit", "0"], 2, "0: use 1 or more"),
        (["-Q", "math", "--id", "default:1-0"], 2, "not of the queue"),
        (["--id", "math:1-0", "--limit", "1"], 2, "leave out --limit"),
        (["--id", "math:1-0", "--after", "1-0@math"], 2, "leave out --limit and --after"),
        (["--id", "math:99999999999999-0"], 4, "no such job"),
        (["--kind", ""], 2, "it is empty"),
        (["--error", ""], 2, "it is empty; leave the option out, or give it a value"),
        (["--class", ""], 2, "it is empty"),
        (["--after", ""], 2, "it is empty"),
        (["--where", "n"], 2, "'n': expected NAME=VALUE"),
        (["--where", "=2"], 2, "'=2': expected NAME=VALUE"),
        (["--since", "1h", "--until", "2h"], 2, "--since is later than --until"),
        (["--since", "2030-01-31"], 2, "has no time zone"),
        (["--until", "-5"], 2, "--until"),
        (["--after", "there"], 2, "'there' is no place in a list"),
        (["--after", "1-0"], 2, "'1-0' is no place in a list"),
        (["--after", "1-0;FLUSHALL@math"], 2, "is no place in a list"),
    ],
)
def test_bad_selections(died: Line, words: list[str], code: int, said: str) -> None:
    assert said in error_line(died("dead", "list", *words, exit=code))


def test_groups_say_what_died_alike(died: Line) -> None:
    groups = died.json("dead", "groups")["groups"]

    assert [(g["count"], g["queue"], g["kind"], g["reason"], g["error_type"]) for g in groups] == [
        (3, "default", "tests.fail", "exhausted", "ValueError"),
        (2, "math", "tests.refuse", "permanent", "Permanent"),
    ]
    assert [group["error"] for group in groups] == ["ValueError: user N", "Permanent: refused N"]
    assert [group["newest"] for group in groups] == [ids(died, "--limit", "1", "-Q", q)[0] for q in ("default", "math")]
    shown = died("dead", "groups", "-Q", "default").stdout
    assert "ValueError (validation): user N" in shown
    shown = died("dead", "groups").stdout
    assert shown.splitlines()[0].split() == ["COUNT", "QUEUE", "KIND", "REASON", "ERROR", "FIRST", "LAST"]


def test_show_has_arguments_and_history(died: Line) -> None:
    [job] = ids(died, "--error", "user 2")

    found = died.json("dead", "show", job)

    assert (found["args"], found["replayable"], found["why"]) == ({"text": "user 2"}, True, None)
    assert [attempt["error"] for attempt in found["history"]] == ["ValueError: user 2"]
    shown = died("dead", "show", job).stdout
    assert '{"text":"user 2"}' in shown
    assert "replayable  yes\n" in shown


def test_replay_without_yes_is_refused_off_a_terminal(died: Line) -> None:
    said = error_line(died("dead", "replay", exit=5))

    assert "replay 5 jobs of default, math" in said
    assert "--yes" in said
    assert len(ids(died)) == 5


def test_dry_run_says_what_would_be_done(died: Line) -> None:
    said = died("dead", "replay", "--error", "ValueError", "--dry-run").stdout

    assert re.sub(r"\d+s ago( to 0s ago)?", "0s ago", said) == (
        "would replay 3 jobs of default, died 0s ago; 2 skipped: other error\n"
    )
    assert died.json("dead", "replay", "--dry-run") == {
        "schema": "streamjobs.dead.replay",
        "version": 1,
        "dry_run": True,
        "jobs": 5,
        "conflicts": [],
        "gone": 0,
        "left": [],
    }
    assert len(ids(died)) == 5


def test_replayed_jobs_run_again_under_their_ids(died: Line) -> None:
    before = ids(died, "--kind", "tests.fail")

    assert died("dead", "replay", "--kind", "tests.fail", "--yes").stdout.startswith("replayed 3 jobs of ")

    assert len(ids(died)) == 2
    waiting = died.json("job", "show", before[0])
    assert (waiting["state"], waiting["attempt"], waiting["generation"]) == ("waiting", 1, 1)
    died.work()
    assert sorted(ids(died, "--kind", "tests.fail")) == sorted(before)
    again = died.json("dead", "show", before[0])
    assert (again["attempts"], again["generation"], len(again["history"])) == (1, 1, 2)


def test_replay_of_one_job(died: Line) -> None:
    first, second, *_ = ids(died)

    died("dead", "replay", "--id", first, "--id", second, "--yes")

    assert len(ids(died)) == 3


def test_replay_of_a_job_that_is_not_dead_is_refused(line: Line) -> None:
    job = line.enqueue("tests.add", "1")

    assert "is not dead but waiting" in error_line(line("dead", "replay", "--id", job, "--yes", exit=5))
    assert line("dead", "replay", "--id", "math:99999999999999-0", "--yes", exit=4)


def test_case_E3_replay_says_who_holds_the_key(line: Line) -> None:
    job = line.enqueue("tests.fail", "x", "--dedupe-key", "k")
    line.work()
    holder = line.enqueue("tests.fail", "y", "--dedupe-key", "k")

    result = line("dead", "replay", "--yes", exit=5)

    assert f"{job} is left dead: {holder} holds its dedupe key" in result.stderr
    assert ids(line) == [job]
    assert line.json("dead", "replay", "--yes", exit=5)["conflicts"] == [{"id": job, "held_by": holder}]
    shown = line.json("dead", "show", job)
    assert (shown["replayable"], shown["dedupe_holder"]) == (False, holder)


def test_purged_jobs_are_gone(died: Line) -> None:
    assert "--yes" in error_line(died("dead", "purge", "-Q", "math", exit=5))
    assert died("dead", "purge", "-Q", "math", "--dry-run").stdout.startswith("would purge 2 jobs of math, died ")

    assert died("dead", "purge", "-Q", "math", "--yes").stdout == "purged 2 jobs of math\n"

    assert len(ids(died)) == 3
    assert died.json("dead", "purge", "--yes")["jobs"] == 3


def test_nothing_to_do_is_no_failure(died: Line) -> None:
    for words in (["--yes"], []):
        said = died("dead", "replay", "--error", "no such text", *words).stdout
        assert said == "nothing to replay in default, math; 5 skipped: other error\n"
    assert died.json("dead", "purge", "--error", "no such text")["jobs"] == 0
    assert died("dead", "list", "--error", "no such text").stdout == ""


@pytest.mark.parametrize("name", ["operate.before_replay", "operate.after_replay"])
def test_case_J4_a_killed_replay_leaves_each_job_in_one_place(died: Line, name: str) -> None:
    def die() -> None:
        raise KeyboardInterrupt

    before = set(ids(died))
    failpoints.arm(name, die)
    try:
        died("dead", "replay", "--yes", exit=130)
    finally:
        failpoints.arm(name, None)

    dead = set(ids(died))
    states = {job: died.json("job", "show", job)["state"] for job in before - dead}
    assert set(states.values()) <= {"waiting"}
    assert len(dead) + len(states) == 5
    died("dead", "replay", "--yes")
    assert ids(died) == []


def test_many_are_replayed_in_bounded_batches(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "PAGE", 7)
    monkeypatch.setattr(batches, "MAX_BATCH_JOBS", 10)
    line("enqueue", "tests.fail", "--count", "64")
    line.work()

    words = ("dead", "replay", "-Q", "default", "--limit", "60", "--yes")
    assert line(*words).stdout == "replayed 60 jobs of default\n"

    stats = line.stats("default")["queues"][0]
    assert (stats["waiting"], stats["dead"]) == (60, 4)


def test_body_that_is_no_json_is_shown_as_bytes(line: Line) -> None:
    connections = Connections(line.url)
    key = f"{line.namespace}:{{default}}:stream"
    words = ["XADD", key, "*", "kind", "tests.fail", "body", b"\xff\x00no"]
    connections.sync().run(Command(words, lambda raw: raw))
    connections.close()
    line.work()

    [job] = line.json("dead", "list")["jobs"]

    assert (job["args"], job["body_base64"], job["reason"]) == (None, "/wBubw==", "undecodable")
    assert "\\xff\\x00no" in line("dead", "show", job["id"]).stdout


def test_a_row_of_somebody_else_ends_no_command(line: Line) -> None:
    line("enqueue", "tests.fail", "--count", "2")
    line.work()
    connections = Connections(line.url)
    connections.sync().run(Command(["XADD", f"{line.namespace}:{{default}}:dead", "*", "id", "a:b"], lambda raw: raw))
    connections.close()

    row = line.json("dead", "list")["jobs"][0]["id"]
    assert line("dead", "groups").stdout.count("\n") == 3
    assert "replayable  no: no job leads to this row" in line("dead", "show", row).stdout
    dry = line("dead", "replay", "--dry-run")
    assert (dry.stdout.partition(" of")[0], f"{row} is left dead" in dry.stderr) == ("would replay 2 jobs", True)
    assert line("dead", "replay", "--yes", exit=5).stdout == "replayed 2 jobs of default\n"
    assert line("dead", "purge", "--id", row, "--yes").stdout == "purged 1 job of default\n"


def test_rows_that_say_too_little_are_shown_all_the_same(line: Line) -> None:
    """Somebody else wrote them: an error without a type, and no time."""
    line("enqueue", "tests.fail")
    line.work()
    connections = Connections(line.url)
    row = ["id", "1-1", "kind", "k", "died_at", "0", "history", '[{"at":1,"n":1,"e":": no type","k":"other"}]']
    row += ["error", ": no type", "reason", "permanent"]
    connections.sync().run(Command(["XADD", f"{line.namespace}:{{default}}:dead", "*", *row], lambda raw: raw))
    connections.close()

    assert re.search(r"^default:1-1 +k +permanent +\d+ +\? ", line("dead", "list").stdout, re.MULTILINE)
    assert re.search(r" \(other\) no type", line("dead", "groups").stdout)


def test_many_queues_are_counted() -> None:
    assert named("abcde") == "a, b, c, d and 1 more queue"
    assert named("abcdef") == "a, b, c, d and 2 more queues"
