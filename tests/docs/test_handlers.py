"""docs/handlers.md is true: its modules work, in processes too, its commands say what it shows, and its tables are the
code's.
"""

import builtins
import re
import shlex
import sqlite3
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

import streamjobs
from streamjobs import Context, Exponential, JobOptions, Retry, State
from streamjobs.core.classify import classify
from tests.cli.support import Line
from tests.docs.blocks import blocks, commands, write_files
from tests.worker.processes import until

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "handlers.md"
MODULES = ["handlers", "visits", "parcels"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the page's modules, which can be imported."""
    assert write_files(DOCUMENT, tmp_path) == [f"{name}.py" for name in MODULES]
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in MODULES:
        sys.modules.pop(name, None)


def test_handlers_run_where_the_page_says(server_url: str, namespace: str, folder: Path) -> None:
    line = Line(server_url, namespace)
    line("enqueue", "-A", "handlers:app", "pages.fetch", "example.org")
    measured = line("enqueue", "-A", "handlers:app", "files.size", str(folder / "handlers.py")).stdout.strip()
    [block] = [block for block in blocks(DOCUMENT) if block.language == "console"]

    said = []
    for command in commands(block):
        _, *words = shlex.split(command.words)
        said.append(line(*words).stdout)
        for shown in command.output:
            fragment = " ".join(shown.removesuffix("...").split())
            assert fragment in " ".join(said[-1].split())
    line("worker", "-A", "handlers:app", "--burst")

    found = said[0].strip()
    assert line.json("job", "wait", found)["result"] == 2
    assert line.json("job", "wait", measured)["result"] == (folder / "handlers.py").stat().st_size


def test_jobs_share_what_the_lifespan_yields(server_url: str, namespace: str, folder: Path) -> None:
    line = Line(server_url, namespace)
    job = line("enqueue", "-A", "visits:app", "visits.note", "home").stdout.strip()

    line("worker", "-A", "visits:app", "--burst")

    db = sqlite3.connect(folder / "visits.db")
    assert db.execute("SELECT page, job FROM visits").fetchall() == [("home", job)]
    db.close()


async def test_each_end_is_that_of_the_table(url: str, namespace: str, folder: Path) -> None:
    parcels = import_module("parcels")
    app, send = parcels.app, parcels.send.options(result_ttl=60)
    app.use(url, namespace=namespace)
    said = ["no such address", "too many parcels", "closed until tomorrow", "withdrawn", "strike", ""]
    jobs = {answer: send.enqueue_sync(answer) for answer in said}

    async with app.worker():
        await until(lambda: all(job.status_sync().state not in (State.WAITING, State.RUNNING) for job in jobs.values()))
    ends = {answer: job.status_sync() for answer, job in jobs.items()}
    now_ms = min(int(job.id.partition(":")[2].partition("-")[0]) for job in jobs.values())
    await app.aclose()

    dead, busy, closed, withdrawn, strike, silent = ends.values()
    assert (dead.state, dead.reason) == (State.DEAD, "permanent")
    assert withdrawn.state == State.CANCELLED
    assert [one.attempt for one in (busy, closed, strike, silent)] == [1, 1, 2, 2]
    waits_s = [(one.due_ms - now_ms) / 1000 for one in (busy, closed, strike, silent)]
    for wait_s, least_s in zip(waits_s, (30, 12 * 3600, 3600, 2), strict=True):
        assert least_s <= wait_s < least_s + 20
    assert [one.history[-1].error_class for one in (strike, silent)] == ["carrier", "carrier"]
    app.close()


def rows(heading: str) -> dict[str, str]:
    """Return the rows of the table that begins with this line: the first cell, and the second."""
    table = DOCUMENT.read_text("utf-8").partition(f"\n{heading}\n")[2].partition("\n\n")[0].splitlines()[1:]
    return {cells[1].strip(): cells[2].strip() for cells in (row.split("|") for row in table)}


def test_ctx_offers_what_the_table_has() -> None:
    told = {name for cell in rows("| `ctx.` | |") for name in re.findall(r"`(\w+)", cell)}

    assert told == {name for name in vars(Context) if not name.startswith("_")}


def test_options_and_defaults_of_retries_are_those_of_the_code() -> None:
    told = {name.strip("`"): value for name, value in rows("| option | default | |").items() if name}
    retry = Retry()

    assert JobOptions().retry == retry
    assert told == {
        "max_attempts": str(retry.max_attempts),
        "backoff": f"`{retry.backoff}`".replace("'", '"'),
        "permanent": "none",
        "max_crashes": str(retry.max_crashes),
    }
    for draw, seconds in ((0.0, 95), (1.0, 190)):
        assert sum(Exponential().delay_ms(n, draw) for n in range(1, retry.max_attempts)) == seconds * 1000


def test_classes_are_those_of_the_table() -> None:
    known = {**vars(builtins), **{name: getattr(streamjobs, name) for name in streamjobs.__all__}}
    known["msgspec.ValidationError"] = msgspec.ValidationError

    tried = set()
    for names, errors in rows("| class | errors |").items():
        for error in (known[word] for word in re.findall(r"`([\w.]+)`", errors) if word in known):
            if isinstance(error, type) and issubclass(error, Exception):
                assert classify(error("")) == names.strip("`"), error
                tried.add(names.strip("`"))

    assert tried == {"timeout", "rate_limited", "connection", "validation", "bug"}
