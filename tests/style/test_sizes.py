"""Files and functions stay small enough to be read at once."""

import ast
from pathlib import Path

import pytest

from tests.style.sources import files, shown, tree

FILE_LINES = 400
FUNCTION_LINES = 45
SCRIPT_LINES = 80
"""Of one Lua file, header and comments included, `@include` lines not expanded."""
SCRIPT_CODE_LINES = 60

PYTHON = files(".py", "streamjobs", "benchmarks", "examples", "tests")
LUA = files(".lua", "lua")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@pytest.mark.parametrize("path", PYTHON, ids=shown)
def test_python_file(path: Path) -> None:
    lines = path.read_text("utf-8").count("\n")
    assert lines <= FILE_LINES, f"{shown(path)}: {lines} lines, at most {FILE_LINES}"


@pytest.mark.parametrize("path", PYTHON, ids=shown)
def test_functions(path: Path) -> None:
    lengths = [(node, _length(node)) for node in ast.walk(tree(path)) if isinstance(node, Function)]
    long = [
        f"{shown(path, node.lineno)} {node.name}: {length} lines, at most {FUNCTION_LINES}"
        for node, length in lengths
        if length > FUNCTION_LINES
    ]
    assert not long, "\n".join(long)


@pytest.mark.parametrize("path", LUA, ids=shown)
def test_lua_file(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    code = [line for line in lines if line.strip() and not line.lstrip().startswith("--")]
    assert len(lines) <= SCRIPT_LINES, f"{shown(path)}: {len(lines)} lines, at most {SCRIPT_LINES}"
    assert len(code) <= SCRIPT_CODE_LINES, f"{shown(path)}: {len(code)} of code, at most {SCRIPT_CODE_LINES}"


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines from `def` to the end, decorators and the docstring left out."""
    assert node.end_lineno is not None
    length = node.end_lineno - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node) is not None and first.end_lineno is not None:
        length -= first.end_lineno - first.lineno + 1
    return length
