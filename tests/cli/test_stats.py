"""stats, queue list: what there is, for people and for programs."""

import re

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from streamjobs.cli.main import cli
from streamjobs.operate.metrics import WINDOWS
from tests.cli.support import Line, error_line


def test_counts_per_state(line: Line) -> None:
    line("enqueue", "tests.greet", "--count", "3")
    line.enqueue("tests.add", "1", "--delay", "1h")

    document = line.stats()

    default, math = document["queues"]
    assert (default["queue"], default["waiting"], default["scheduled"]) == ("default", 3, 0)
    assert (math["queue"], math["waiting"], math["scheduled"]) == ("math", 0, 1)
    assert default["totals"] == {"enqueued": 3}
    assert (math["oldest_ready_s"], math["workers"], math["lease_s"]) == (0, 0, None)
    assert document["namespace"] == line.namespace


def test_server_is_named(line: Line) -> None:
    server = line.stats()["server"]

    assert server["engine"] in ("redis", "valkey")
    assert re.match(r"\d+\.\d+\.\d+", server["version"])
    assert server["eviction"] == "noeviction"
    assert server["used_bytes"] > 0


def test_done_and_failed_are_counted(line: Line) -> None:
    line.enqueue("tests.greet", "Ada")
    line.enqueue("tests.fail")
    line.work()

    [queue] = line.stats("default")["queues"]

    assert (queue["done"], queue["failed"], queue["dead"], queue["lease_s"]) == (1, 1, 1, 15.0)


def test_table_marks_a_queue_without_worker(line: Line) -> None:
    line("enqueue", "tests.greet", "--count", "12418")

    heading, empty, titles, row, _, why = line("stats", exit=1).stdout.splitlines()

    assert "noeviction" in heading
    assert empty == ""
    assert titles.split()[:3] == ["QUEUE", "WAITING", "RUN/SLOTS"]
    assert row.split()[:3] == ["default*", "12,418", "0/0"]
    assert row.split()[-1] == "critical"
    assert why == "default  critical  no worker is subscribed (streamjobs worker -A APP -Q default)"


def test_stats_changes_nothing(line: Line) -> None:
    line.enqueue("tests.greet", "Ada")
    before = line.stats()["queues"]

    after = line.stats()["queues"]

    assert [{**queue, "oldest_ready_s": 0} for queue in before] == [{**queue, "oldest_ready_s": 0} for queue in after]


def test_no_queues_yet(line: Line) -> None:
    result = line("stats")

    assert len(result.stdout.splitlines()) == 2
    assert "no queues in namespace" in result.stderr
    assert line.stats()["queues"] == []


def test_queue_that_is_not_there(line: Line) -> None:
    line.enqueue("tests.greet", "Ada")

    assert "queue nowhere: there is none" in error_line(line("stats", "nowhere", exit=4))
    assert error_line(line("stats", "a b", exit=2))


def test_exit_code_by_verdict(line: Line) -> None:
    """Degraded is to be looked at, critical is to wake somebody."""
    line.enqueue("tests.fail")
    line.work()
    assert line.stats()["health"] == "degraded"
    line("stats", exit=0)

    line.enqueue("tests.greet", "Ada")

    document = line.json("stats", exit=1)
    assert document["health"] == document["queues"][0]["health"] == "critical"
    assert [reason["about"] for reason in document["queues"][0]["reasons"]] == ["no_worker", "dead"]


def test_thresholds_by_flag(line: Line) -> None:
    line.enqueue("tests.fail")
    line.work()

    assert line.stats("default", "--threshold", "dead=off")["health"] == "ok"
    assert line.json("stats", "default", "--threshold", "dead=1/1", exit=1)["queues"][0]["thresholds"]["dead"] == [1, 1]
    [queue] = line.stats("default", "--threshold", "oldest=30s/2m", "--threshold", "failures=20%")["queues"]
    assert (queue["thresholds"]["oldest"], queue["thresholds"]["failures"]) == ([30, 120], [0.2, 0.75])


def test_conditions(line: Line) -> None:
    line.enqueue("tests.fail")
    line.work()

    line("stats", "default", "--assert", "oldest<60s, dead<100", "--assert", "health<critical,dead=1", exit=0)
    result = line("stats", "default", "--assert", "oldest<60s,dead<1", exit=1)
    document = line.json("stats", "default", "--assert", "oldest<60s,dead<1", exit=1)

    assert error_line(result) == "dead<1 does not hold: default: dead is 1"
    assert document["failed"] == [{"queue": "default", "condition": "dead<1", "measured": 1}]


def test_rates_failures_and_times_by_kind(line: Line) -> None:
    for _ in range(3):
        line.enqueue("tests.greet", "Ada")
    line.enqueue("tests.fail")
    line.work()

    [queue] = line.stats("default", "--by", "kind")["queues"]
    shown = line("stats", "--by", "kind", "--window", "1h").stdout

    kinds = {one["kind"]: one for one in queue["kinds"]}
    assert (kinds["tests.greet"]["done"], kinds["tests.greet"]["failure_rate"]) == (3, 0)
    assert (kinds["tests.fail"]["failed"], kinds["tests.fail"]["failure_rate"]) == (1, 1)
    assert sum(kinds["tests.fail"]["errors"].values()) == 1
    assert 0 <= kinds["tests.greet"]["run"]["p50_s"] <= kinds["tests.greet"]["run"]["p99_s"] < 10
    assert kinds["tests.greet"]["wait"]["mean_s"] >= 0
    assert re.search(r"^default  tests.greet +3 +0\.0  run ", shown, re.MULTILINE)
    assert re.search(r"^default  tests.fail  \S+ 1$", shown, re.MULTILINE)
    assert max(map(len, shown.splitlines()[2:])) <= 80


