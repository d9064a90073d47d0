"""What a command is told beside its own options: flag, then environment, then file, then default.

An app's own URL and namespace stand between the flag and the rest.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import click

from streamjobs.core.errors import InvalidOption, Unavailable

if TYPE_CHECKING:
    from streamjobs.app import StreamJobs
    from streamjobs.client import Connections, Target
    from streamjobs.client.sync import SyncExecutor
    from streamjobs.protocol.keys import QueueKeys

PATIENCE_S = 5.0
"""How long a command tries to reach the server."""
_PAUSE_S = 0.2
GENERAL = {"url", "namespace", "app", "color"}
WORKER = set(
    "queues concurrency processes lease sweep grace pool max_jobs_per_process max_process_bytes allow_eviction"
    " health_port metrics_port loop log_format".split()
)


class Settings:
    """The global options of one command line, and the server that they lead to."""

    def __init__(self) -> None:
        self.flags: dict[str, Any] = {}
        self.words: tuple[str, ...] = ()
        """The whole command line, without the program's name."""

    @property
    def as_json(self) -> bool:
        return "as_json" in self.flags

    @property
    def quiet(self) -> bool:
        return "quiet" in self.flags

    @property
    def verbose(self) -> bool:
        return "verbose" in self.flags

    @property
    def color(self) -> bool | None:
        """True, False, or None for whatever the output is."""
        choice = self.get("color") or "auto"
        if choice not in ("auto", "always", "never"):
            raise InvalidOption(f"color {choice!r:.40}: use auto, always or never")
        if choice == "auto":
            plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
            return False if plain else None
        return choice == "always"

    def get(self, name: str) -> str | None:
        """Return a setting from its flag, its variable or the file."""
        value, _ = self.found(name)
        return None if value is None else str(value)

    def found(self, name: str) -> tuple[Any, str]:
        """Return a setting from its flag, its variable (a text) or the file (a text, a number or a list),
        and where it stands; None where nothing says it.
        """
        if name in self.flags:
            return self.flags[name], f"--{name}"
        variable = f"STREAMJOBS_{name.upper()}"
        if value := os.environ.get(variable):
            return value, variable
        file, table = self._file
        return table.get(name), file

    @cached_property
    def _file(self) -> tuple[str, dict[str, Any]]:
        """streamjobs.toml, or [tool.streamjobs] in pyproject.toml, in this folder: its name, and what it says."""
        return _read_file()

    @cached_property
    def namespace(self) -> str:
        """The namespace of commands without an app."""
        from streamjobs.core.names import check_name
        from streamjobs.protocol.keys import DEFAULT_NAMESPACE

        value, source = self.found("namespace")
        with _naming(source):
            return check_name(DEFAULT_NAMESPACE if value is None else value, "namespace")

    @cached_property
    def target(self) -> "Target":
        """The server of commands without an app, not contacted yet."""
        from streamjobs.client import DEFAULT_URL, parse_url

        url, source = self.found("url")
        if url is None:
            url, source = os.environ.get("REDIS_URL") or DEFAULT_URL, "REDIS_URL"
        with _naming(source):
            return parse_url(url)

    @cached_property
    def connections(self) -> "Connections":
        """The server of commands without an app; closed when the command ends."""
        # Not from the app: a look at the queues needs no worker.
        from streamjobs.client import Connections

        connections = Connections(self.target, reply_s=PATIENCE_S)
        self._warn(connections.target)
        click.get_current_context().find_root().call_on_close(connections.close)
        return connections

    def reach(self) -> "tuple[SyncExecutor, int]":
        """Return the way to the server and the server's time in ms.

        Raises:
            InvalidOption: the URL or the namespace cannot be used.
            Unavailable: it could not be reached within 5 s.
        """
        from streamjobs.protocol.upkeep import server_time

        # A bad one is said before anything is waited for.
        _ = self.namespace
        executor = self.connections.sync()
        deadline = monotonic() + PATIENCE_S
        while True:
            try:
                return executor, executor.run(server_time())
            except Unavailable as error:
                if monotonic() + _PAUSE_S >= deadline:
                    raise Unavailable(
                        f"{error} (for {PATIENCE_S:g} s; start the server, or name another with --url)",
                        word=error.word,
                    ) from error
            sleep(_PAUSE_S)

    def keys(self, queue: str) -> "QueueKeys":
        """Return the keys of a queue in the namespace."""
        from streamjobs.protocol.keys import QueueKeys

        return QueueKeys(self.namespace, queue)

    def app(self, path: str | None, *, short: bool) -> "StreamJobs":
        """Return the user's app, or one without kinds, on the server and in the namespace asked for.

        Args:
            path: `module:attribute` from -A; else from STREAMJOBS_APP or the file.
            short: give up after 5 s where the app itself would try for longer.
        """
        from streamjobs.app import StreamJobs
        from streamjobs.cli.apps import load_app
        from streamjobs.client import parse_url

        path = self.get("app") if path is None else path
        # Within the import a bad one would look like a fault of the app.
        _ = self.namespace
        url, source = self.found("url")
        with _naming(source):
            if url is not None:
                self._warn(parse_url(url))
        with self._environment():
            app = StreamJobs() if path is None else load_app(path)
        patience_s = PATIENCE_S if short else None
        app.use(self.flags.get("url"), namespace=self.flags.get("namespace"), enqueue_timeout=patience_s)
        click.get_current_context().find_root().call_on_close(app.close)
        return app

    def _warn(self, target: "Target") -> None:
        """Say so when a password was given where others can read it; a supervisor has said it for its children."""
        if "url" in self.flags and "password" in target.arguments and not (self.quiet or "--line" in self.words):
            advice = "write the URL into STREAMJOBS_URL or streamjobs.toml"
            click.echo(f"the password in --url can be read by everybody on this machine (ps): {advice}", err=True)

    @contextmanager
    def _environment(self) -> Iterator[None]:
        """Let an app that says nothing itself find what the flags and the file say."""
        before = {f"STREAMJOBS_{name}": os.environ.get(f"STREAMJOBS_{name}") for name in ("URL", "NAMESPACE")}
        try:
            for name in ("url", "namespace"):
                if value := self.get(name):
                    os.environ[f"STREAMJOBS_{name.upper()}"] = value
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


