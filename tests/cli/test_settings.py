"""Flag, then environment, then file, then default."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from streamjobs.cli import params
from streamjobs.cli.main import cli
from streamjobs.cli.settings import Settings
from streamjobs.core.errors import InvalidOption
from streamjobs.core.options import WorkerOptions
from tests.cli.support import APP, error_line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_flag_wins_over_environment_over_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings()
    assert settings.get("url") is None

    (folder / "streamjobs.toml").write_text('url = "memory://file"\n')
    assert Settings().get("url") == "memory://file"

    monkeypatch.setenv("STREAMJOBS_URL", "memory://environment")
    settings = Settings()
    assert settings.get("url") == "memory://environment"

    settings.flags["url"] = "memory://flag"
    assert settings.get("url") == "memory://flag"


def test_pyproject_is_read_where_there_is_no_file_of_our_own(folder: Path) -> None:
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[tool.streamjobs]\nnamespace = "py"\n[tool.streamjobs.worker]\nconcurrency = 7\n'
    )
    assert (Settings().namespace, Settings().found("concurrency")[0]) == ("py", 7)

    (folder / "streamjobs.toml").write_text('namespace = "own"\n')
    assert Settings().namespace == "own"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('urll = "x"', "unknown setting 'urll'"),
        ("[worker]\nslots = 1", "unknown setting 'slots'"),
        ("worker = 3", "worker must be a table"),
        ("not toml", "streamjobs.toml: "),
        ("url = 3", "streamjobs.toml: url must be a text"),
        ('url = ""', "streamjobs.toml: url must be a text"),
        ('url = "cache-1"', "streamjobs.toml: the server URL 'cache-1' has no scheme"),
        ('namespace = "a b"', "streamjobs.toml: namespace 'a b'"),
    ],
)
def test_bad_file_is_named(folder: Path, text: str, said: str) -> None:
    (folder / "streamjobs.toml").write_text(text + "\n")

    for words in (["stats"], ["enqueue", "k"]):
        result = CliRunner().invoke(cli, words)

        assert result.exit_code == 2
        assert said in error_line(result)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("STREAMJOBS_URL", "STREAMJOBS_URL: unknown kind of server URL"),
        ("STREAMJOBS_NAMESPACE", "STREAMJOBS_NAMESPACE: namespace 'a b'"),
        ("REDIS_URL", "REDIS_URL: unknown kind of server URL"),
    ],
)
def test_bad_variable_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str) -> None:
    monkeypatch.setenv(name, "a b")

    result = CliRunner().invoke(cli, ["stats"])

    assert result.exit_code == 2
    assert said in error_line(result)


@pytest.mark.parametrize("name", ["--url", "--namespace"])
@pytest.mark.parametrize("words", [["stats"], ["dead", "purge", "--yes"], ["enqueue", "k"]], ids=lambda w: w[0])
def test_empty_flag_is_not_taken_for_none(folder: Path, words: list[str], name: str) -> None:
    """As of a shell's variable that is not set: it must not lead to the default server."""
    result = CliRunner().invoke(cli, [*words, name, ""])

    assert result.exit_code == 2
    assert f"'{name}': it is empty" in error_line(result)


def test_global_options_count_wherever_they_stand(folder: Path) -> None:
    for words in (["--json", "--url", "memory://", "stats"], ["stats", "--json", "--url", "memory://"]):
        assert CliRunner().invoke(cli, words).stdout.startswith("{")


