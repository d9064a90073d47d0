"""What the tests of the command line share: one way to call it in this process, and its output taken apart."""

import json
from typing import Any

from click.testing import CliRunner, Result

from streamjobs.cli.main import cli

APP = "tests.cli.apps:app"


class Line:
    """A command line on one server and in one namespace. Nothing is ever asked: stdin is no terminal."""

    def __init__(self, url: str, namespace: str) -> None:
        self.url = url
        self.namespace = namespace

    def __call__(self, *words: str, exit: int = 0, stdin: str | bytes | None = None) -> Result:
        """Run a command and check its exit code."""
        where = ["--url", self.url, "--namespace", self.namespace]
        result = CliRunner().invoke(cli, [*words, *where], input=stdin)
        assert result.exit_code == exit, f"{words}: exit {result.exit_code}\n{result.stdout}{result.stderr}"
        return result

    def json(self, *words: str, exit: int = 0, stdin: str | bytes | None = None) -> dict[str, Any]:
        """Run a command with --json and return its document."""
        document: dict[str, Any] = json.loads(self(*words, "--json", exit=exit, stdin=stdin).stdout)
        return document

    def stats(self, *words: str) -> dict[str, Any]:
        """Return what `stats` tells programs, whatever its verdict."""
        where = ["--url", self.url, "--namespace", self.namespace, "--json"]
        result = CliRunner().invoke(cli, ["stats", *words, *where])
        assert result.exit_code in (0, 1), result.output
        document: dict[str, Any] = json.loads(result.stdout)
        return document

    def bury(self, *texts: str) -> None:
        """Let a job of one kind die for each text, and two of another."""
        for text in texts:
            self.enqueue("tests.fail", text)
        for n in ("1", "2"):
            self.enqueue("tests.refuse", n)
        self.work()

    def dead(self, *words: str) -> list[dict[str, Any]]:
        """Return what `dead list` tells programs."""
        found: list[dict[str, Any]] = self.json("dead", "list", *words)["jobs"]
        return found

    def enqueue(self, *words: str) -> str:
        """Enqueue one job by the app's signature and return its id."""
        return self("enqueue", "-A", APP, *words).stdout.strip()

    def work(self, *words: str) -> Result:
        """Let a worker run everything there is."""
        return self("worker", "-A", APP, "--burst", "-c", "4", *words)


def error_line(result: Result) -> str:
    """Return the only line on stderr, and check that it is an error's."""
    [line] = result.stderr.splitlines()
    assert line.startswith("error: "), line
    return line.removeprefix("error: ")
