"""What must not be written anywhere: wall clocks, sleeping tests, reminders, names of places outside."""

import ast
import re
from pathlib import Path

import pytest

from tests.style.sources import files, shown, texts, tree

# Written in pieces, so that this file does not find itself.
REMINDER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME)\b")
REGISTRY = re.compile(r"py" + r"pi\.org|python" + r"hosted\.|npm" + r"js\.|(?:docker|ghcr)" + r"\.io\b")
MACHINE = re.compile(r"(?<![\w.\-}])/(?:ro" + r"ot|wo" + r"rk|ho" + r"me|Us" + r"ers)/\w")

WALL_CLOCK = {"time", "time_ns"}
LIBRARY = files(".py", "streamjobs", "benchmarks", "examples")
TESTS = [path for path in files(".py", "tests") if "faults" not in path.parts]


@pytest.mark.parametrize("path", LIBRARY, ids=shown)
def test_no_wall_clock_decides(path: Path) -> None:
    """The server's clock says what is due; a local one would be wrong on some machine some day."""
    found = []
    for node in ast.walk(tree(path)):
        match node:
            case ast.Attribute(value=ast.Name(id="time"), attr=name) if name in WALL_CLOCK:
                found.append(shown(path, node.lineno))
            case ast.ImportFrom(module="time", names=names) if WALL_CLOCK & {alias.name for alias in names}:
                found.append(shown(path, node.lineno))
    assert not found, found


@pytest.mark.parametrize("path", TESTS, ids=shown)
def test_tests_wait_for_events_not_for_time(path: Path) -> None:
    """`asyncio.sleep(0)` gives way to other tasks and does not wait: it is allowed."""
    calls = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    found = [
        shown(path, call.lineno)
        for call in calls
        if ast.unparse(call.func).split(".")[-1] == "sleep" and ast.unparse(call).partition("(")[2] != "0)"
    ]
    assert not found, found


def test_no_reminders_and_no_places_outside() -> None:
    found = [
        f"{shown(path, number)}: {match[0]!r}"
        for path in texts()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for pattern in (REMINDER, REGISTRY, MACHINE)
        if (match := pattern.search(line))
    ]
    assert not found, "\n".join(found)
