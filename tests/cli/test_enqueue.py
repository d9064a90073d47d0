"""enqueue: arguments by signature or by name, options, files, and waiting."""

import json
from pathlib import Path

import pytest

from streamjobs.cli.enqueue import _Bulk
from streamjobs.core import failpoints
from streamjobs.core.errors import Unavailable
from tests.cli.support import APP, Line, error_line


def args_of(line: Line, job: str) -> object:
    return line.json("job", "show", job)["args"]


def test_arguments_follow_the_signature(line: Line) -> None:
    job = line.enqueue("tests.add", "2", "--arg", "b=3", "--arg", 'tags=["x"]')

    found = line.json("job", "show", job)

    assert (found["queue"], found["kind"]) == ("math", "tests.add")
    assert found["args"] == {"a": 2, "b": 3, "tags": ["x"]}


def test_text_stays_text_where_the_signature_says_so(line: Line) -> None:
    job = line.enqueue("tests.greet", "123", "--arg", "times=2")

    assert args_of(line, job) == {"name": "123", "times": 2}


def test_last_part_of_a_kind_is_enough(line: Line) -> None:
    assert args_of(line, line.enqueue("add", "1")) == {"a": 1, "b": 0, "tags": None}


def test_last_part_of_two_kinds_is_not(line: Line) -> None:
    said = error_line(line("enqueue", "-A", APP, "greet", "Ada", exit=2))

    assert "other.greet or tests.greet" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tests.add", "x"], "Expected `int`, got `str` - at `$.a`"),
        (["tests.add"], "a"),
        (["tests.add", "1", "2", "3", "4"], "it takes a, b, tags"),
        (["tests.add", "1", "--arg", "a=2"], "'a' was given twice"),
        (["tests.add", "1", "--arg", "c=2"], "unknown field `c`"),
        (["tests.add", "1", "--arg", "b"], "expected NAME=VALUE"),
        (["tests.add", "--args-json", "[1]"], "--args-json"),
        (["tests.ad", "1"], "tests.add"),
        (["tests.add", "1", "--delay", "soon"], "--delay"),
        (["tests.add", "1", "--delay", "0"], "delay=0"),
        (["tests.add", "1", "--delay", "nan"], "--delay"),
        (["tests.add", "1", "--expires", "soon"], "--expires"),
        (["tests.add", "1", "--expires", "2030-01-01"], "no time zone"),
        (["tests.add", "1", "--expires", "1s", "--delay", "1h"], "would expire before it is due"),
        (["tests.add", "1", "--expires", "1s", "--when-expired", "hide"], "--when-expired"),
        (["tests.add", "1", "--delay", "-1"], "--delay"),
        (["tests.add", "1", "--durability", "disk"], "use 'memory', 'fsync', or 'replicas:N'"),
        (["tests.add", "1", "--delay", "11000d"], "delay"),
        (["tests.add", "1", "--at", "2030-01-01T00:00:00"], "time zone"),
        (["tests.add", "1", "--delay", "1", "--at", "2030-01-01T00:00:00Z"], "one of the two"),
        (["tests.add", "1", "-Q", "x:dead"], "queue 'x:dead'"),
        (["tests.add", "1", "--dedupe-key", "k" * 257], "257"),
        (["tests.add", "1", "--count", "0"], "--count"),
        (["tests.add", "1", "--count", "x"], "--count"),
        (["tests.add", "1", "--count", "2", "--wait"], "--wait"),
        ([], "which kind"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(line: Line, words: list[str], said: str) -> None:
    assert said in error_line(line("enqueue", "-A", APP, *words, exit=2))
    assert line.json("queue", "list")["queues"] == []


def test_without_app_arguments_are_named(line: Line) -> None:
    job = line("enqueue", "their.kind", "--arg", "n=1", "--arg", "text=hello", "--arg", "on=true").stdout.strip()

    found = line.json("job", "show", job)

    assert (found["queue"], found["kind"]) == ("default", "their.kind")
    assert found["args"] == {"n": 1, "text": "hello", "on": True}


def test_without_app_a_position_says_nothing(line: Line) -> None:
    assert "name it" in error_line(line("enqueue", "their.kind", "5", exit=2))


def test_case_H1_numbers_keep_every_digit(line: Line) -> None:
    text = '{"n":393087288629462191,"big":123456789012345678901234567890,"f":1.10}'

    job = line("enqueue", "their.kind", "--args-json", text).stdout.strip()

    shown = line("job", "show", job).stdout
    assert text in shown


def test_options_travel_with_the_job(line: Line) -> None:
    job = line.enqueue("tests.add", "1", "--delay", "1h30m", "-Q", "slow", "--dedupe-key", "k")

    found = line.json("job", "show", job)

    assert job.startswith("slow:d")
    assert (found["state"], found["dedupe_key"]) == ("scheduled", "k")


def test_durability_that_the_server_cannot_give_is_refused(line: Line, tmp_path: Path) -> None:
    """The servers of these tests save nothing."""
    said = error_line(line("enqueue", "-A", APP, "tests.add", "1", "--durability", "fsync", exit=2))
    file = tmp_path / "jobs.ndjson"
    file.write_text('{"kind": "k", "durability": "fsync"}\n')

    assert "durability='fsync': nothing was enqueued" in said
    assert "durability='fsync': nothing was enqueued" in error_line(line("enqueue", "--file", str(file), exit=2))
    assert line.json("job", "list", "-Q", "math")["jobs"] == []
    assert line("enqueue", "-A", APP, "tests.add", "1", "--durability", "memory").stdout.startswith("math:")


def test_duplicate_is_no_failure(line: Line) -> None:
    first = line.enqueue("tests.add", "1", "--dedupe-key", "k")

    second = line("enqueue", "-A", APP, "tests.add", "2", "--dedupe-key", "k")

    assert second.stdout.strip() == first
    assert "duplicate" in second.stderr
    assert line.json("enqueue", "-A", APP, "tests.add", "2", "--dedupe-key", "k") == {
        "schema": "streamjobs.enqueue",
        "version": 1,
        "jobs": [{"id": first, "queue": "math", "duplicate": True}],
        "enqueued": 0,
        "duplicates": 1,
    }


def test_expired_job_is_dead_and_its_replay_runs(line: Line, tmp_path: Path) -> None:
    job = line.enqueue("tests.add", "1", "--expires", "2020-01-31T12:00:00Z")
    file = tmp_path / "jobs.ndjson"
    file.write_text(
        '{"kind": "tests.add", "args": {"a": 1}, "expires": "2020-01-31T12:00:00Z", "when_expired": "drop"}\n'
    )
    line("enqueue", "--file", str(file), "-Q", "math")
    assert line.json("job", "show", job)["expires"] == "2020-01-31T12:00:00.000Z"

    line.work()
    assert line.json("dead", "list", "--reason", "expired")["jobs"][0]["id"] == job
    assert line.stats("math")["queues"][0]["totals"]["cancelled"] == 1
    line("dead", "replay", "--yes")
    line.work()

    assert line.stats("math")["queues"][0]["totals"]["done"] == 1


def test_count_sends_the_same_job_often(line: Line) -> None:
    assert line("enqueue", "-A", APP, "add", "1", "--count", "1200").stdout == "enqueued 1,200 jobs\n"
    assert line.stats("math")["queues"][0]["waiting"] == 1200


def test_file_holds_a_job_a_line(line: Line, tmp_path: Path) -> None:
    file = tmp_path / "jobs.ndjson"
    file.write_text(
        '{"kind": "tests.add", "args": {"a": 1}}\n\n{"args": {"name": "Ada"}}\n'
        '{"kind": "their.kind", "queue": "theirs", "delay": "1h", "dedupe_key": "k"}\n'
    )

    document = line.json("enqueue", "tests.greet", "--file", str(file))

    assert [job["queue"] for job in document["jobs"]] == ["default", "default", "theirs"]
    assert (document["enqueued"], document["duplicates"]) == (3, 0)
    assert args_of(line, document["jobs"][1]["id"]) == {"name": "Ada"}
    assert line.json("job", "show", document["jobs"][2]["id"])["state"] == "scheduled"


def test_file_with_app_is_checked_by_its_handlers(line: Line) -> None:
    text = '{"kind": "add", "args": {"a": 1}}\n{"kind": "add", "args": {"a": "1"}}\n'

    said = error_line(line("enqueue", "-A", APP, "--file", "-", stdin=text, exit=2))

    assert said.startswith("line 2: ")
    assert "Expected `int`, got `str`" in said
    assert line.stats()["queues"][0]["waiting"] == 1


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("nonsense", "JSON is malformed"),
        ("[]", "Expected `object`"),
        ("{}", "no kind"),
        ('{"kind": "k", "arg": {}}', "unknown field `arg`"),
        ('{"kind": "k", "args": [1]}', "Expected `object`"),
        ('{"kind": "k", "delay": "soon"}', "not a duration"),
        ('{"kind": "k", "expires": "soon"}', "not a duration"),
        ('{"kind": "k", "expires": 1, "when_expired": "hide"}', "hide"),
        ('{"kind": "k", "at": "noon"}', "not an instant"),
        ('{"kind": "k", "queue": "a b"}', "queue 'a b'"),
        ('{"kind": "a b"}', "kind 'a b'"),
        ('{"kind": "k", "delay": 1, "at": "2030-01-01T00:00:00Z"}', "one of the two"),
        ('{"kind": "k", "args": {"x": "' + "y" * 300_000 + '"}}', "the limit is"),
    ],
)
def test_bad_line_says_where_and_what_came_before(line: Line, bad: str, said: str) -> None:
    good = '{"kind": "k"}\n'
    text = good * 1001 + bad + "\n" + good

    document = line("enqueue", "--file", "-", "--json", stdin=text, exit=2)

    told = error_line(document)
    assert told.startswith("line 1002: ")
    assert said in told
    assert "1,001 jobs were enqueued; nothing after it was sent" in told
    assert json.loads(document.stdout)["enqueued"] == 1001
    assert line.stats()["queues"][0]["waiting"] == 1001


