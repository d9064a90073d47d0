"""The README is true: its files are written and its commands run, in order, in one folder."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.docs.blocks import Block, Command, blocks, commands

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
SKIPPED = ("pip ", "git clone", "make", "cd ", "docker ", "python -m venv", "source ")
COMMAND_S = 60


class Shell:
    """Runs the commands of one document; a worker stays in the background until the document ends."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self.background: list[tuple[Command, subprocess.Popen[bytes], Path]] = []

    def run(self, command: Command) -> None:
        """Run it and check that the output shown for it was printed; a worker is only started."""
        words = command.words.removesuffix("&").strip()
        if re.match(r"streamjobs (?:.* )?worker\b", words) and "--burst" not in words:
            log = self.folder / f"worker-{command.line}.log"
            with log.open("wb") as sink:
                process = self._start(f"exec {words}", sink)
            self.background.append((command, process, log))
            return
        process = self._start(words, subprocess.PIPE)
        try:
            output, _ = process.communicate(timeout=COMMAND_S)
        finally:
            _end(process, signal.SIGKILL)
        expect(command, output.decode("utf-8", "replace"))
        assert process.returncode == 0, f"{where(command)} ended with {process.returncode}:\n{output.decode()}"

    def close(self) -> None:
        """End the workers in order and check what they were said to print."""
        for _, process, log in self.background:
            _await_output(process, log)
            _end(process, signal.SIGTERM)
        for command, process, log in self.background:
            text = log.read_text("utf-8", "replace")
            assert process.returncode == 0, f"{where(command)} ended with {process.returncode}:\n{text}"
            expect(command, text)

    def _start(self, words: str, sink: IO[bytes] | int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            ["/bin/sh", "-c", words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def where(command: Command) -> str:
    """Return how a finding names a command."""
    return f"{README.name}:{command.line}: {command.words}"


def expect(command: Command, output: str) -> None:
    """Check that every line shown is in the output; `...` in it stands for anything."""
    plain = " ".join(output.split())
    for line in command.output:
        pieces = [re.escape(" ".join(piece.split())) for piece in re.split(r"\.\.\.|…", line)]
        assert re.search(".*".join(pieces), plain), f"{where(command)}\nshows {line!r}, got:\n{output}"


def _await_output(process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait for a worker's first line: a signal that came earlier would find it without its handlers."""
    for _ in range(200):
        try:
            process.wait(timeout=0.05)
            return
        except subprocess.TimeoutExpired:
            if log.stat().st_size:
                return


def _end(process: "subprocess.Popen[bytes]", how: signal.Signals) -> None:
    """Send the signal to the command and its children; kill what has not ended 30 s later."""
    for sent in (how, signal.SIGKILL):
        # Once it has been waited for, its process group may be somebody else's.
        if process.poll() is None:
            os.killpg(process.pid, sent)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            continue
    if process.stdout is not None:
        process.stdout.close()


@pytest.fixture
def shell(tmp_path: Path, server_url: str, namespace: str) -> Iterator[Shell]:
    """A shell in an empty folder; commands that name no server use the test's."""
    tools = tmp_path / ".bin"
    tools.mkdir()
    (tools / "streamjobs").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m streamjobs "$@"\n')
    (tools / "streamjobs").chmod(0o755)
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("STREAMJOBS_", "REDIS_"))}
    folder = tmp_path / "first minute"
    folder.mkdir()
    shell = Shell(
        folder,
        {
            **inherited,
            "HOME": str(tmp_path),
            "PATH": f"{tools}:{Path(sys.executable).parent}:{inherited['PATH']}",
            "PYTHONPATH": str(ROOT),
            "STREAMJOBS_URL": server_url,
            "STREAMJOBS_NAMESPACE": namespace,
        },
    )
    yield shell
    for _, process, _ in shell.background:
        _end(process, signal.SIGTERM)


def test_readme_does_what_it_says(shell: Shell) -> None:
    ran = 0
    for block in blocks(README):
        if block.language == "python" and block.file:
            (shell.folder / block.file).write_text(block.text, "utf-8")
        elif block.language == "console":
            for command in commands(block):
                if not command.words.startswith(SKIPPED):
                    shell.run(command)
                    ran += 1
    shell.close()
    assert ran, "no command was run: are the console blocks marked as such?"


def test_readme_is_short() -> None:
    assert README.read_text("utf-8").count("\n") <= 150


def test_readme_links_every_page() -> None:
    text = README.read_text("utf-8")
    assert [path.name for path in sorted((ROOT / "docs").glob("*.md")) if f"(docs/{path.name})" not in text] == []


DOCUMENTS = [README, *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
PYTHON = [(path, block) for path in DOCUMENTS if path.exists() for block in blocks(path) if block.language == "python"]


@pytest.mark.parametrize(
    ("path", "block"), PYTHON, ids=[f"{path.relative_to(ROOT)}:{block.line}" for path, block in PYTHON]
)
def test_python_in_documents_compiles(path: Path, block: Block) -> None:
    """`await` outside of a function is taken as the reader takes it: as part of some coroutine."""
    body = "async def _() -> None:\n    pass\n" + "".join(f"    {line}" for line in block.text.splitlines(True))
    try:
        compile(block.text, f"{path}:{block.line}", "exec")
    except SyntaxError:
        compile(body, f"{path}:{block.line}", "exec")
