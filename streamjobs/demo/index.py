"""What the demo's jobs do: read the symbols of a Python file, keep them in a SQLite index.

Plain functions over files and one database; nothing here knows of jobs. The database keeps its
rollback journal and waits only 5 ms for a lock, so several processes that write at once really do
meet "database is locked": that is an error a queue is there for, and the demo wants to show it.
"""

import ast
import os
import sqlite3
import sysconfig
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

BUSY_S = 0.005
_NOT_STDLIB = frozenset(("site-packages", "dist-packages", "__pycache__"))
_SCHEMA = """
    CREATE TABLE IF NOT EXISTS paths (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);
    CREATE VIRTUAL TABLE IF NOT EXISTS files
        USING fts5 (symbols, summaries, tokenize = "unicode61 tokenchars '_'");
"""


class Symbols(NamedTuple):
    """What a file defines: names in order of a walk from the outside in, and first lines of docstrings."""

    names: list[str]
    summaries: list[str]


def stdlib_files(limit: int | None = None) -> list[Path]:
    """Return the .py files of the running Python's standard library, sorted, installed packages left out.

    Args:
        limit: at most this many, spread evenly over all of them.
    """
    root = Path(sysconfig.get_path("stdlib"))
    found = sorted(path for path in root.rglob("*.py") if _belongs(path, root))
    if limit is None or limit >= len(found):
        return found
    return [found[i * len(found) // limit] for i in range(limit)]


def _belongs(path: Path, root: Path) -> bool:
    inside = _NOT_STDLIB.isdisjoint(path.relative_to(root).parts)
    return inside and str(path).isprintable() and path.is_file() and os.access(path, os.R_OK)


def read_symbols(path: Path) -> Symbols:
    """Return the functions and classes that the file at `path` defines, nested ones included.

    Raises:
        SyntaxError: it does not decode, does not parse or does not compile.
        ValueError: it holds a null byte (a SyntaxError from Python 3.12 on).
        OSError: it cannot be read.
    """
    tree = ast.parse(path.read_bytes(), str(path))
    # Some errors show only here, such as `from __future__ import braces`.
    compile(tree, str(path), "exec", dont_inherit=True)
    names: list[str] = []
    summaries: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        elif not isinstance(node, ast.Module):
            continue
        summaries += (ast.get_docstring(node) or "").splitlines()[:1]
    return Symbols(names, summaries)


def create(database: Path) -> None:
    """Make the index, empty, unless it is there.

    Raises:
        sqlite3.OperationalError: this Python's SQLite was built without FTS5.
    """
    with _connected(database) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.executescript(_SCHEMA)


def upsert(database: Path, path: str, symbols: Symbols) -> None:
    """Put one file into the index, in place of what it held of that file; safe to repeat.

    Raises:
        sqlite3.OperationalError: `database is locked`, for longer than 5 ms; nothing was changed.
    """
    with _connected(database) as connection, _transaction(connection):
        connection.execute("INSERT OR IGNORE INTO paths (path) VALUES (?)", (path,))
        [(row,)] = connection.execute("SELECT id FROM paths WHERE path = ?", (path,))
        connection.execute("DELETE FROM files WHERE rowid = ?", (row,))
        connection.execute(
            "INSERT INTO files (rowid, symbols, summaries) VALUES (?, ?, ?)",
            (row, " ".join(symbols.names), "\n".join(symbols.summaries)),
        )


@contextmanager
def _connected(database: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(database, timeout=BUSY_S, isolation_level=None)) as connection:
        # A killed process loses nothing by this; a power cut might, and the index can be made again.
        connection.execute("PRAGMA synchronous = OFF")
        yield connection


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    # IMMEDIATE: a transaction that begins by reading cannot wait for the lock when it comes to write.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()