@pytest.mark.parametrize("words", [[], ["-A", APP]], ids=["plain", "app"])
def test_line_that_is_not_utf8_says_where(line: Line, words: list[str]) -> None:
    good, bad = (
        b'{"kind":"tests.greet","args":{"name":"\xc3\xa4"}}\n',
        b'{"kind":"tests.greet","args":{"name":"\xff"}}\n',
    )

    said = error_line(line("enqueue", *words, "--file", "-", stdin=good + bad, exit=2))

    assert said.startswith("line 2: ")
    assert "byte 0xff in the arguments is not UTF-8" in said
    assert "before it, 1 job was enqueued" in said


def test_interrupted_it_says_how_many_were_sent(line: Line) -> None:
    """Of the batch under way nobody knows."""
    batches = 0

    def interrupt() -> None:
        nonlocal batches
        batches += 1
        if batches == 3:
            raise KeyboardInterrupt

    failpoints.arm("producer.before_send", interrupt)
    try:
        said = line("enqueue", "k", "--count", "5000", exit=130).stderr
    finally:
        failpoints.arm("producer.before_send", None)

    sent = line.stats()["queues"][0]["waiting"]
    told = int(said.split()[0].replace(",", ""))
    assert "before it ended; up to 500 more may have been" in said
    assert told <= sent <= told + 500


