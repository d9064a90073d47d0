"""A worker process with a cron every minute: `python -m tests.faults.scheduler URL NAMESPACE JOURNAL`.

Its job writes one line, which slot it is for and which job it is.
"""

import logging
import os
import sys
from typing import Any

from streamjobs import Context, JobOptions, StreamJobs


def work(url: str, namespace: str, journal: str) -> int:
    """Be a worker until it is told to stop."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    app = StreamJobs(url, namespace=namespace, defaults=JobOptions(queue="q"))
    file = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    @app.cron("* * * * *", name="c")
    @app.job(name="note")
    async def note(ctx: Context[Any]) -> None:
        os.write(file, f"{ctx.headers['cron-slot']} {ctx.id}\n".encode())

    return app.run_worker(lease=1, sweep=0.2, grace=2)


if __name__ == "__main__":
    sys.exit(work(*sys.argv[1:]))