@contextmanager
def _naming(source: str) -> Iterator[None]:
    """Put before an error where the bad value stands."""
    try:
        yield
    except InvalidOption as error:
        raise InvalidOption(f"{source}: {error}") from error


def settings() -> Settings:
    """Return the settings of the command that runs."""
    found = click.get_current_context().find_object(Settings)
    assert found is not None
    return found


def _read_file() -> tuple[str, dict[str, Any]]:
    import tomllib

    for name, path in (("streamjobs.toml", ()), ("pyproject.toml", ("tool", "streamjobs"))):
        file = Path(name)
        if not file.is_file():
            continue
        try:
            table: Any = tomllib.loads(file.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidOption(f"{name}: {error}") from error
        for part in path:
            table = table.get(part, {}) if isinstance(table, dict) else {}
        if table:
            return name, _checked(name, table)
    return "", {}


def _checked(name: str, table: dict[str, Any]) -> dict[str, Any]:
    worker = table.get("worker", {})
    if not isinstance(worker, dict):
        raise InvalidOption(f"{name}: worker must be a table, [worker], with options of the worker")
    unknown = table.keys() - GENERAL - {"worker"} or worker.keys() - WORKER
    if unknown:
        known = ", ".join(sorted(GENERAL)) + "; under worker: " + ", ".join(sorted(WORKER))
        raise InvalidOption(f"{name}: unknown setting {min(unknown)!r}; known are {known}")
    general = {key: value for key, value in table.items() if key != "worker"}
    if wrong := [key for key, value in general.items() if not (isinstance(value, str) and value)]:
        raise InvalidOption(f"{name}: {wrong[0]} must be a text in quotes that is not empty")
    return {**general, **worker}
