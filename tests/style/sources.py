"""The project's own files, as the style tests see them."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_LEFT_OUT = {"__pycache__", "build", "dist", "node_modules"}
_TEXT = {"", *".cfg .ini .json .lua .md .ndjson .py .pyi .sh .toml .txt .yaml .yml".split()}


def files(suffix: str, *folders: str) -> list[Path]:
    """Return the files of this suffix in these folders of the project, sorted."""
    return sorted(
        path
        for folder in folders
        for path in (ROOT / folder).rglob(f"*{suffix}")
        if path.is_file() and not _LEFT_OUT & set(path.parts)
    )


def texts() -> Iterator[Path]:
    """Yield every text file of the project, but nothing made or installed by a tool."""
    for path in sorted(ROOT.iterdir()):
        if path.name[0] == "." and path.name not in (".ci", ".gitignore"):
            continue
        for found in [path] if path.is_file() else files("", path.name):
            if found.suffix in _TEXT and path.name not in _LEFT_OUT:
                yield found


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file, parsed once."""
    return ast.parse(path.read_text("utf-8"), str(path))


def shown(path: Path, line: int | None = None) -> str:
    """Return how a finding names its place."""
    where = str(path.relative_to(ROOT))
    return where if line is None else f"{where}:{line}"
