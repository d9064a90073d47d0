"""Redacted arguments are shown by no command, whether or not the app is at hand, until somebody says `--reveal`."""

from typing import Any

import pytest

from streamjobs.client import Connections
from streamjobs.protocol.calls import Command
from streamjobs.protocol.keys import QueueKeys
from tests.cli.support import Line

SECRET, PIN = "s3cret", "4711"
APP = "tests.cli.secret_app:app"


def server(line: Line, *words: Any) -> Any:
    """Send one command to the server."""
    connections = Connections(line.url)
    try:
        return connections.sync().run(Command(words, lambda reply: reply))
    finally:
        connections.close()


@pytest.fixture
def job(line: Line) -> str:
    """A job with two secrets, enqueued by its app; no worker has come yet."""
    return line("enqueue", "-A", APP, "secret.open", "ada", SECRET, PIN).stdout.strip()


def work(line: Line) -> str:
    return line("worker", "-A", APP, "--burst", "-v").stderr


def everything(line: Line, job: str, *words: str) -> str:
    """Return what all commands say that print jobs."""
    commands = [["job", "show", job], ["dead", "show", job], ["dead", "list"], ["dead", "groups"]]
    return "".join(line(*command, *how, *words).stdout for command in commands for how in ((), ("--json",)))


def test_a_waiting_job_is_shown_without_even_before_a_worker_came(line: Line, job: str) -> None:
    assert '{"user":"ada","password":"***","pin":"***"}' in line("job", "show", job).stdout
    assert line.json("job", "show", job)["args"] == {"user": "ada", "password": "***", "pin": "***"}


def test_a_dead_job_is_shown_without_and_the_worker_logs_nothing(line: Line, job: str) -> None:
    logged = work(line)

    shown = everything(line, job)
    assert job in shown
    assert "***" in shown
    for text in (logged, shown):
        assert SECRET not in text
        assert PIN not in text


def test_reveal_shows_it(line: Line, job: str) -> None:
    assert SECRET in line("job", "show", job, "--reveal").stdout
    work(line)

    for words in (["job", "show", job], ["dead", "show", job], ["dead", "list"]):
        assert SECRET in line(*words, "--reveal", "--json").stdout


def test_what_is_no_object_is_hidden_whole(line: Line, job: str) -> None:
    server(line, "XADD", QueueKeys(line.namespace, "safe").stream, "*", "kind", "secret.open", "body", f"{{{SECRET}")
    work(line)

    jobs = line.json("dead", "list", "--reason", "undecodable")["jobs"]
    assert [one["args"] for one in jobs] == ["***"]
    assert SECRET not in str(line.json("dead", "list"))


def test_other_kinds_are_shown(line: Line, job: str) -> None:
    other = line("enqueue", "-A", APP, "secret.none", "open").stdout.strip()

    assert line.json("job", "show", other)["args"] == {"password": "open"}


def test_workers_say_it_where_producers_did_not(line: Line) -> None:
    job = line(
        "enqueue", "secret.open", "--arg", "user=ada", "--arg", f"password={SECRET}", "-Q", "safe"
    ).stdout.strip()
    assert SECRET in line("job", "show", job).stdout
    work(line)

    assert SECRET not in everything(line, job)


def test_what_was_said_once_stays_said(line: Line, job: str) -> None:
    """By an older version of the code, say, which may run still."""
    config = QueueKeys(line.namespace, "safe").config
    server(line, "HSET", config, "redact:secret.open user", 1)
    work(line)

    assert line.json("dead", "show", job)["args"] == {"user": "***", "password": "***", "pin": "***"}
