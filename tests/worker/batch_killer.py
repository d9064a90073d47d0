"""A worker whose batches end its process when a certain job is among them: run by test_batch.py.

Each call is a line in a file. Ends with 0 when nothing is left to do.
"""

import os
import sys
from dataclasses import dataclass

from streamjobs import Batch
from tests.worker.support import FAST, make_app

POISON = 2


@dataclass
class Item:
    n: int


def main(url: str, namespace: str, starts: str) -> int:
    app = make_app(url, namespace)
    log = os.open(starts, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    @app.job(name="batch", batch=Batch(5, 1.0))
    async def batch(items: list[Item]) -> None:
        numbers = sorted(item.n for item in items)
        os.write(log, (" ".join(map(str, numbers)) + "\n").encode())
        if POISON in numbers:
            os._exit(137)

    if os.stat(starts).st_size == 0:
        app.enqueue_many_sync(batch.call(Item(n)) for n in range(5))
    return app.run_worker(options=FAST, lease=0.3, burst=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
