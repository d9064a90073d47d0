"""The demo's app and its one kind: index one Python file.

Which error is what, spelled out: a file that does not parse will not parse the next time either, so
SyntaxError and ValueError make the job dead at once. Anything else is temporary, above all
"database is locked": the other writer is gone in a few milliseconds, so the first delays are short.
"""

from pathlib import Path

from streamjobs import Context, Exponential, Retry, StreamJobs
from streamjobs.demo import index, journal

DATABASE = "index.db"

app = StreamJobs()


@app.job(
    name="demo.index_file",
    timeout=60,
    retry=Retry(
        max_attempts=30,
        backoff=Exponential(base=0.05, cap=2),
        permanent=(SyntaxError, ValueError),
    ),
)
def index_file(ctx: Context[None], path: str, folder: str) -> int:
    """Put the symbols of the file at `path` into the index in `folder`; return how many it has.

    A job may run twice, after the death of its worker or a lost lease: the index holds one row per
    path, which the second run writes again.
    """
    with journal.noted(Path(folder), path, ctx.attempt):
        symbols = index.read_symbols(Path(path))
        index.upsert(Path(folder, DATABASE), path, symbols)
    return len(symbols.names)
