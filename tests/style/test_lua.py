"""Every script says in its header what it does, and says it truly."""

import re
from pathlib import Path

import pytest

from streamjobs.core.states import MOVES
from tests.style.sources import ROOT, files, shown

LUA = files(".lua", "lua")
SCRIPTS = [path for path in LUA if path.parent.name == "lua"]

HEADINGS = ("Moves:", "KEYS", "ARGV", "Returns", "Cost")
CALLED = re.compile(r"call\(\s*.(\w+)")

FORBIDDEN = {
    "cjson.encode": "an empty list becomes an object, a long integer loses digits",
    "loadstring": "code made at run time",
    "os.time": "the server's TIME is the clock",
    "os.clock": "the server's TIME is the clock",
    "math.random": "seeded alike for every call",
}
OUT_OF_BOUNDS = set("KEYS SCAN RANDOMKEY FLUSHALL FLUSHDB SELECT SWAPDB DEBUG CONFIG EVAL EVALSHA".split())
"""Commands of unbounded cost, or that reach beyond the queue's own keys."""


def header(path: Path) -> list[str]:
    """Return the comment lines at the top, without their dashes."""
    lines = []
    for line in path.read_text("utf-8").splitlines():
        if not line.startswith("--"):
            break
        lines.append(line.removeprefix("--").removeprefix(" "))
    return lines


def moves(lines: list[str]) -> set[tuple[str, str]]:
    """Read the moves of a header; a line that continues them is indented."""
    start = next(number for number, line in enumerate(lines) if line.startswith("Moves:"))
    text = lines[start].removeprefix("Moves:")
    for line in lines[start + 1 :]:
        if not line.startswith("  "):
            break
        text += " " + line
    if text.strip() == "none":
        return set()
    found = re.findall(r"(\w+) -> (\w+)", text)
    assert ", ".join(f"{before} -> {after}" for before, after in found) == " ".join(text.split())
    return set(found)


def test_every_move_has_its_script_and_every_script_its_row() -> None:
    assert sorted(path.stem for path in SCRIPTS) == sorted(MOVES)


@pytest.mark.parametrize("path", SCRIPTS, ids=shown)
def test_header_is_complete(path: Path) -> None:
    lines = header(path)
    assert lines, f"{shown(path)} has no header"
    assert re.match(rf"{path.stem}: \S", lines[0]), f"{shown(path)}: line 1 is not `-- {path.stem}: ...`"
    missing = [word for word in HEADINGS if not any(re.match(rf"{word}(?:\W|$)", line) for line in lines)]
    assert not missing, f"{shown(path)}: no line begins with {missing}"


@pytest.mark.parametrize("path", SCRIPTS, ids=shown)
def test_header_moves_are_those_of_the_table(path: Path) -> None:
    table = {(before or "new", after or "gone") for before, after in MOVES.get(path.stem, ())}
    assert moves(header(path)) == {(str(before), str(after)) for before, after in table}


@pytest.mark.parametrize("path", LUA, ids=shown)
def test_nothing_dangerous_is_called(path: Path) -> None:
    found = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        code = line.split("--")[0]
        found += [f"{shown(path, number)}: {word} ({why})" for word, why in FORBIDDEN.items() if word in code]
        called = {name.upper() for name in CALLED.findall(code)}
        found += [f"{shown(path, number)}: {name}" for name in called & OUT_OF_BOUNDS]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", LUA, ids=shown)
def test_every_include_is_there(path: Path) -> None:
    wanted = re.findall(r"^-- @include (\w+)$", path.read_text("utf-8"), re.MULTILINE)
    missing = [name for name in wanted if ROOT / "lua" / "include" / f"{name}.lua" not in LUA]
    assert not missing, f"{shown(path)}: no lua/include/ file for {missing}"