def test_url_flag_wins_over_the_app_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "settled_app.py").write_text(
        "from streamjobs import StreamJobs\napp = StreamJobs('memory://own', namespace='own')\n"
        "@app.job(name='k')\ndef k() -> None: ...\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("STREAMJOBS_URL", "memory://environment")
    for extra, place in (([], "own"), (["--url", "memory://flag", "--namespace", "flag"], "flag")):
        done = CliRunner().invoke(cli, ["enqueue", "-A", "settled_app:app", "k", *extra])
        assert done.exit_code == 0, done.stderr

        words = ["queue", "list", "--url", f"memory://{place}", "--namespace", place]
        assert CliRunner().invoke(cli, words).stdout == "default\n"


def test_app_without_a_url_takes_that_of_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "plain_app.py").write_text(
        "from streamjobs import StreamJobs\napp = StreamJobs()\n@app.job(name='k')\ndef k() -> None: ...\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    (folder / "streamjobs.toml").write_text('url = "memory://by-file"\nnamespace = "f"\napp = "plain_app:app"\n')

    done = CliRunner().invoke(cli, ["enqueue", "k"])

    assert done.exit_code == 0, done.stderr
    assert CliRunner().invoke(cli, ["queue", "list"]).stdout == "default\n"
    assert CliRunner().invoke(cli, ["queue", "list", "--url", "memory://by-file"]).stdout == "default\n"


def test_worker_takes_its_options_from_file_and_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "streamjobs.toml").write_text(
        f'app = "{APP}"\nurl = "memory://w"\n[worker]\nqueues = ["math", "web"]\nconcurrency = 3\nlease = "2s"\n'
    )
    monkeypatch.setenv("STREAMJOBS_CONCURRENCY", "4")

    said = CliRunner().invoke(cli, ["worker", "--burst"])

    assert said.exit_code == 0, said.stderr
    assert "serves math, web with 4 slots" in said.stderr


@pytest.mark.parametrize(
    ("cores", "words", "pool"),
    [(8, ["-w", "3"], 2), (2, ["-w", "3"], 1), (8, ["-w", "auto"], 1), (8, [], 4), (8, ["--pool", "7"], 7)],
)
def test_the_workers_of_one_supervisor_share_the_cpus_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, cores: int, words: list[str], pool: int
) -> None:
    got: list[WorkerOptions] = []
    monkeypatch.setattr(
        "streamjobs.app.StreamJobs.run_child", lambda app, line, duty, queues, options: got.append(options)
    )
    for place in ("streamjobs.cli.worker.cpus", "streamjobs.cli.params.cpus"):
        monkeypatch.setattr(place, lambda: cores)
    (folder / "streamjobs.toml").write_text("[worker]\nprocesses = 2\n")

    CliRunner().invoke(cli, ["worker", "-A", APP, "--line", "99", *words])

    assert [one.pool for one in got] == [pool]


def test_auto_is_a_process_for_each_cpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    monkeypatch.setattr(
        "streamjobs.cli.worker._supervise", lambda words, chosen, burst: started.append(chosen["processes"])
    )
    monkeypatch.setattr("streamjobs.cli.params.cpus", lambda: 6)
    monkeypatch.setenv("STREAMJOBS_PROCESSES", "auto")

    CliRunner().invoke(cli, ["worker", "-A", APP])
    CliRunner().invoke(cli, ["worker", "-A", APP, "-w", "5"])

    assert started == [6, 5]
    assert "use 1 to 256, or auto" in CliRunner().invoke(cli, ["worker", "-A", APP, "-w", "0"]).stderr


def test_bad_value_of_a_variable_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMJOBS_LEASE", "soon")

    result = CliRunner().invoke(cli, ["worker", "-A", APP, "--url", "memory://"])

    assert result.exit_code == 2
    assert "STREAMJOBS_LEASE: 'soon' is not a duration" in error_line(result)


@pytest.mark.parametrize(
    ("variables", "flag", "color"),
    [
        ({}, None, None),
        ({"NO_COLOR": "1"}, None, False),
        ({"TERM": "dumb"}, None, False),
        ({"NO_COLOR": "1"}, "always", True),
        ({}, "never", False),
    ],
)
def test_colours(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    flag: str | None,
    color: bool | None,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    settings.flags = {"color": flag} if flag else {}

    assert settings.color is color


def test_colours_only_when_wanted(folder: Path) -> None:
    plain = CliRunner().invoke(cli, ["lua", "list"]).stdout
    always = CliRunner().invoke(cli, ["lua", "list", "--color", "always"]).stdout

    assert "\x1b" not in plain
    assert always.startswith("\x1b[1mNAME")


def test_bad_colour_of_a_file(folder: Path) -> None:
    (folder / "streamjobs.toml").write_text('color = "blue"\n')

    with pytest.raises(InvalidOption, match="blue"):
        _ = Settings().color


@pytest.mark.parametrize(
    ("text", "count_bytes"), [("512", 512), ("4k", 4096), ("512M", 512 << 20), ("2G", 2 << 30), ("1T", 1 << 40)]
)
def test_sizes_are_in_powers_of_1024(text: str, count_bytes: int) -> None:
    assert params.size(text) == count_bytes
