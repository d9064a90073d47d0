"""docs/idempotency.md is true: its examples run, twice for each job, and their effects happen as the page says."""

import importlib.util
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from streamjobs import StreamJobs
from streamjobs.core.codec import encode_meta
from streamjobs.core.job import Meta
from tests.docs.blocks import blocks
from tests.worker.support import Queue, drain

PAGE = Path(__file__).resolve().parents[2] / "docs" / "idempotency.md"
EXAMPLES = {block.file: block.text for block in blocks(PAGE) if block.file}

Load = Callable[..., StreamJobs]


@pytest.fixture
def load(url: str, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Import an example with stand-ins for the reader's own modules; return its app, on the test's backend."""

    def load(file: str, **modules: dict[str, Any]) -> StreamJobs:
        for name, functions in modules.items():
            module = ModuleType(name)
            module.__dict__.update(functions)
            monkeypatch.setitem(sys.modules, name, module)
        path = tmp_path / file
        path.write_text(EXAMPLES[file], "utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        example = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, path.stem, example)
        spec.loader.exec_module(example)
        app: StreamJobs = example.app
        app.use(url, namespace=namespace)
        return app

    return load


async def run_twice(app: StreamJobs, url: str, kind: str, *args: Any) -> str:
    """Run a job, and once more as after a failover: its entry is there again under its own id."""
    handle = await app.kind(kind).enqueue(*args)
    await drain(app)
    queue = Queue(url, app.namespace)
    queue.keys = handle._keys
    job = app.kind(kind).call(*args)
    queue.add("kind", kind, "body", job.body, "meta", encode_meta(Meta(id=handle.id.partition(":")[2])))
    queue.close()
    await drain(app)
    await app.aclose()
    return handle.id


def test_every_example_is_tested() -> None:
    assert set(EXAMPLES) == {"charge.py", "transfer.py", "welcome.py", "payout.py"}


async def test_api_with_a_key_gets_the_same_key_twice(load: Load, url: str) -> None:
    calls: list[tuple[str, int, str]] = []

    async def charge_card(card: str, cents: int, *, idempotency_key: str) -> None:
        calls.append((card, cents, idempotency_key))

    job = await run_twice(load("charge.py", bank={"charge_card": charge_card}), url, "charge", "4242", 500)

    assert calls == [("4242", 500, job)] * 2


async def test_ledger_moves_the_money_once(
    load: Load, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("bank.db")) as db, db:
        db.execute("CREATE TABLE ledger (key TEXT PRIMARY KEY)")
        db.execute("CREATE TABLE accounts (name TEXT PRIMARY KEY, cents INTEGER)")
        db.executemany("INSERT INTO accounts VALUES (?, ?)", [("ada", 1000), ("zoe", 0)])

    job = await run_twice(load("transfer.py"), url, "transfer", "ada", "zoe", 300)

    with closing(sqlite3.connect("bank.db")) as db:
        assert dict(db.execute("SELECT name, cents FROM accounts")) == {"ada": 700, "zoe": 300}
        assert list(db.execute("SELECT key FROM ledger")) == [(job,)]


async def test_email_is_sent_once(load: Load, url: str, caplog: pytest.LogCaptureFixture) -> None:
    sent: list[int] = []

    async def send(user: int, text: str) -> str:
        sent.append(user)
        return f"m-{len(sent)}"

    caplog.set_level("INFO")
    await run_twice(load("welcome.py", mailer={"send": send}), url, "welcome", 42)

    assert sent == [42]
    assert caplog.text.count("welcomed by m-1") == 2


@pytest.mark.parametrize("arrived", [True, False])
async def test_payout_whose_answer_was_lost_is_looked_for_first(load: Load, url: str, arrived: bool) -> None:
    ledger: dict[str, str] = {}
    calls: list[str] = []

    async def pay_out(account: str, cents: int, *, reference: str) -> str:
        calls.append(reference)
        if arrived or len(calls) > 1:
            ledger[reference] = f"p-{len(calls)}"
        if len(calls) == 1:
            raise ConnectionError("the answer was lost")
        return ledger[reference]

    async def find_payout(*, reference: str) -> str | None:
        return ledger.get(reference)

    app = load("payout.py", bank={"pay_out": pay_out, "find_payout": find_payout})
    job = await run_twice(app, url, "payout", "DE1", 500)

    assert calls == [job] * (1 if arrived else 2)
    assert list(ledger) == [job]
