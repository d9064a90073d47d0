"""A worker whose job ends its process, as the kernel does when memory runs out: run by test_suspects.py.

Each start of a job is a line in a file. Ends with 0 when nothing is left to do.
"""

import os
import sys
from typing import Any

from streamjobs import Context, StreamJobs
from tests.worker.support import FAST, make_app


def main(url: str, namespace: str, starts: str) -> int:
    app = make_app(url, namespace)
    log = os.open(starts, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    @app.job(name="killer")
    async def killer(ctx: Context[Any]) -> None:
        os.write(log, b"killer\n")
        os._exit(137)

    @app.job(name="neighbour")
    async def neighbour(ctx: Context[Any], n: int) -> None:
        os.write(log, b"neighbour\n")

    if os.stat(starts).st_size == 0:
        fill(app)
    return app.run_worker(options=FAST, lease=0.3, concurrency=3, burst=True)


def fill(app: StreamJobs) -> None:
    jobs = [app.kind("neighbour").call(n) for n in range(5)]
    jobs.insert(2, app.kind("killer").call())
    app.enqueue_many_sync(jobs)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
