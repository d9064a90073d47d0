"""Peers: an adapter adds and drains what it is told, what it does not do is seen, and what it shows is judged."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks import document as run_document
from benchmarks.measure import Spread
from benchmarks.peers import bout as bouts
from benchmarks.peers import run, table
from benchmarks.peers.bout import WAYS, Failed, Lacking, Marks, bout
from benchmarks.peers.catalogue import BARE, OURS, PEERS, Config, Peer
from benchmarks.peers.document import Document, Row
from benchmarks.peers.environments import NotInstalled, python_of, version_of
from benchmarks.peers.match import Found, Terms, compared, play, too_slow
from benchmarks.registry import UsageError
from benchmarks.server import running
from tests.cli.schema import load, problems

ADAPTERS = Path(bouts.__file__).parent / "adapters"
PYTHON = Path(sys.executable)
SLOW = (Config(300), Config(300))
"""So that few jobs are drained."""


def peer(name: str, **fields: Any) -> Peer:
    [found] = [one for one in PEERS if one.name == name]
    return msgspec.structs.replace(found, configs=SLOW, **fields)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(tcp=True) as url:
        yield url


@pytest.mark.bench
def test_the_server_of_peers_listens_on_this_machine_alone(url: str) -> None:
    assert url.startswith("redis://127.0.0.1:")


@pytest.mark.bench
@pytest.mark.parametrize(("name", "ways"), [(BARE, ["one", "bulk"]), (OURS, list(WAYS))])
def test_an_adapter_adds_in_the_ways_it_has_and_drains_all(url: str, name: str, ways: list[str]) -> None:
    with bout(url, peer(name), "default", PYTHON) as one:
        for way in WAYS:
            if way in ways:
                assert one.add(way, 120) > 0
            else:
                with pytest.raises(Lacking, match=r"^its calls are for plain code$"):
                    one.add(way, 120)
        drained, taken = one.drain(1.0)

    assert drained > 0
    assert taken > 100


@pytest.mark.bench
def test_two_workers_count_from_when_both_are_at_work(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []
    with bout(url, peer(BARE), "default", PYTHON) as one:
        # Enough for the second one, which comes later.
        one._config = Config(100_000)
        reached = Marks.reached
        monkeypatch.setattr(Marks, "reached", lambda *asked: (reached(*asked), seen.append(asked[0].counts()))[0])
        assert one.drain(1.0, workers=2)[0] > 0

    assert sum(seen[-1]) == 200_000
    assert all(seen[-1])


@pytest.mark.bench
def test_a_worker_that_runs_nothing_is_a_failure(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with bout(url, peer(OURS), "default", PYTHON) as one:
        worker = one._worker
        # Both write into one file.
        monkeypatch.setattr(
            one, "_worker", lambda log, found: worker(log, {**found, "PEER_MARKS": str(log.with_name("marks0"))})
        )
        with pytest.raises(Failed, match="300 jobs had run before 2 workers could be seen at work"):
            one.drain(0.5, workers=2)


@pytest.mark.bench
def test_ours_can_drain_by_a_plain_function(url: str) -> None:
    with bout(url, peer(OURS), "default", PYTHON) as one:
        assert one.drain(1.0, plain=True)[0] > 0


@pytest.mark.bench
@pytest.mark.parametrize("name", [BARE, OURS])
def test_paced_jobs_say_how_long_ago_they_were_sent(url: str, name: str) -> None:
    with bout(url, peer(name), "default", PYTHON) as one:
        found = one.latencies(0.5)

    assert len(found) == 50
    assert min(found) > 0
    assert sorted(found)[25] < 1000


def test_marks_are_counted_by_worker_and_read_as_times(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    two, timed = Marks(paths, 1), Marks([tmp_path / "c"], 8)
    paths[0].write_bytes(b"...")
    (tmp_path / "c").write_bytes((1_500_000).to_bytes(8, "little") + bytes(8) + bytes(3))

    assert two.counts() == [3, 0]
    assert timed.counts() == [2]
    with pytest.raises(Failed, match="3 jobs had run before 2 workers could be seen at work"):
        two.all_at_work(3, 0.0)
    with pytest.raises(Failed, match="1 of 2 workers had not begun after 0 s"):
        two.all_at_work(9, 0.0)
    paths[1].write_bytes(b".")
    assert two.all_at_work(9, 0.0)[1] == 4
    with pytest.raises(Failed, match="only 4 of 5 jobs had run after 0 s"):
        two.reached(5, 0.0)
    (tmp_path / "c").write_bytes((1_500_000).to_bytes(8, "little") + bytes(8))
    assert timed.times_ms() == [1.5, 0.0]


@pytest.mark.bench
def test_an_adapter_that_fails_says_how(url: str) -> None:
    with bout(url, peer(BARE, adapter="no_such"), "default", PYTHON) as one:
        with pytest.raises(Failed, match=r"one ended with exit code 1: .*No module named adapters\.no_such_jobs"):
            one.add("one", 1)
        with pytest.raises(Failed, match="fill ended with exit code 1: "):
            one.drain(1.0)


@pytest.mark.bench
def test_jobs_that_do_not_all_run_are_a_failure(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bouts, "START_S", 1.0)
    with bout(url, peer(OURS), "default", PYTHON) as one:
        monkeypatch.setattr(one, "add_unmeasured", lambda jobs: None)
        with pytest.raises(Failed, match="only 0 of 1 jobs had run after 1 s"):
            one.drain(0.1)


def test_every_peer_has_its_adapter() -> None:
    assert len({one.name for one in PEERS}) == len(PEERS)
    for one in PEERS:
        file = ADAPTERS.parent.joinpath(*one.module.split(".")).with_suffix(".py")
        text = file.read_text("utf-8")
        compile(text, str(file), "exec")
        # Who can do both is told which.
        shared = (ADAPTERS / "taskiq_ways.py").read_text("utf-8") if "taskiq_ways" in text else text
        assert ("PLAIN" in shared) is (one.handlers == "both")
        assert bool(one.packages) is (one.name not in (BARE, OURS))


def ratio(median: float) -> Spread:
    return Spread(median, 0.0, 1.0)


def test_what_is_far_slower_than_it_is_known_to_be_is_doubtful() -> None:
    config = Config(1, one_ratio=0.2, drain_ratio=0.01)

    assert too_slow(config, {"one_awaited": ratio(0.141), "drain": ratio(0.0071)}) == []
    assert too_slow(config, {"one_awaited": ratio(0.139), "drain": ratio(0.0071)}) == ["one_awaited"]
    assert too_slow(config, {"one": ratio(0.2), "drain": ratio(0.0069)}) == ["drain"]
    assert too_slow(Config(1), {"drain": ratio(0.0)}) == []


def test_rates_are_compared_with_the_bare_loop_of_the_same_minute() -> None:
    known = (Config(1, one_ratio=0.223), Config(1))
    found = Found(msgspec.structs.replace(peer("arq"), configs=known), "default")
    for minute, rate in enumerate((10.0, 40.0, 15.0), 1):
        found.note("one_awaited", rate)
        found.note("drain", rate)
        found.compare({"one": 100.0 * minute, "drain": 1000.0 * minute})

    row = found.row()

    assert row.of_bare == {"one_awaited": Spread(0.1, 0.05, 0.2), "drain": Spread(0.01, 0.005, 0.02)}
    assert row.doubtful == ["one_awaited"]  # 0.1 of it, where 0.223 are known


def test_a_row_is_the_medians_of_what_was_found() -> None:
    found = Found(peer(OURS), "fast")
    for rate in (3.0, 1.0, 2.0):
        found.measure(lambda rate=rate: (rate, 120.4), "drain", "bytes_per_waiting_job")  # type: ignore[misc]
        found.measure(lambda rate=rate: (rate / 8, rate), "latency_p50_ms", "latency_p99_ms")  # type: ignore[misc]

    row = found.row()
    found.failed = "it broke"

    assert row.drain == Spread(2.0, 1.0, 3.0)
    assert row.latency_p50_ms == Spread(0.25, 0.12, 0.38)
    assert row.bulk is None
    assert row.bytes_per_waiting_job == 120
    assert found.row() == Row(peer=OURS, config="fast", failed="it broke")


def test_what_a_peer_has_not_or_breaks_is_said_and_not_tried_again() -> None:
    found = Found(peer(OURS), "fast")
    tried = []

    def once(what: str, error: Exception | None = None) -> tuple[float]:
        tried.append(what)
        if error:
            raise error
        return (1.0,)

    found.measure(lambda: once("drain"), "drain")
    found.compare({"drain": 2.0})
    for _ in range(2):
        found.measure(lambda: once("plain", Lacking("no such functions")), "plain")
        found.measure(lambda: once("drain", Failed("a job is missing")), "drain")
        found.compare({"drain": 2.0})
    row = found.row()

    assert tried == ["drain", "plain", "drain"]
    assert row.lacking == {"plain": "no such functions"}
    assert row.broken == {"drain": "a job is missing"}
    assert row.drain is None
    assert row.of_bare == {}


def test_what_is_better_than_ours_is_marked() -> None:
    def row(name: str, config: str, rate: float, latency: float, taken: float, **more: Any) -> Row:
        figures = {"drain": Spread(rate, 0.0, 9.0), "latency_p99_ms": Spread(latency, 0.0, 9.0)}
        return Row(peer=name, config=config, bytes_per_waiting_job=taken, **figures, **more)

    rows = compared([
        row(BARE, "default", 9.0, 0.0, 1.0),
        row(OURS, "default", 2.0, 2.0, 2.0),
        row(OURS, "fast", 4.0, 4.0, 4.0),
        row("huey", "default", 3.0, 3.0, 1.0),
        row("huey", "fast", 3.0, 3.0, 4.0),
        row("saq", "fast", 5.0, 4.0, 9.0, doubtful=["drain"], one=Spread(1.0, 1.0, 1.0)),
        Row(peer="arq", config="default", failed="not installed"),
    ])  # fmt: skip

    assert [one.better for one in rows] == [
        [], [], [], ["drain", "bytes_per_waiting_job"], ["latency_p99_ms"], [], [],
    ]  # fmt: skip


@pytest.mark.bench
def test_all_is_measured_in_one_run(tmp_path: Path) -> None:
    many = (Config(40_000), Config(40_000))
    peers = [msgspec.structs.replace(peer(name), configs=many) for name in (BARE, OURS)]

    rows = play(peers, Terms(1, 100, 0.5, 0.5), tmp_path)

    assert [(row.peer, row.config) for row in rows] == [
        (name, config) for name in (BARE, OURS) for config in ("default", "fast")
    ]
    for row in rows:
        assert row.failed is None
        # The second of two workers may come too late for so few jobs.
        assert set(row.broken) <= {"two"}
    assert not rows[2].lacking
    assert rows[0].lacking.keys() == {"one_awaited", "together", "plain"}
    assert rows[2].latency_p99_ms is not None


ROWS = [
    Row(peer="taskiq-stream", config="default", version="1.2.3", one=Spread(1_234_567.0, 1.0, 2e6), drain=None),
    Row(
        peer="huey",
        config="fast",
        version="9",
        one=Spread(5.0, 4.0, 6.0),
        drain=Spread(3.0, 2.0, 4.0),
        latency_p50_ms=Spread(0.625, 0.5, 2.0),
        bytes_per_waiting_job=229.0,
        of_bare={"drain": Spread(0.0123, 0.01, 0.02)},
        doubtful=["drain"],
        better=["one", "latency_p50_ms"],
        lacking={"bulk": "it has no call that adds many"},
        broken={"two": "99 jobs ran, 100 were added"},
    ),
    Row(peer="arq", config="fast", failed="not installed: " + "no such version " * 8),
]


def finished() -> Document:
    return Document(
        machine=run_document.machine(),
        command=["python", "-m", "benchmarks", "peers"],
        started_at=run_document.now(),
        versions={"server": "valkey 9.1.2"},
        commit=None,
        repeats=3,
        rows=ROWS,
    )


def test_the_document_fits_its_schema() -> None:
    assert problems(msgspec.json.decode(finished().encode()), load("streamjobs.bench.peers")) == []


def test_the_table_fits_80_columns_and_marks_what_is_not_as_it_seems() -> None:
    text = table.render(finished())

    assert max(map(len, text.splitlines())) <= 80, text
    assert "1,234,567" in text
    huey = [line.split() for line in text.splitlines() if line.startswith("huey")]
    assert huey == [["huey", "fast", "5+", "-", "229"], ["huey", "fast", "3?", "!", "0.62+"]]
    assert [line[:2] for line in text.splitlines()[-4:]] == ["+:", "?:", "-:", "!:"]


def test_the_page_shows_spreads_and_what_is_better_in_bold() -> None:
    page = table.markdown(finished())

    assert "| huey 9, fast | **5** (4-6) |  |  | - | 229 |" in page
    assert "| huey 9, fast | 3 (2-4), 0.012 of bare doubtful | broken |  | **0.62** (0.50-2.00) |  |" in page
    assert page.count("not installed: no such") == 2
    for part in page.split("\n\n"):
        assert len({line.count("|") for line in part.splitlines()}) == 1


@pytest.mark.slow
def test_environments_are_made_once_and_say_what_they_hold(tmp_path: Path) -> None:
    assert python_of(peer(OURS), tmp_path) == PYTHON
    assert version_of(peer(OURS), PYTHON)
    with pytest.raises(NotInstalled, match="no-such-folder"):
        python_of(peer(BARE, packages=("./no-such-folder",)), tmp_path)
    assert not list(tmp_path.rglob("streamjobs-peer"))


def test_unknown_peers_are_refused() -> None:
    with pytest.raises(UsageError, match=r"peer 'nobody': there is none; there are bare, streamjobs, arq"):
        run.run(run.Asked(peer=["nobody"]))
    assert run.Asked(peer=["arq"], quick=True, repeats=2).words() == "peers arq --quick --repeats 2".split()
