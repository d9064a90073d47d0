"""`import streamjobs` is light: a public name is imported when it is first asked for."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import streamjobs


def sources() -> dict[str, str]:
    """Return where type checkers find each public name."""
    tree = ast.parse(Path(streamjobs.__file__).read_text("utf-8"))
    return {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("streamjobs.")
        for alias in node.names
    }


def test_each_name_comes_from_where_type_checkers_look() -> None:
    for name, module in sources().items():
        assert getattr(streamjobs, name) is getattr(sys.modules[module], name), name
    assert sources().keys() == {*streamjobs.__all__, "__version__"}


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = streamjobs.nonsense  # type: ignore[attr-defined]


def test_public_names_are_listed() -> None:
    assert set(streamjobs.__all__) <= set(dir(streamjobs))


def test_import_alone_loads_nothing() -> None:
    program = "import streamjobs, sys; print([m for m in sys.modules if m.startswith('streamjobs.')])"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)

    assert done.stdout == "[]\n", done.stderr
