"""dead replay: other arguments, other queues, other keys, a rate; bad options are refused before anything is done."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from streamjobs.core.failpoints import VARIABLE
from tests.cli.support import APP, Line, error_line

ROOT = Path(__file__).resolve().parents[2]
Arm = Callable[[str, Callable[[], None]], None]


@pytest.fixture
def died(line: Line) -> Line:
    """A command line whose queues hold 2 dead of one kind and 2 of another."""
    line.bury("one", "two")
    return line


def waiting(line: Line) -> dict[str, int]:
    return {queue["queue"]: queue["waiting"] for queue in line.stats()["queues"]}


def test_arguments_are_set_as_json_or_text(died: Line) -> None:
    died("dead", "replay", "-Q", "math", "--set", "n=7", "--set", "text=no number", "--yes")
    died("dead", "replay", "-Q", "default", "--set", 'text={"a": [1]}', "--yes")

    died.work("-Q", "math,default")

    args = {job["kind"]: job["args"] for job in died.dead()}
    assert args == {"tests.refuse": {"n": 7, "text": "no number"}, "tests.fail": {"text": {"a": [1]}}}
    assert {job["reason"] for job in died.dead()} == {"undecodable"}


def test_arguments_are_set_by_the_handlers_types(died: Line) -> None:
    assert died("dead", "replay", "--kind", "tests.fail", "-A", APP, "--set", "text=7", "--yes").exit_code == 0

    died.work()

    assert {str(job["args"]) for job in died.dead("--kind", "tests.fail")} == {"{'text': '7'}"}


def test_what_the_handlers_would_not_take_is_left_dead_and_named(died: Line) -> None:
    result = died("dead", "replay", "-A", APP, "--set", "n=many", "--yes", exit=5)

    assert result.stdout == "replayed 0 jobs of default, math\n"
    assert "is left dead: tests.fail: there is no argument 'n'; it has text" in result.stderr
    assert "is left dead: tests.refuse: argument 'n': Expected `int`" in result.stderr
    assert result.stderr.splitlines()[-1] == "error: 4 jobs left dead"
    tried = died.json("dead", "replay", "-A", APP, "--set", "n=5", "--dry-run")
    assert (tried["jobs"], len(tried["left"])) == (2, 2)
    assert len(died.dead()) == 4


def test_the_app_alone_checks(died: Line) -> None:
    died("dead", "replay", "--set", "extra=1", "-Q", "math", "--yes")
    died.work()

    assert "left dead" in died("dead", "replay", "-Q", "math", "-A", APP, "--yes", exit=5).stderr
    assert died("dead", "replay", "-Q", "default", "-A", APP, "--yes").stdout == "replayed 2 jobs of default\n"


def test_jobs_begin_anew_in_another_queue(died: Line) -> None:
    [first, _] = died.dead("-Q", "math")

    assert (
        died("dead", "replay", "-Q", "math", "--to", "default", "--yes").stdout
        == "replayed 2 jobs of math to default\n"
    )

    assert waiting(died) == {"default": 2, "math": 0}
    shown = died.json("job", "show", first["id"])
    assert (shown["state"], shown["replayed_as"][:8]) == ("finished", "default:")
    new = died.json("job", "show", shown["replayed_as"])
    assert (new["state"], new["replayed_from"], new["generation"]) == ("waiting", first["id"], 1)
    assert new["idempotency_key"] == first["id"]
    assert new["history"] == first["history"]
    said = error_line(died("dead", "show", first["id"], exit=5))
    assert f"is not dead any more: it began anew as {new['id']}" in said
    died.work()
    again = died("dead", "show", new["id"]).stdout
    assert f"replayed from   {first['id']}\n" in again
    assert "replayed        once\n" in again


def test_a_new_key_is_a_new_job_of_the_same_queue(died: Line) -> None:
    [first, _] = died.dead("-Q", "math")

    died("dead", "replay", "--id", first["id"], "--new-key", "--yes")

    new = died.json("job", "show", died.json("job", "show", first["id"])["replayed_as"])
    assert (new["queue"], new["replayed_from"], new["idempotency_key"]) == ("math", first["id"], None)


def test_a_rate_is_kept(died: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)

    assert died("dead", "replay", "--rate", "2/m", "--yes").stdout == "replayed 4 jobs of default, math\n"

    assert [round(pause / 30) for pause in pauses] == [1, 2, 3]
    assert all(sooner < later for sooner, later in pairwise(pauses))


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--rate", "fast"], 2, "'fast' is not a rate"),
        (["--rate", "0/s"], 2, "'0/s' is not a rate"),
        (["--rate", "-5/s"], 2, "'-5/s' is not a rate"),
        (["--rate", "5/0s"], 2, "'5/0s' is not a rate"),
        (["--rate", "off"], 2, "'off' is not a rate"),
        (["--set", "n"], 2, "'n': expected NAME=VALUE"),
        (["--set", "=1"], 2, "'=1': expected NAME=VALUE"),
        (["--set", "n=1", "--set", "n=2"], 2, "argument 'n' is set twice"),
        (["-A", "nowhere:app"], 2, "there is no module 'nowhere'"),
        (["-A", "tests.cli.apps"], 2, "expected MODULE:ATTRIBUTE"),
        (["--to", "a b"], 2, "queue 'a b'"),
        (["--to", "{a}b"], 2, "queue '{a}b'"),
        (["--to", "nowhere"], 4, "queue nowhere: there is none"),
        (["--where", "n"], 2, "expected NAME=VALUE"),
        (["--since", "soon"], 2, "--since"),
        (["--limit", "0"], 2, "--limit"),
        (["--after", "1-0@q"], 2, "No such option"),
    ],
)
def test_bad_options_are_refused_with_nothing_done(died: Line, words: list[str], code: int, said: str) -> None:
    line = error_line(died("dead", "replay", *words, "--yes", exit=code))

    assert said in line
    assert len(died.dead()) == 4


def test_what_comes_from_jobs_cannot_steer_the_terminal(line: Line) -> None:
    line.enqueue("tests.fail", "\x1b[2Jred\u202e\r\nnew line")
    line.work()
    [job] = line.dead()

    for words in (["list"], ["groups"], ["show", job["id"]], ["replay", "-A", APP, "--set", "x\x1b[2J=1", "--yes"]):
        result = line("dead", *words, exit=5 if words[0] == "replay" else 0)
        shown = result.stdout + result.stderr
        assert "\\x1b[" in shown
        assert not {"\x1b", "\r", "\u202e"} & set(shown)


def test_ctrl_c_says_how_many_were_put_back(died: Line, failpoint: Arm) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    failpoint("operate.after_replay", interrupt)
    result = died("dead", "replay", "-Q", "math", "--yes", exit=130)

    assert result.stderr == "replayed 0 jobs before it ended, perhaps one batch more: do it again for the rest\n"


@pytest.mark.parametrize("point", ["before_promise", "after_promise", "after_adopt", "after_handover"])
def test_case_J4_a_replay_to_another_queue_that_is_killed_and_done_again_doubles_nothing(
    died: Line, point: str
) -> None:
    words = ["dead", "replay", "-Q", "math", "--to", "default", "--yes"]
    where = ["--url", died.url, "--namespace", died.namespace]
    killed = subprocess.run(
        [sys.executable, "-m", "streamjobs", *words, *where],
        cwd=ROOT, env={**os.environ, VARIABLE: f"operate.{point}=kill9"}, check=False, timeout=60,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    left = len(died.dead("-Q", "math"))
    begun = waiting(died)["default"]
    assert (left, begun) == {
        "before_promise": (2, 0), "after_promise": (2, 0), "after_adopt": (2, 2), "after_handover": (0, 2),
    }[point]  # fmt: skip
    if point.startswith("after_") and left:
        refused = died("dead", "purge", "-Q", "math", "--yes", exit=5)
        assert "is left dead: its replay to default was interrupted" in refused.stderr
        shown = died("dead", "show", died.dead("-Q", "math")[0]["id"]).stdout
        assert "replayable  yes: its replay to default was interrupted, and comes to its end by any replay" in shown

    died(*words)

    assert waiting(died) == {"default": 2, "math": 0}
    assert died.dead("-Q", "math") == []