def test_one_job_was_not(line: Line) -> None:
    bulk = _Bulk(None, iter([]), "line")  # type: ignore[arg-type]
    bulk._stop_at([(7, Unavailable("gone"))])

    assert str(bulk.error) == "line 7: gone; 0 jobs were enqueued, 1 job was not"


def test_file_that_is_not_there(line: Line) -> None:
    assert "No such file" in error_line(line("enqueue", "--file", "/nowhere/at/all", exit=2))


@pytest.mark.parametrize("words", [["--arg", "a=1"], ["--count", "2"], ["--dedupe-key", "k"], ["--wait"]])
def test_file_takes_no_arguments_beside(line: Line, words: list[str]) -> None:
    assert "--file" in error_line(line("enqueue", "k", "--file", "-", *words, exit=2))


def test_text_of_jobs_may_be_anything(line: Line) -> None:
    """Case H4: emoji, NUL and right-to-left text arrive; on a terminal they steer nothing."""
    text = json.dumps({"name": "\U0001f600 \x00\x1b[31m \u202eabc"})

    job = line("enqueue", "tests.greet", "--args-json", text).stdout.strip()

    assert args_of(line, job) == json.loads(text)
    shown = line("job", "show", job).stdout + line("job", "show", job, "--json").stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown


@pytest.mark.parametrize(
    ("mode", "shown"),
    [("done", "done"), ("started", "started"), ("latest", "latest"), ("5m", "300s"), ("1500ms", "1.5s")],
)
def test_dedupe_modes(line: Line, mode: str, shown: str) -> None:
    job = line.enqueue("tests.add", "1", "--dedupe-key", "k", "--dedupe", mode)

    found = line.json("job", "show", job)
    assert (found["dedupe_key"], found["dedupe"], found["holds_key"]) == ("k", shown, True)
    texts = [" ".join(text.split()) for text in line("job", "show", job).stdout.splitlines()]
    assert {f"dedupe {shown}", "key held by this job"} <= set(texts)


