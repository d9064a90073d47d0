"""A producer or a worker whose own clock is wrong: run by test_clocks.py.

The worker writes when its job was due and when it started, by the server's clock.
"""

import asyncio
import sys
import time
from datetime import datetime as true_datetime
from typing import Any

from streamjobs import Context
from streamjobs.protocol.calls import Command
from tests.worker.support import drain, make_app

DELAY_S = 3.0


def set_clock(wrong_s: float) -> None:
    """Let this process's wall clock be wrong; its monotonic clock goes on as before."""
    true_time, true_time_ns = time.time, time.time_ns
    time.time = lambda: true_time() + wrong_s
    time.time_ns = lambda: true_time_ns() + int(wrong_s * 1e9)
    assert abs(true_datetime.now().timestamp() - time.time()) > abs(wrong_s) - 1  # noqa: DTZ005


def main(role: str, wrong_s: str, url: str, namespace: str) -> None:
    set_clock(float(wrong_s))
    app = make_app(url, namespace)
    executor = app.connections.sync()
    results = f"{namespace}:{{q}}:started"

    @app.job(name="note", result_ttl=0)
    async def note(ctx: Context[Any]) -> None:
        seconds, micros = executor.run(Command(["TIME"], lambda raw: raw))
        due_ms = round(ctx.enqueued_at * 1000 + DELAY_S * 1000)
        started_ms = int(seconds) * 1000 + int(micros) // 1000
        executor.run(Command(["RPUSH", results, due_ms, started_ms], int))

    async def work() -> None:
        async with app.worker() as worker:
            while not executor.run(Command(["EXISTS", results], int)):
                await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=0.02)
            worker.stop()
        await drain(app)
        await app.aclose()

    if role == "produce":
        note.options(delay=DELAY_S).enqueue_sync()
        app.close()
    else:
        asyncio.run(work())


if __name__ == "__main__":
    main(*sys.argv[1:])
