"""Tables, numbers, ages, and text of others."""

import io
import json

import click
import pytest

from streamjobs.cli import params, show
from streamjobs.cli.settings import Settings


@pytest.fixture(autouse=True)
def _in_a_command() -> object:
    """Let `settings()` find some."""
    with click.Context(click.Command("x"), obj=Settings()):
        yield


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("two\nlines\ttab", "two\\nlines\\ttab"),
        ("right\u202eleft", "right\\u202eleft"),
        ("\x9b31m", "\\x9b31m"),
        ("größe 名前 \U0001f600", "größe 名前 \U0001f600"),
        ("\udc80", "\\udc80"),
    ],
)
def test_text_of_others_steers_nothing(text: str, shown: str) -> None:
    assert show.clean(text) == shown


@pytest.mark.parametrize(
    ("ms", "text"),
    [(-5, "0s"), (0, "0s"), (4249, "4.2s"), (10_000, "10s"), (59_999, "59s"), (1_082_000, "18m02s"),
     (11_100_000, "3h05m"), (1_051_200_000, "12d04h")],
)  # fmt: skip
def test_ages(ms: int, text: str) -> None:
    assert show.age(ms) == text


@pytest.mark.parametrize(("ms", "text"), [(400, "0s ago"), (4249, "4s ago"), (11_100_000, "3h05m ago")])
def test_how_long_ago(ms: int, text: str) -> None:
    assert show.ago(ms) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(7, "7"), (99_999, "99,999"), (100_000, "100k"), (999_499, "999k"), (999_600, "1.0M"), (1_234_567, "1.2M"),
     (35_000_000, "35M"), (2_100_000_000, "2.1G")],
)  # fmt: skip
def test_short_numbers(number: int, text: str) -> None:
    assert show.short(number) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0B"), (512, "512B"), (1023, "1023B"), (1_992_294, "1.9M"), (4 << 30, "4.0G"), (150 << 20, "150M")],
)
def test_sizes(size: int, text: str) -> None:
    assert show.size(size) == text


def test_instants() -> None:
    assert show.time_of(1_764_412_345_678) == "2025-11-29T10:32:25.678Z"
    assert show.time_of(0) is None
    assert show.time_of(2**63) is None


def test_table_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    show.Table("NAME", ">COUNT", "~TEXT").print([("a", "1", "x"), ("longer", "12,418", "名前"), ("b", "7", "")])

    assert capsys.readouterr().out.splitlines() == [
        "NAME     COUNT  TEXT",
        "a            1  x",
        "longer  12,418  名前",
        "b            7",
    ]


def test_table_fits_the_screen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")

    show.Table("ID", "~KIND", "~ERROR").print([("i" * 20, "k" * 50, "e" * 90)])

    row = capsys.readouterr().out.splitlines()[1]
    assert len(row) == 60
    assert row.startswith("i" * 20 + "  k")
    assert row.count("…") == 2


def test_later_rows_keep_the_columns(capsys: pytest.CaptureFixture[str]) -> None:
    table = show.Table("ID", "~TEXT")

    table.print([("1", "short")])
    table.print([("2", "much longer")])

    assert capsys.readouterr().out.splitlines() == ["ID  TEXT", "1   short", "2   much longer"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1.5", 1.5), ("250ms", 0.25), ("10m", 600), ("1h30m", 5400), ("2d", 172_800)],
)
def test_durations(text: str, seconds: float) -> None:
    assert params.seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "-1", "1x", "1h 30m", "h", "1h30", "∞", "1e3"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        params.seconds(text)


def test_documents_are_harmless_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    import json

    show.listing("x", "items", [{"a": "\u202e\x7f\x9b ü \U000e0001"}], lambda: {"n": 1})

    out = capsys.readouterr().out
    assert json.loads(out) == {
        "schema": "streamjobs.x",
        "version": 1,
        "items": [{"a": "\u202e\x7f\x9b ü \U000e0001"}],
        "n": 1,
    }
    assert show.clean(out.replace("\n", "")) == out.replace("\n", "")


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("seconds", "shown"), [(1.9, False), (2.1, True)])
def test_progress_is_shown_once_it_takes_two_seconds(
    monkeypatch: pytest.MonkeyPatch, seconds: float, shown: bool
) -> None:
    now, screen = [0.0], Screen()
    monkeypatch.setattr(show, "monotonic", lambda: now[0])
    monkeypatch.setattr("sys.stderr", screen)

    with show.progress(100, "replayed") as advance:
        advance(10)
        assert screen.getvalue() == ""
        now[0] = seconds
        advance(50)
        advance(100)

    assert ("replayed" in screen.getvalue() and "100%" in screen.getvalue()) is shown


def test_no_progress_off_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    now, screen = [0.0], io.StringIO()
    monkeypatch.setattr(show, "monotonic", lambda: now[0])
    monkeypatch.setattr("sys.stderr", screen)

    with show.progress(100, "replayed") as advance:
        now[0] = 9.0
        advance(50)

    assert screen.getvalue() == ""


def test_a_line_of_json_is_plain_ascii_and_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"a": "é\x7f\u2028\U0001f600\x1b\u202e", "b": ["\\u0041", 'q"']}

    show.ascii_line(json.dumps(value, ensure_ascii=False).encode())

    text = capsys.readouterr().out
    assert text.isascii()
    assert text.rstrip("\n").isprintable()
    assert json.loads(text) == value


@pytest.mark.parametrize(
    ("values", "shown"),
    [([], ""), ([0, 0], "▁▁"), ([0, 1, 2, 7], "▁▂▃█"), ([0.001, 7000], "▂█"), ([3, 3], "██")],
)
def test_sparklines(values: list[float], shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), "utf-8"))

    assert show.sparkline(values) == shown


def test_sparklines_where_only_ascii_can_be_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))

    assert show.sparkline([0, 1, 7]) == "_.@"


def test_last_column_in_colour() -> None:
    table = show.Table("NAME", "HEALTH", gap=" ", tints={"critical": "red"})

    assert table.lines([("a", "ok"), ("bb", "critical")])[1:] == ["a    ok", "bb   \x1b[31mcritical\x1b[0m"]
