"""Threats T12 and T19: a password in a URL comes out nowhere, and neither do the arguments of jobs."""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from click.testing import CliRunner

from streamjobs import InvalidOption, Permanent, StreamJobs, StreamJobsError
from streamjobs.cli.main import cli
from streamjobs.client import Connections
from tests.cli import apps
from tests.cli.support import APP, Line
from tests.worker.support import FAST, WITHIN_S, make_app, within

CANARY = "c4n4ry~s3cr3t"
ROOT = Path(__file__).resolve().parents[2]

COMMANDS = [
    ["stats"],
    ["doctor"],
    ["queue", "list"],
    ["queue", "pause", "q"],
    ["queue", "limit", "q"],
    ["job", "show", "q:1-1"],
    ["job", "cancel", "q:1-1"],
    ["dead", "list"],
    ["dead", "groups"],
    ["dead", "purge", "--yes"],
    ["cron", "list"],
    ["enqueue", "k"],
    ["enqueue", "-A", APP, "add", "1"],
]
UNREACHABLE = [
    f"redis://user:{CANARY}@127.0.0.1:1/0",
    f"rediss://:{CANARY}@127.0.0.1:1/0",
    f"redis://:p@{CANARY}@127.0.0.1:1/0",
    f"unix://user:{CANARY}@/no/such/socket",
]
UNREADABLE = [
    f"redis://:{CANARY}@host:port/0",
    f"redis://:{CANARY}/x@host",
    f"redis://:{CANARY}",
    f"redis://host?password={CANARY}",
    f"redis://host/0#{CANARY}",
    f"redis://:{CANARY}@a..b",
    f"redis://:{CANARY}@host/zero",
    f"http://:{CANARY}@host",
    f"embedded://jobs?password={CANARY}",
    f":{CANARY}@host",
]


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let nothing of this machine's environment decide, and leave the app of other tests where it was."""
    for name in ("STREAMJOBS_URL", "STREAMJOBS_APP", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    yield
    apps.app.use("memory://cli-tests")


def said(*words: str) -> str:
    """Run a command line and return all that it said."""
    result = CliRunner().invoke(cli, list(words))
    return result.stdout + result.stderr


@pytest.mark.parametrize("url", [*UNREACHABLE, *UNREADABLE])
def test_threat_T12_no_command_tells_it_when_it_fails(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjobs.cli.settings.PATIENCE_S", 0.01)
    # Whether a URL can be read is the same for all of them; what cannot be reached is waited for.
    for words in COMMANDS if url == UNREACHABLE[0] else COMMANDS[:2] + COMMANDS[-2:]:
        for how in ("-v", "--json"):
            text = said(*words, how, "--url", url)
            assert "error: " in text
            assert CANARY not in text
            assert how == "--json" or "Traceback" in text


@pytest.mark.parametrize("url", UNREADABLE)
def test_threat_T12_nor_where_it_stands_elsewhere(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STREAMJOBS_URL", url)
    assert CANARY not in said("stats", "-v")
    assert CANARY not in said("worker", "-A", APP, "-v")
    monkeypatch.delenv("STREAMJOBS_URL")
    monkeypatch.setenv("REDIS_URL", url)
    assert CANARY not in said("stats", "-v")
    for text in (f'url = "{url}"', f"url = {url}", f"url = ['{url}']"):
        (tmp_path / "streamjobs.toml").write_text(text)
        shown = said("stats", "-v")
        assert "error: " in shown
        assert CANARY not in shown


@pytest.fixture
def secured(server_url: str) -> Iterator[str]:
    """The URL of a user with a password on a real server."""
    admin = redis.Redis.from_url(server_url)
    admin.execute_command("ACL", "SETUSER", "keeper", "reset", "on", f">{CANARY}", "~*", "&*", "+@all")
    yield server_url.replace("unix://", f"unix://keeper:{CANARY}@")
    admin.execute_command("ACL", "DELUSER", "keeper")
    admin.close()


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_threat_T12_no_command_tells_it_when_all_is_well(secured: str, namespace: str, words: list[str]) -> None:
    where = ["--url", secured, "--namespace", namespace]

    for how in ("-v", "--json"):
        assert CANARY not in said(*words, how, *where)


@pytest.mark.parametrize("words", [*COMMANDS, ["worker", "-A", APP]], ids=" ".join)
def test_threat_T12_a_wrong_password_is_not_told(server_url: str, namespace: str, words: list[str]) -> None:
    url = server_url.replace("unix://", f"unix://default:{CANARY}@").replace("default:", "nobody:")

    text = said(*words, "-v", "--url", url, "--namespace", namespace)

    assert "check user and password in the URL" in text
    assert CANARY not in text


def test_threat_T12_a_worker_logs_it_nowhere(secured: str, namespace: str) -> None:
    line = Line(secured, namespace)
    line.enqueue("tests.fail", "x")

    for style in ("text", "json"):
        text = line.work("-v", "--log-format", style).stderr
        assert "worker " in text
        assert CANARY not in text


def shown(error: BaseException) -> str:
    return str(error) + repr(error) + "".join(traceback.format_exception(error))


def test_threat_T12_nothing_that_is_printed_of_an_app_tells_it(secured: str, namespace: str) -> None:
    app = make_app(secured, namespace)
    kind = app.job(name="k")(lambda: None)
    handle = app.send_sync("k")
    things: list[Any] = [app, app.connections, app.connections.target, app.registry, app.queue("q"), kind, handle]
    things += [app.connections.sync(), app.connections.aio(), handle.status_sync()]

    text = "".join(f"{thing!r} {thing!s}" for thing in things)
    app.close()

    assert CANARY not in text


@pytest.mark.parametrize("url", UNREACHABLE)
async def test_threat_T12_no_error_of_the_library_tells_it(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    app = StreamJobs(url, enqueue_timeout=0.05)
    texts = []
    for call in (lambda: app.send("k"), lambda: asyncio.to_thread(app.send_sync, "k"), app.handle("q:1-1").status):
        with pytest.raises(StreamJobsError) as caught:
            await call()
        texts.append(shown(caught.value))
    worker = app.make_worker(["q"], FAST)
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(WITHIN_S):
        while "trying on" not in caplog.text:
            await asyncio.sleep(0)
    worker.stop()
    await running
    await app.aclose()

    assert CANARY not in "".join(texts)
    assert CANARY not in caplog.text


@pytest.mark.parametrize("url", UNREADABLE)
def test_threat_T12_a_URL_that_cannot_be_read_is_not_shown(url: str) -> None:
    for call in (StreamJobs, Connections):
        with pytest.raises(InvalidOption) as caught:
            call(url)
        assert CANARY not in shown(caught.value)


def test_threat_T19_a_password_on_the_command_line_is_warned_of(secured: str, namespace: str) -> None:
    line = Line(secured, namespace)

    for words in (["stats"], ["enqueue", "-A", APP, "add", "1"]):
        warned = line(*words).stderr
        assert "the password in --url can be read by everybody on this machine (ps)" in warned
        assert "STREAMJOBS_URL" in warned
        assert CANARY not in warned
        assert line(*words, "-q").stderr == ""


def test_threat_T19_elsewhere_it_is_not(secured: str, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMJOBS_URL", secured)

    result = CliRunner().invoke(cli, ["queue", "list", "--namespace", namespace])

    assert "password" not in result.stderr


def test_threat_T19_no_process_has_it_in_its_arguments(secured: str, namespace: str, tmp_path: Path) -> None:
    """Neither a supervisor nor the children that it starts."""
    (tmp_path / "plain_app.py").write_text("from streamjobs import StreamJobs\napp = StreamJobs()\n")
    environment = {**os.environ, "STREAMJOBS_URL": secured, "STREAMJOBS_NAMESPACE": namespace, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "streamjobs", "worker", "-A", "plain_app:app", "-w", "2"],
        env=environment,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    lines = []
    while sum("serves" in line for line in lines) < 2 and (line := process.stderr.readline()):
        lines.append(line)
    found = arguments(process.pid)
    process.send_signal(signal.SIGTERM)
    rest = process.stderr.read()
    process.stderr.close()

    assert process.wait(30) == 0
    assert len(found) >= 3
    assert not [words for words in found if CANARY in words]
    assert CANARY not in "".join(lines) + rest


def arguments(session: int) -> list[str]:
    """Return the command lines of all processes of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(folder.joinpath("stat").read_text().rpartition(")")[2].split()[3]) == session:
                found.append(folder.joinpath("cmdline").read_text("utf-8", "replace"))
    return found


def bad(secret: str) -> None:
    raise ValueError("no")


def refuses(secret: str) -> None:
    raise Permanent("never")


def good(secret: str) -> str:
    return "fine"


async def test_threat_T12_arguments_are_in_no_log_at_any_level(
    url: str, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Only their names may be; whether the jobs end well, fail, do not decode, or are of no known kind."""
    caplog.set_level(logging.DEBUG)
    app = make_app(url, namespace)
    handlers: list[Callable[[str], Any]] = [good, bad, refuses]
    handles = []
    for handler in handlers:
        kind = app.job(name=handler.__name__, concurrency=2)(handler)
        handles.append(await kind.options(headers={"a": "b"}, dedupe_key=handler.__name__).enqueue(CANARY))
    handles += [await app.send("unknown", {"secret": CANARY}), await app.send("good", {"secret": CANARY}, delay=0.01)]
    app.connections.sync().run(raw(app, "kind", "good", "body", json.dumps({"secret": [CANARY]})))
    app.connections.sync().run(raw(app, "kind", "good", "body", f"{{{CANARY}"))
    app.connections.sync().run(raw(app, "kind", "good", "body", json.dumps({"secret": CANARY, "more": CANARY})))
    app.connections.sync().run(raw(app, "kind", "good", "body", "{}", "meta", json.dumps({"v": CANARY})))

    worker = app.make_worker(options=FAST)
    running = asyncio.create_task(worker.run())
    await within(worker.ready)
    await asyncio.gather(*(handles[n].result(timeout=10) for n in (0, 2, 4)), return_exceptions=True)
    worker.stop()
    await running
    await app.aclose()

    assert len(caplog.records) > 5
    assert CANARY not in caplog.text


def raw(app: StreamJobs, *fields: str) -> Any:
    """Return the request that adds an entry by hand."""
    from streamjobs.protocol.calls import Command
    from streamjobs.protocol.keys import QueueKeys

    return Command(["XADD", QueueKeys(app.namespace, "q").stream, "*", *fields], lambda reply: reply)
