"""The second program: did the demo do what it says? `python check.py FOLDER`, exit 0 or 1.

It uses the standard library alone, neither the queue nor the code of the jobs, and believes only
what lies in the folder:

    files.txt        the paths that were enqueued, one a line
    dead.json        what `streamjobs dead list --json` printed at the end
    index.db         the index that the jobs wrote
    journal.ndjson   the starts and ends that they noted, and the kill and the replay
"""

import json
import sqlite3
import symtable
import sys
import warnings
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

DEAD = "dead.json"
_EVERY = 20
_KNOWN = {"namedtuple": "collections/__init__.py", "JSONDecoder": "json/decoder.py", "Path": "pathlib.py"}
_UNNAMED = frozenset(("lambda", "genexpr", "listcomp", "setcomp", "dictcomp"))

Event = dict[str, Any]


class Check(NamedTuple):
    """One claim about the run, and whether it is true."""

    holds: bool
    text: str


class Evidence(NamedTuple):
    """All that the folder holds, read once. `indexed` has one path per row of the full-text table."""

    files: list[str]
    dead: list[str]
    indexed: list[str]
    events: list[Event]
    database: Path


def read(folder: Path) -> Evidence:
    """Read a finished demo's folder.

    Raises:
        OSError, ValueError, sqlite3.Error: something is missing in it, or is not what it should be.
    """
    dead = json.loads((folder / DEAD).read_text("utf-8"))
    lines = (folder / "journal.ndjson").read_text("utf-8").splitlines()
    database = folder / "index.db"
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT path FROM files LEFT JOIN paths ON paths.id = files.rowid")
        indexed = [str(path) for (path,) in rows]
    return Evidence(
        files=(folder / "files.txt").read_text("utf-8").splitlines(),
        dead=[str(job["args"]["path"]) for job in dead["jobs"]],
        indexed=indexed,
        events=[json.loads(line) for line in lines],
        database=database,
    )


def compiles(path: str) -> bool:
    """Return whether Python itself takes the file."""
    try:
        compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OSError):
        return False
    return True


def dead_are_broken(seen: Evidence) -> Check:
    """`compile()` fails for exactly the dead files."""
    broken = [path for path in seen.files if not compiles(path)]
    text = f"compile() fails for exactly the {len(seen.dead)} dead files of {len(seen.files)}"
    return Check(bool(broken) and sorted(seen.dead) == sorted(broken), text + _difference(broken, seen.dead))


def index_holds_the_others(seen: Evidence) -> Check:
    """Each other file has one row, and nothing else has one."""
    others = sorted(set(seen.files) - set(seen.dead))
    text = f"the index holds exactly the {len(others)} others, one row each"
    return Check(sorted(seen.indexed) == others, text + _difference(others, seen.indexed))


def _difference(wanted: Iterable[str], got: list[str]) -> str:
    missing, extra = sorted(set(wanted) - set(got)), sorted(set(got) - set(wanted))
    twice = len(got) - len(set(got))
    parts = [f"{name} {paths[0]}" for name, paths in (("missing:", missing), ("too many:", extra)) if paths]
    return "".join(f"; {part}" for part in [*parts, *([f"{twice} twice"] if twice else [])])


def search_finds(seen: Evidence) -> Check:
    """A search for a symbol finds the file that defines it, by Python's own symbol tables."""
    pairs = [pair for path in sorted(seen.indexed)[::_EVERY] for pair in _top_level(path)[:1]]
    pairs += [(name, path) for name, end in _KNOWN.items() for path in seen.indexed if path.endswith(f"/{end}")]
    query = "SELECT path FROM files JOIN paths ON paths.id = files.rowid WHERE files MATCH ?"
    with closing(sqlite3.connect(seen.database)) as connection:
        lost = [
            f"{name} in {path}"
            for name, path in pairs
            if (path,) not in connection.execute(query, (f'symbols : "{name}"',)).fetchall()
        ]
    text = f"a search finds each of {len(pairs)} symbols where it is defined"
    return Check(bool(pairs) and not lost, text + "".join(f"; not: {pair}" for pair in lost[:1]))


def _top_level(path: str) -> list[tuple[str, str]]:
    if not compiles(path):
        return []
    table = symtable.symtable(Path(path).read_bytes(), path, "exec")  # type: ignore[arg-type]
    children = [child for child in table.get_children() if child.get_type() in ("function", "class")]
    return [(child.get_name(), path) for child in children if child.get_name() not in _UNNAMED]


def killed_were_started_again(seen: Evidence) -> Check:
    """What ran in the killed process was started a second time in another one."""
    after = _since(seen.events, "kill")
    target = after[0]["target"] if after else None
    left = _running(seen.events, target)
    again = [e for e in after if e["event"] == "start" and e["pid"] != target and e["path"] in left]
    firsts = {event["path"]: event["at_ms"] for event in reversed(again)}
    late_s = (max(firsts.values()) - after[0]["at_ms"]) / 1000 if firsts else 0.0
    text = f"{len(firsts)} of {len(left)} jobs that died with process {target} were started again"
    return Check(bool(left) and len(firsts) == len(left), f"{text}, within {late_s:.1f} s")


def _since(events: list[Event], name: str) -> list[Event]:
    return next((events[at:] for at, event in enumerate(events) if event["event"] == name), [])


def _running(events: list[Event], pid: int | None) -> set[str]:
    running: set[str] = set()
    for event in events:
        if event["pid"] == pid and event["event"] == "start":
            running.add(event["path"])
        elif event["pid"] == pid and event["event"] == "end":
            running.discard(event["path"])
    return running


def locked_were_retried(seen: Evidence) -> Check:
    """Jobs that met "database is locked" were started again, and none of them is dead for it."""
    locked: set[str] = set()
    again: set[str] = set()
    for event in seen.events:
        if event["event"] == "end" and "locked" in event["error"]:
            locked.add(event["path"])
        elif event["event"] == "start" and event["path"] in locked:
            again.add(event["path"])
    text = f'{len(again)} of {len(locked)} jobs that met "database is locked" were retried'
    return Check(bool(locked) and locked == again, text)


def replayed_was_indexed(seen: Evidence) -> Check:
    """The repaired file had ended as broken; after its replay it was started and ended well."""
    after = _since(seen.events, "replay")
    path = after[0]["path"] if after else None
    ends = [e["error"] for e in seen.events if e["event"] == "end" and e["path"] == path]
    later = [e["error"] for e in after if e["event"] == "end" and e["path"] == path]
    holds = any(ends[: len(ends) - len(later)]) and "" in later
    return Check(holds, f"the replayed job failed before and ended well after: {path}")


CHECKS: tuple[Callable[[Evidence], Check], ...] = (
    dead_are_broken,
    index_holds_the_others,
    search_finds,
    killed_were_started_again,
    locked_were_retried,
    replayed_was_indexed,
)


def main(arguments: list[str]) -> int:
    """Print each check with its verdict; return 0 only if all of them hold."""
    if len(arguments) != 1:
        print("usage: check.py FOLDER", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")
    try:
        seen = read(Path(arguments[0]))
    except (OSError, ValueError, KeyError, TypeError, sqlite3.Error) as error:
        print(f"FAILED  the folder cannot be read: {type(error).__name__}: {error}")
        return 1
    results = [check(seen) for check in CHECKS]
    for result in results:
        print(f"{'ok    ' if result.holds else 'FAILED'}  {result.text}")
    return 0 if all(result.holds for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
