"""Index Python's standard library by hand, with the job of `streamjobs demo`.

In each of three terminals:

    $ export STREAMJOBS_URL=embedded://.streamjobs
    $ streamjobs worker -A streamjobs.demo.jobs:app -c 4

and in a fourth, with the same variable:

    $ python examples/index_stdlib.py fill /tmp/stdlib
    $ streamjobs stats
    $ streamjobs dead groups
    $ python examples/index_stdlib.py search /tmp/stdlib namedtuple

Kill one of the workers with `kill -9` while it works: the index will be complete all the same.
"""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from streamjobs.demo import index
from streamjobs.demo.jobs import DATABASE, app, index_file


def fill(folder: Path, limit: int | None = None) -> None:
    """Enqueue one job per file, at most `limit` of them; workers fill `folder`/index.db."""
    folder.mkdir(parents=True, exist_ok=True)
    index.create(folder / DATABASE)
    files = index.stdlib_files(limit)
    outcomes = app.enqueue_many_sync(index_file.call(str(path), str(folder)) for path in files)
    failed = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    print(f"enqueued {len(outcomes) - len(failed)} jobs, {len(failed)} failed")


def search(folder: Path, words: str) -> None:
    """Print the files that define or describe these words, best match first."""
    query = "SELECT path FROM files JOIN paths ON paths.id = files.rowid WHERE files MATCH ? ORDER BY rank"
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        for (path,) in connection.execute(query, (words,)):
            print(path)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["fill", folder]:
            fill(Path(folder).resolve())
        case ["fill", folder, limit] if limit.isdecimal():
            fill(Path(folder).resolve(), int(limit))
        case ["search", folder, *words] if words:
            search(Path(folder), " ".join(words))
        case _:
            sys.exit("usage: index_stdlib.py fill FOLDER [FILES] | search FOLDER WORD ...")