def test_rates_over_one_and_five_minutes(line: Line) -> None:
    line("enqueue", "tests.greet", "--count", "600")

    [queue] = line.stats()["queues"]

    assert queue["last_1m"]["in_per_s"] == queue["in_per_s"]
    assert 9 < queue["last_1m"]["in_per_s"] <= 10
    assert queue["last_5m"]["in_per_s"] == 2
    assert (queue["drain_s"], queue["failure_rate"]) == (None, None)
    assert len(queue["series"]["in_per_s"]) == 20
    assert sum(queue["series"]["in_per_s"]) * 60 == 600


@pytest.mark.parametrize(("window", "steps"), [("1m", 20), ("5m", 20), ("1h", 20), ("24h", 24)])
def test_windows(line: Line, window: str, steps: int) -> None:
    line("enqueue", "tests.greet", "--count", "600")

    document = line.stats("--window", window)

    assert document["window_s"] * document["queues"][0]["in_per_s"] == pytest.approx(600, rel=0.02)
    assert len(document["queues"][0]["series"]["out_per_s"]) == steps
    assert WINDOWS[window].ms == document["window_s"] * 1000


def test_named_queues_show_what_came_and_went(line: Line) -> None:
    line("enqueue", "tests.greet", "--count", "600")

    shown = line("stats", "default", exit=1).stdout

    came, went = shown.splitlines()[-2:]
    assert re.fullmatch(r"default  in   ▁{18,19}[▁-█]*█[▁-█]?  \S+/s at most, 20m", came), came
    assert re.fullmatch(r" {7}  out  ▁{20}  0/s at most, 20m", went), went
    assert "█" not in line("stats", exit=1).stdout


def test_metrics_for_prometheus(line: Line) -> None:
    line("enqueue", "tests.greet", "--count", "3")

    families = {one.name: one for one in text_string_to_metric_families(line("stats", "--prom", exit=1).stdout)}

    waiting = {sample.labels["state"]: sample.value for sample in families["streamjobs_queue_jobs"].samples}
    assert (waiting["waiting"], waiting["dead"]) == (3, 0)
    assert [sample.value for sample in families["streamjobs_queue_health"].samples] == [2]
    assert families["streamjobs_queue_moves"].type == "counter"


def test_limits_are_shown_where_jobs_wait_for_them(line: Line) -> None:
    line.enqueue("tests.greet", "Ada")
    line("queue", "limit", "default", "--max-waiting", "2")
    assert "note      1 of 2 jobs wait that may" in line("stats", exit=1).stdout
    line.enqueue("tests.greet", "Eve")

    said = " ".join(line("stats", exit=1).stdout.split())
    assert "full: 2 of 2 wait, more are refused (streamjobs queue limit default)" in said
    assert line.stats()["queues"][0]["max_waiting"] == 2


def test_case_H5_stats_shows_bytes(line: Line) -> None:
    line.enqueue("tests.greet", "x" * 200_000)

    [queue] = line.stats()["queues"]

    assert 200_000 < queue["used_bytes"] < 600_000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--assert", "oldest"], "'oldest' is no condition"),
        (["--assert", "age<60s"], "there is no 'age' to compare; there are waiting, limited"),
        (["--assert", "oldest<soon"], "'soon' is not a duration"),
        (["--assert", "dead<60s"], "'60s' is not a number"),
        (["--assert", "health<fine"], "'fine' is not ok, degraded or critical"),
        (["--assert", "dead<1,,"], "'' is no condition"),
        (["--threshold", "oldest"], "'oldest' is not a threshold: use oldest=30s/2m"),
        (["--threshold", "oldest=soon"], "oldest=soon"),
        (["--threshold", "age=1"], "threshold 'age': there is none; use oldest"),
        (["--threshold", "oldest=60s/30s"], "it would be critical before it is degraded"),
        (["--threshold", "failures=150%"], "expected a share, 0 to 1 (on the command line 0% to 100%)"),
        (["--threshold", "oldest=30s/"], "use a duration, a number"),
        (["--threshold", "dead=-1"], "use a duration, a number"),
        (["--window", "2m"], "--window"),
        (["--prom", "--json"], "--prom prints the queues once"),
        (["--prom", "--watch"], "--prom prints the queues once"),
        (["--prom", "--by", "worker"], "--prom prints the queues once"),
        (["--by", "host"], "--by"),
        (["--watch", "0"], "0: use 0.1s to 1h"),
        (["--watch", "a b"], "a b"),
    ],
)
def test_what_cannot_be_meant_is_said_before_anything_is_asked(words: list[str], said: str) -> None:
    result = CliRunner().invoke(cli, ["stats", "--url", "redis://nowhere.invalid:1", *words])

    assert said in error_line(result)
    assert result.exit_code == 2


def test_queue_list(line: Line) -> None:
    assert line("queue", "list").stdout == ""
    line.enqueue("tests.greet", "Ada")
    line.enqueue("tests.add", "1")

    assert line("queue", "list").stdout == "default\nmath\n"
    assert line.json("queue", "list")["queues"] == ["default", "math"]


def test_a_queue_that_is_named_twice_is_shown_once(line: Line) -> None:
    line.enqueue("tests.add", "1")

    assert [one["queue"] for one in line.stats("math", "math")["queues"]] == ["math"]
