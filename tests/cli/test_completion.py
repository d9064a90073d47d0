"""What shells complete, asked as their scripts ask."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamjobs.cli.commands import COMPLETION
from streamjobs.cli.main import cli
from streamjobs.client import Connections
from streamjobs.protocol import intake
from tests.cli.support import APP, Line, error_line

SHELLS = ["bash", "zsh", "fish"]


def ask(words: str, shell: str = "bash") -> list[str]:
    """Return what the last of these words may become; nothing else may be said."""
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1), COMPLETION: f"{shell}_complete"}
    if shell == "fish":
        asked["COMP_CWORD"] = words.split(" ")[-1]
    done = CliRunner().invoke(cli, [], env=asked)
    assert (done.exit_code, done.stderr) == (0, "")
    rows = [row for row in done.stdout.splitlines() if row]
    if shell == "zsh":
        return rows[1::3]
    return [row.partition(",")[2].partition("\t")[0] for row in rows]


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_and_options(shell: str) -> None:
    assert ask("streamjobs st", shell) == ["stats"]
    assert ask("streamjobs dead re", shell) == ["replay"]
    assert ask("streamjobs stats --by ", shell) == ["queue", "kind", "worker"]
    assert "--window" in ask("streamjobs stats --w", shell)
    assert ask("streamjobs completion ", shell) == SHELLS
    assert ask("streamjobs stats --version we", shell) == []


@pytest.mark.parametrize("shell", SHELLS)
def test_names_of_queues_come_from_the_server(line: Line, shell: str) -> None:
    line.enqueue("tests.greet", "Ada")
    line.enqueue("tests.add", "1")
    where = f"--url {line.url} --namespace {line.namespace}"

    assert ask(f"streamjobs stats {where} ", shell) == ["default", "math"]
    assert ask(f"streamjobs {where} queue pause ma", shell) == ["math"]
    assert ask(f"streamjobs {where} dead list -Q de", shell) == ["default"]


def test_several_queues_in_one_word(line: Line) -> None:
    line.enqueue("tests.greet", "Ada")
    line.enqueue("tests.add", "1")

    where = f"--url {line.url} --namespace {line.namespace}"
    assert ask(f"streamjobs dead list {where} -Q default,") == ["default,math"]
    assert ask(f"streamjobs worker {where} -Q x,de") == ["x,default"]


def test_what_others_wrote_is_no_name(line: Line) -> None:
    line.enqueue("tests.greet", "Ada")
    connections = Connections(line.url)
    connections.sync().run(intake.announce(line.namespace, ["$(reboot)", "a b", "*"]))
    connections.close()

    assert ask(f"streamjobs stats --url {line.url} --namespace {line.namespace} ") == ["default"]


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1", "nonsense://"])
def test_without_a_server_there_are_none(url: str) -> None:
    assert ask(f"streamjobs stats --url {url} ") == []


def test_a_server_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamjobs.cli.complete.PATIENCE_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        assert ask(f"streamjobs stats --url redis://127.0.0.1:{mute.getsockname()[1]} ") == []


def test_no_server_is_started(tmp_path: Path) -> None:
    folder = tmp_path / "none"

    assert ask(f"streamjobs stats --url embedded://{folder} ") == []
    assert not folder.exists()


def test_kinds_come_from_the_app_that_was_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert ask(f"streamjobs enqueue -A {APP} tests.f") == ["tests.fail"]
    assert ask("streamjobs enqueue tests.") == []
    assert ask("streamjobs enqueue -A nowhere:app tests.") == []
    assert ask(f"streamjobs dead replay -A {APP} --kind tests.gr") == ["tests.greet"]

    monkeypatch.chdir(tmp_path)
    (tmp_path / "streamjobs.toml").write_text(f'app = "{APP}"\n')
    assert ask("streamjobs enqueue tests.") == []
    monkeypatch.setenv("STREAMJOBS_APP", APP)
    assert ask("streamjobs enqueue tests.g") == ["tests.greet"]


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_ask_by_the_variable(shell: str) -> None:
    script = CliRunner().invoke(cli, ["completion", shell]).stdout

    assert f"{COMPLETION}={shell}_complete" in script
    assert "streamjobs" in script


def test_other_shells_are_refused() -> None:
    assert "'tcsh'" in error_line(CliRunner().invoke(cli, ["completion", "tcsh"]))


def test_bash_completes(line: Line) -> None:
    """As a person has it: the script is evaluated, and its function called."""
    line.enqueue("tests.add", "1")
    program = """
eval "$(streamjobs completion bash)"
COMP_WORDS=(streamjobs queue pause ma); COMP_CWORD=3
_streamjobs_completion streamjobs
echo "${COMPREPLY[@]}"
"""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "STREAMJOBS_URL": line.url, "STREAMJOBS_NAMESPACE": line.namespace}

    done = subprocess.run(
        ["bash", "--norc", "-c", program], env=environment, capture_output=True, text=True, timeout=60
    )

    assert (done.stdout, done.stderr) == ("math\n", "")
