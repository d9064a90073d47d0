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
from benchmarks.peers.bout import WAYS, Failed, bout
from benchmarks.peers.catalogue import BARE, OURS, PEERS, Config, Peer
from benchmarks.peers.document import Document, Row
from benchmarks.peers.environments import NotInstalled, python_of, version_of
from benchmarks.peers.match import Found, too_slow
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
        rates = {way: one.add(way, 120) for way in WAYS}
        drained, taken = one.drain(1.0)

    assert [way for way, rate in rates.items() if rate is not None] == ways
    assert all(rate > 0 for rate in rates.values() if rate is not None)
    assert drained > 0
    assert taken > 100


@pytest.mark.bench
def test_an_adapter_that_fails_says_how(url: str) -> None:
    with bout(url, peer(BARE, adapter="no_such"), "default", PYTHON) as one:
        with pytest.raises(Failed, match=r"one ended with exit code 1: .*No module named adapters\.no_such_jobs"):
            one.add("one", 1)
        with pytest.raises(Failed, match="fill: "):
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
        compile(file.read_text("utf-8"), str(file), "exec")
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
    found = Found(next(one for one in PEERS if one.name == "arq"), "default")
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
        found.note("drain", rate)
        found.note("bulk", None)
    found.bytes += [120.4]

    row = found.row()
    found.failed = "it broke"

    assert row.drain == Spread(2.0, 1.0, 3.0)
    assert row.bulk is None
    assert row.bytes_per_waiting_job == 120
    assert found.row() == Row(peer=OURS, config="fast", failed="it broke")


ROWS = [
    Row(peer="taskiq-stream", config="default", version="1.2.3", one=Spread(1_234_567.0, 1.0, 2e6), drain=None),
    Row(
        peer="huey",
        config="fast",
        version="9",
        drain=Spread(3.0, 2.0, 4.0),
        of_bare={"drain": Spread(0.0123, 0.01, 0.02)},
        doubtful=["drain"],
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


def test_the_table_fits_80_columns_and_marks_doubts() -> None:
    text = table.render(finished())

    assert max(map(len, text.splitlines())) <= 80, text
    assert "1,234,567" in text
    assert "?: far slower" in text
    page = table.markdown(finished())
    assert "| huey 9, fast |  |  |  |  | 3 (2-4), 0.012 of bare doubtful | 0 |" in page
    assert "not installed: no such" in page


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
