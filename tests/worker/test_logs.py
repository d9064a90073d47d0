"""Log lines as JSON: whoever logs while a handler runs, and that nothing is set up in a program of others."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from streamjobs import Context, JsonFormatter, Permanent, Retry, StreamJobs
from tests.worker.support import Queue, drain

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """What is logged while the test runs, as a program with its own logging would have it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.removeHandler(handler)
    root.setLevel(level)


async def test_any_logger_in_a_run_says_of_which_job(app: StreamJobs, lines: Lines) -> None:
    """In a task and in a thread, and only there."""
    other = logging.getLogger("app.pages")

    @app.job(name="task")
    async def task(ctx: Context[None]) -> None:
        other.info("in a task")
        ctx.log.info("by its own logger")

    @app.job(name="thread")
    def thread() -> None:
        other.info("in a thread", extra={"attempt": 7})

    jobs = {kind: (await app.kind(kind).enqueue()).id for kind in ("task", "thread")}
    await drain(app)
    other.info("outside")

    said = {line["message"]: line for line in lines()}
    assert (said["in a task"]["job_id"], said["in a task"]["kind"]) == (jobs["task"], "task")
    assert (said["in a task"]["queue"], said["in a task"]["attempt"]) == ("q", 1)
    assert (said["in a task"]["logger"], said["in a task"]["level"]) == ("app.pages", "info")
    assert (said["in a thread"]["job_id"], said["in a thread"]["attempt"]) == (jobs["thread"], 7)
    assert (said["by its own logger"]["logger"], said["by its own logger"]["job_id"]) == (
        "streamjobs.job.task",
        jobs["task"],
    )
    assert "job_id" not in said["outside"]


async def test_what_the_worker_says_of_a_job_has_its_fields(app: StreamJobs, queue: Queue, lines: Lines) -> None:
    @app.job(name="fails", retry=Retry(max_attempts=1))
    async def fails() -> None:
        raise Permanent("no\x1b[31m\u202e\n{}")

    dead = (await fails.enqueue()).id
    queue.make_group()
    [claim] = queue.crash()
    await drain(app)

    [line] = [one for one in lines() if one.get("job_id") == dead]
    assert (line["kind"], line["queue"], line["attempt"], line["level"]) == ("fails", "q", 2, "warning")
    assert claim.entry.decode() in line["message"]
    assert "\x1b[31m\u202e" in line["message"]


def test_a_line_is_one_line_of_ascii() -> None:
    record = logging.LogRecord("l", logging.ERROR, "f", 1, "%s", ("a\nb\x1b\u202e\ud800é",), None)

    line = JsonFormatter().format(record)

    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["message"] == "a\nb\x1b\u202e\ud800é"


async def test_an_embedded_worker_leaves_all_loggers_alone(app: StreamJobs) -> None:
    def state() -> list[tuple[Any, ...]]:
        loggers = [logging.getLogger(name) for name in (None, "streamjobs", "streamjobs.worker", "asyncio")]
        return [(one.level, one.propagate, list(one.handlers), list(one.filters), one.disabled) for one in loggers]

    @app.job(name="fails", retry=Retry(max_attempts=1))
    async def fails(ctx: Context[None]) -> None:
        ctx.log.info("fails")
        raise ValueError

    before = state()
    await fails.enqueue()
    async with app.worker(["q"], health_port=0, burst=True):
        during = state()

    assert state() == during == before
