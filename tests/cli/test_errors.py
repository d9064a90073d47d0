"""Each kind of failure is one line on stderr, with the documented exit code and no traceback."""

import errno
import os
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from streamjobs.cli.endings import Failed, ended_by
from streamjobs.cli.main import cli
from streamjobs.core import errors
from tests.cli.support import APP, Line, error_line

CODES = [
    (errors.InvalidOption("x"), 2),
    (errors.UnknownKind("x"), 2),
    (errors.PayloadTooLarge("x"), 2),
    (errors.MissingExtra("x"), 2),
    (errors.Rejected("x"), 2),
    (errors.Unavailable("x"), 3),
    (errors.NotSent("x"), 3),
    (errors.OutcomeUnknown("x"), 3),
    (errors.NotFound("x"), 4),
    (errors.QueueFull("x"), 5),
    (errors.Conflict("x"), 5),
    (errors.JobFailed("x"), 1),
    (errors.JobCancelled("x"), 1),
    (Failed("x", 5), 5),
    (KeyboardInterrupt(), 130),
    (click.Abort(), 130),
    (click.UsageError("x"), 2),
    (ZeroDivisionError("x"), 1),
    (SystemExit(3), 3),
]


@pytest.mark.parametrize(("error", "code"), CODES, ids=lambda value: type(value).__name__)
def test_exit_codes(error: BaseException, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended_by(error, verbose=False) == code

    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    assert said.err.count("\n") <= 1


def test_traceback_only_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise errors.NotFound("nobody\nhome\x1b[31m")
    except errors.NotFound as error:
        ended_by(error, verbose=True)

    *trace, last = capsys.readouterr().err.splitlines()
    assert trace[0].startswith("Traceback")
    assert last == "error: nobody home\\x1b[31m"


def test_full_disk_is_said_plainly(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "dup2", lambda *_: None)

    assert ended_by(OSError(errno.ENOSPC, "No space left on device"), verbose=False) == 1
    assert capsys.readouterr().err.startswith("error: no space is left")


def test_closed_stdout_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)

    with pytest.raises(SystemExit) as end:
        cli.main(["lua", "list"])

    assert end.value.code == 0


def test_closed_pipe_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended_by(OSError(errno.EPIPE, "Broken pipe"), verbose=True) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "expected MODULE:ATTRIBUTE"),
        ("jobs", "expected MODULE:ATTRIBUTE"),
        (":app", "expected MODULE:ATTRIBUTE"),
        ("no_such_module:app", "there is no module 'no_such_module'"),
        ("tests.no_such:app", "there is no module 'tests.no_such'"),
        ("tests.cli.apps:ap", "has no attribute 'ap'; did you mean tests.cli.apps:app?"),
        ("tests.cli.apps:not_an_app", "this is a str, not a StreamJobs"),
        ("broken_app:app", "importing broken_app failed: ValueError: my own fault"),
        ("needy_app:app", "importing needy_app failed: No module named 'no_such_module'"),
        ("leaving_app:app", "importing leaving_app failed: SystemExit: 7"),
        ("unreadable_app:app", "importing unreadable_app failed: SyntaxError"),
    ],
)
@pytest.mark.parametrize("command", [["worker"], ["enqueue", "kind"]], ids=["worker", "enqueue"])
def test_bad_app_path(
    command: list[str], path: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_app.py").write_text("raise ValueError('my own fault')\n")
    (tmp_path / "leaving_app.py").write_text("raise SystemExit(7)\n")
    (tmp_path / "needy_app.py").write_text("import no_such_module\n")
    (tmp_path / "unreadable_app.py").write_text("def :\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    result = CliRunner().invoke(cli, [*command, "-A", path, "--url", "memory://"])

    assert result.exit_code == 2
    assert said in error_line(result)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense", "'nonsense' has no scheme: it must begin with"),
        ("http://localhost", "it must begin with"),
        ("redis://:s3cret@localhost:x/0", "port"),
        ("redis://localhost/0?decode_responses=true", "decode_responses"),
    ],
)
@pytest.mark.parametrize("command", [["stats"], ["enqueue", "kind"], ["worker", "-A", APP]], ids=lambda c: c[0])
def test_bad_url(command: list[str], url: str, said: str) -> None:
    result = CliRunner().invoke(cli, [*command, "--url", url])

    assert result.exit_code == 2
    line = error_line(result)
    assert said in line
    assert "s3cret" not in line


def test_bad_namespace() -> None:
    for command in (["stats"], ["enqueue", "kind"]):
        result = CliRunner().invoke(cli, [*command, "--url", "memory://", "--namespace", "a:b"])

        assert result.exit_code == 2
        assert "namespace 'a:b'" in error_line(result)


@pytest.mark.parametrize(
    "words", [["stats"], ["worker", "-A", APP], ["enqueue", "-A", APP, "add", "1"]], ids=lambda w: w[0]
)
def test_wrong_password_ends_it_at_once(line: Line, words: list[str]) -> None:
    line.url = line.url.replace("unix://", "unix://:s3cret@")

    result = line(*words, exit=2)

    said = result.stderr.splitlines()[-1]
    assert said.startswith("error: ")
    assert "refuses to connect" in said
    assert "check user and password in the URL" in said
    assert "s3cret" not in result.stderr


def test_wrong_type_of_a_key_names_it(line: Line) -> None:
    """What somebody else wrote under our names is an error of the server's, said once."""
    from streamjobs.client import Connections
    from streamjobs.protocol.calls import Command

    connections = Connections(line.url)
    connections.sync().run(Command(["SET", f"{line.namespace}:queues", "x"], bool))
    connections.close()

    said = error_line(line("queue", "list", exit=2))
    assert "WRONGTYPE" in said
    assert "use another namespace, or remove that key" in said


def test_worker_needs_an_app() -> None:
    result = CliRunner().invoke(cli, ["worker", "--url", "memory://"])

    assert result.exit_code == 2
    assert "-A MODULE:APP" in error_line(result)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-c", "0"], "concurrency=0"),
        (["-c", "many"], "--concurrency"),
        (["--pool", "0"], "pool=0"),
        (["--max-process-bytes", "2X"], "is not a size"),
        (["--max-process-bytes", ""], "is not a size"),
        (["--lease", "1ms"], "lease"),
        (["--grace", "soon"], "--grace"),
        (["-Q", "a,,b"], "queue ''"),
        (["-w", "0"], "--processes"),
        (["-w", "many"], "--processes"),
        (["--log-format", "xml"], "--log-format"),
    ],
)
def test_bad_worker_options(words: list[str], said: str) -> None:
    result = CliRunner().invoke(cli, ["worker", "-A", APP, "--url", "memory://", *words])

    assert result.exit_code == 2
    assert said in error_line(result)
