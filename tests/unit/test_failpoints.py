"""Failpoints: what can be armed by the environment, and that nothing happens without."""

import ast
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from time import monotonic

import pytest

from streamjobs import InvalidOption
from streamjobs.core import failpoints
from tests.style.sources import ROOT, files, tree

PASSING = "from streamjobs.core.failpoints import failpoint\nfor _ in range(3): failpoint('settle.before'); print('.')"


def named_in_source() -> Iterator[str]:
    """Yield the name in each call of `failpoint` in the package."""
    for path in files(".py", "streamjobs"):
        for node in ast.walk(tree(path)):
            match node:
                case ast.Call(func=function, args=[ast.Constant(value=str(name))]):
                    if ast.unparse(function).split(".")[-1] == "failpoint":
                        yield name


def run(armed: str) -> "subprocess.CompletedProcess[str]":
    """Pass one failpoint three times, in a process of its own that tells of each."""
    command = [sys.executable, "-uc", PASSING]
    environment = {**os.environ, failpoints.VARIABLE: armed}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=30, check=False)


def test_the_table_names_every_failpoint_of_the_source() -> None:
    assert set(named_in_source()) == failpoints.NAMES


def test_nothing_is_armed_without_the_variable() -> None:
    assert failpoints.armed == {}
    assert failpoints.parse("") == {}
    assert run("").stdout == ".\n" * 3


@pytest.mark.parametrize(
    ("action", "code", "passes"),
    [("kill9", -signal.SIGKILL, 0), ("kill9@2", -signal.SIGKILL, 1), ("kill9@4", 0, 3), ("exit", 70, 0),
     ("exit@3", failpoints.EXIT_CODE, 2), ("raise@1", 1, 0)],
)  # fmt: skip
def test_the_variable_arms_a_process(action: str, code: int, passes: int) -> None:
    ended = run(f" settle.after=exit, settle.before={action},")

    assert (ended.returncode, ended.stdout) == (code, ".\n" * passes)
    assert ("Tripped: failpoint settle.before" in ended.stderr) == (action == "raise@1")


def test_a_stopped_process_goes_on_when_it_is_told_to() -> None:
    environment = {**os.environ, failpoints.VARIABLE: "settle.before=stop@2"}
    with subprocess.Popen(
        [sys.executable, "-uc", PASSING], cwd=ROOT, env=environment, stdout=subprocess.PIPE
    ) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        process.send_signal(signal.SIGCONT)
        assert process.communicate(timeout=30)[0] == b".\n" * 3


def test_a_pass_can_take_its_time() -> None:
    began = monotonic()
    failpoints.parse("settle.before=sleep:0.05")["settle.before"]()

    assert monotonic() - began >= 0.05


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("settle.befor=kill9", "no failpoint 'settle.befor'; use operate.after_adopt, "),
        ("=kill9", "no failpoint ''"),
        ("settle.before", "settle.before=''; use kill9, stop, exit, raise or sleep:SECONDS"),
        ("settle.before=kill", "settle.before='kill'"),
        ("settle.before=kill9:1", "settle.before='kill9:1'"),
        ("settle.before=sleep", "settle.before='sleep'"),
        ("settle.before=sleep:-1", "settle.before='sleep:-1'"),
        ("settle.before=sleep:nan", "settle.before='sleep:nan'"),
        ("settle.before=kill9@", "the number of the pass, from 1"),
        ("settle.before=kill9@0", "the number of the pass, from 1"),
        ("settle.before=kill9@-1", "the number of the pass, from 1"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        failpoints.parse(text)

    assert said in str(caught.value)
    assert failpoints.VARIABLE in str(caught.value)


def test_a_process_that_is_armed_wrongly_does_not_start() -> None:
    ended = run("settle.before=kaboom")

    assert ended.returncode == 1
    assert "STREAMJOBS_FAILPOINTS: settle.before='kaboom'; use kill9" in ended.stderr.splitlines()[-1]