def test_a_mode_without_a_key_takes_all_arguments(line: Line) -> None:
    first = line.enqueue("tests.add", "1", "--dedupe", "latest")

    assert line.enqueue("tests.add", "1", "--dedupe", "latest") == first
    assert line.enqueue("tests.add", "2", "--dedupe", "latest") != first


def test_the_mode_of_a_kind_can_be_switched_off(line: Line, tmp_path: Path) -> None:
    file = tmp_path / "jobs"
    file.write_text(
        '{"kind": "tests.once", "args": {"a": 1}}\n{"kind": "tests.once", "args": {"a": 1}, "dedupe": "none"}\n'
    )
    kind = ("enqueue", "-A", APP, "tests.once", "1")
    first = line.json(*kind)["jobs"][0]["id"]

    assert line.json(*kind)["jobs"] == [{"id": first, "queue": "default", "duplicate": True}]
    assert line.json(*kind, "--dedupe", "none")["enqueued"] == 1
    document = line.json("enqueue", "-A", APP, "--file", str(file))
    assert (document["enqueued"], document["duplicates"]) == (1, 1)
    assert line.json("enqueue", "-A", APP, "--file", str(file), "--dedupe", "none")["enqueued"] == 2


def test_modes_in_a_file(line: Line, tmp_path: Path) -> None:
    file = tmp_path / "jobs"
    file.write_text('{"kind": "tests.add", "args": {"a": 1}, "dedupe_key": "k", "dedupe": "latest"}\n' * 2)

    document = line.json("enqueue", "-A", APP, "--file", str(file))

    assert (document["enqueued"], document["duplicates"]) == (1, 1)


@pytest.mark.parametrize(("mode", "said"), [("for ever", "such as 5m, or none"), ("0", "must be from"), ("-5", "'-5'")])
def test_what_is_no_mode_is_refused(line: Line, mode: str, said: str) -> None:
    assert said in error_line(line("enqueue", "-A", APP, "tests.add", "1", "--dedupe", mode, exit=2))
