"""docs/producers.md is true: its module is imported, and each of its ways enqueues what it says."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from streamjobs import NotSent, OutcomeUnknown, Rejected
from streamjobs.cli.enqueue import enqueue as command
from streamjobs.core.options import EnqueueOptions
from tests.docs.blocks import write_files

PAGE = Path(__file__).resolve().parents[2] / "docs" / "producers.md"


@pytest.fixture
def orders(url: str, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The page's module, on the test's backend."""
    [_] = write_files(PAGE, tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = import_module("orders")
    module.app.use(url, namespace=namespace)
    yield module
    module.app.close()
    sys.modules.pop("orders")


async def test_from_asyncio(orders: ModuleType) -> None:
    assert (await orders.from_asyncio()).startswith("orders:")
    await orders.app.aclose()


def test_from_plain_code_in_bulk_and_from_threads(orders: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert orders.from_plain_code().startswith("orders:")
    assert orders.in_bulk() == 1000
    orders.from_many_threads()

    assert capsys.readouterr().out.startswith("there: orders:")


def test_each_outcome_is_told_apart(orders: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    def told(error: Exception) -> str:
        future = orders.Future()
        future.set_exception(error)
        orders.note(future)
        return capsys.readouterr().out

    handle = orders.app.handle("orders:1-0")

    assert told(NotSent("the server is away")) == "not there: the server is away\n"
    assert told(OutcomeUnknown("lost", retry=lambda: handle)) == "there after all: orders:1-0\n"


def test_a_server_that_saves_nothing_cannot_promise_its_disk(orders: ModuleType) -> None:
    with pytest.raises(Rejected, match="durability='fsync': nothing was enqueued"):
        orders.paid()


def test_the_levels_are_those_of_the_page() -> None:
    text = PAGE.read_text("utf-8")

    for level in ("memory", "replicas:N", "fsync"):
        assert f"| `{level}` |" in text
        EnqueueOptions(durability=level.replace("N", "1"))
    assert "--durability" in [name for param in command.params for name in param.opts]
