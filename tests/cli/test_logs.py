"""The worker's log: text or JSON, on stderr, for the time that the worker runs."""

import json
import logging
import re

import pytest

from streamjobs.cli.logs import logging_to_stderr
from tests.cli.support import Line

log = logging.getLogger("streamjobs.worker")


def test_text_lines_have_time_and_level(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to_stderr("text", logging.INFO):
        log.debug("unseen")
        log.warning("job %s said: %s", "q:1-1", "\x1b[31mred")

    line = capsys.readouterr().err
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z WARNING job q:1-1 said: \\x1b\[31mred\n", line)


def test_json_lines_have_the_job(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to_stderr("json", logging.INFO):
        log.info("hello", extra={"job_id": "q:1-1", "kind": "k", "queue": "q", "attempt": 2})
        try:
            raise ValueError("no")
        except ValueError:
            log.exception("failed")

    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["message"], first["level"], first["logger"]) == ("hello", "info", "streamjobs.worker")
    assert (first["job_id"], first["kind"], first["queue"], first["attempt"]) == ("q:1-1", "k", "q", 2)
    assert second["traceback"].endswith("ValueError: no")


def test_nothing_is_left_behind(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("streamjobs")
    before = logger.level, logger.propagate, list(logger.handlers), list(logging.getLogger().handlers)

    with logging_to_stderr("text", logging.INFO):
        pass

    assert (logger.level, logger.propagate, list(logger.handlers), list(logging.getLogger().handlers)) == before


def test_failure_is_logged_without_the_arguments(line: Line) -> None:
    job = line.enqueue("tests.refuse", "--arg", "n=4711")

    lines = [json.loads(text) for text in line.work("--log-format", "json").stderr.splitlines()]

    [failure] = [one for one in lines if one.get("job_id") == job]
    assert (failure["kind"], failure["queue"], failure["level"]) == ("tests.refuse", "math", "warning")
    assert "is dead (permanent)" in failure["message"]
    assert '"n"' not in failure["message"]


def test_quiet_worker_says_only_what_went_wrong(line: Line) -> None:
    line.enqueue("tests.greet", "Ada")

    assert line.work("-q").stderr == ""
