"""The demo's own work: which files, which symbols, and an index that can be written twice."""

import ast
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from streamjobs.demo import broken, index

SOURCE = b'''"""First line.

Second paragraph."""
class Outer:
    """A class."""
    async def inner(self): ...
def plain():
    """
    Begins on the second line.
    """
'''


def rows(database: Path) -> list[tuple[str, str, str]]:
    with closing(sqlite3.connect(database)) as connection:
        query = "SELECT path, symbols, summaries FROM files JOIN paths ON paths.id = files.rowid"
        return connection.execute(query).fetchall()


def test_stdlib_files_hold_a_known_module_and_no_installed_package() -> None:
    files = index.stdlib_files()

    assert any(path.parts[-2:] == ("collections", "__init__.py") for path in files)
    assert not any("site-packages" in path.parts or path.name == "pytest.py" for path in files)
    assert files == sorted(set(files))


def test_a_limit_spreads_over_the_whole_library() -> None:
    every = index.stdlib_files()

    few = index.stdlib_files(10)

    assert len(few) == 10
    assert few[0] == every[0]
    assert few == sorted(set(few))
    assert index.stdlib_files(len(every) + 1) == every


def test_symbols_are_nested_names_and_first_lines(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_bytes(SOURCE)

    symbols = index.read_symbols(path)

    assert symbols.names == ["Outer", "plain", "inner"]
    assert symbols.summaries == ["First line.", "A class.", "Begins on the second line."]


@pytest.mark.parametrize(
    "text",
    [
        b"def broken(:\n",
        b"name = '\xe9'\n",
        b"x = 1\n\0",
        b"# coding: nonsense\n",
        b"from __future__ import braces\n",
        b"return\n",
    ],
)
def test_what_python_refuses_is_an_error(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "bad.py"
    path.write_bytes(text)

    with pytest.raises((SyntaxError, ValueError)):
        index.read_symbols(path)


def test_an_upsert_replaces_the_files_row(tmp_path: Path) -> None:
    database = tmp_path / "index.db"
    index.create(database)
    index.create(database)
    index.upsert(database, "a.py", index.Symbols(["old"], ["Old."]))
    index.upsert(database, "b.py", index.Symbols(["other"], []))

    index.upsert(database, "a.py", index.Symbols(["new_name"], ["New.", "More."]))

    assert sorted(rows(database)) == [("a.py", "new_name", "New.\nMore."), ("b.py", "other", "")]


def test_a_second_writer_meets_the_lock_and_changes_nothing(tmp_path: Path) -> None:
    database = tmp_path / "index.db"
    index.create(database)
    with closing(sqlite3.connect(database, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")

        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            index.upsert(database, "a.py", index.Symbols(["name"], []))

    assert rows(database) == []


def test_the_broken_files_are_broken_until_one_is_repaired(tmp_path: Path) -> None:
    files = broken.write(tmp_path / "broken")
    for path in files:
        with pytest.raises((SyntaxError, ValueError)):
            index.read_symbols(path)

    repaired = broken.repair(tmp_path / "broken")

    assert repaired in files
    assert index.read_symbols(repaired).names == ["mended_by_hand"]
    assert ast.get_docstring(ast.parse(repaired.read_bytes())) is None
