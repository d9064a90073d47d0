"""Redacted arguments are shown by no command, whether or not the app is at hand, until somebody says `--reveal`."""

import json
from pathlib import Path
from typing import Any

import pytest

import streamjobs.cli
from streamjobs.client import Connections
from streamjobs.protocol.calls import Command
from streamjobs.protocol.keys import QueueKeys
from tests.cli.schema import load, problems
from tests.cli.support import Line
from tests.cli.test_cron import Workers

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
    commands = [["job", "show", job], ["dead", "show", job], ["dead", "list"], ["dead", "groups"], ["job", "list"]]
    return "".join(line(*command, *how, *words).stdout for command in commands for how in ((), ("--json",)))


def test_a_waiting_job_is_shown_without_even_before_a_worker_came(line: Line, job: str) -> None:
    assert '{"user":"ada","password":"***","pin":"***"}' in line("job", "show", job).stdout
    assert line.json("job", "show", job)["args"] == {"user": "ada", "password": "***", "pin": "***"}
    assert [one["args"]["pin"] for one in line.json("job", "list")["jobs"]] == ["***"]
    assert [one["args"]["pin"] for one in line.json("job", "list", "--reveal")["jobs"]] == [4711]


def test_crons_are_shown_without(line: Line) -> None:
    from tests.cli.secret_app import app

    workers = Workers(line)
    workers.start("a", app.registry.crons()["nightly"], queue="safe")
    server(line, "HSET", QueueKeys(line.namespace, "safe").config, "redact:secret.open password", 1)

    assert line.json("cron", "list")["crons"][0]["args"]["password"] == "***"
    assert line.json("cron", "list", "--reveal")["crons"][0]["args"]["password"] == SECRET
    workers.close()


def test_no_command_prints_arguments_by_another_way() -> None:
    """Whoever adds one that does goes through cli/secrets.py."""
    folder = Path(streamjobs.cli.__file__).parent
    sending = {"secrets.py", "enqueue.py", "lines.py", "arguments.py"}
    found = [
        f"{path.name}: {line.strip()}"
        for path in folder.glob("*.py")
        if path.name not in sending
        for line in path.read_text("utf-8").splitlines()
        if ".body" in line and "shown" not in line
    ]
    assert not found, found


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


def test_an_export_hides_them_and_is_not_imported(line: Line, job: str, tmp_path: Path) -> None:
    """Else it would bring jobs back with `***` for arguments."""
    work(line)
    hidden = line("dead", "export")
    whole = line("dead", "export", "--reveal")

    assert SECRET not in hidden.stdout
    assert "1 job with hidden arguments, which cannot be imported" in hidden.stderr
    assert problems(json.loads(hidden.stdout), load("streamjobs.dead.row")) == []
    assert SECRET in whole.stdout
    assert "hidden" not in whole.stderr
    line("dead", "purge", "--yes")
    refused = line("dead", "import", "-", stdin=hidden.stdout, exit=2).stderr
    assert "line 1: job " in refused
    assert "its arguments are hidden: export it with --reveal; nothing was imported" in refused
    line("dead", "import", "-", stdin=whole.stdout)
    assert SECRET in line("dead", "show", job, "--reveal").stdout


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
