"""A worker whose first run is killed at a chosen place around its effect: run by test_once_faults.py.

The effect is a line in a file outside: the job's idempotency key. Ends with 0 when nothing is left to do.
"""

import os
import signal
import sys
from typing import Any

from streamjobs import Context
from tests.worker.support import FAST, make_app


def main(url: str, namespace: str, rows: str, where: str, if_unsure: str) -> int:
    app = make_app(url, namespace)
    table = os.open(rows, os.O_WRONLY | os.O_APPEND)
    new = os.fstat(table).st_size == 0
    options: Any = {"first": True, "if_unsure": if_unsure} if if_unsure else {}

    @app.job(name="effect")
    async def effect(ctx: Context[Any]) -> None:
        async with ctx.once("shared", **options) as effect:
            if effect.needed:
                os.write(table, f"{ctx.idempotency_key}\n".encode())
                die(where == "before_mark")
        die(where == "before_ack")

    def die(now: bool) -> None:
        if new and now:
            os.kill(os.getpid(), signal.SIGKILL)

    if new:
        app.kind("effect").enqueue_sync()
    return app.run_worker(options=FAST, lease=0.3, burst=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
