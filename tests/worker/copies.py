"""A worker whose handlers fork, and come back in the copy too: run by test_copies.py."""

import os
import sys

from streamjobs import WorkerOptions
from tests.worker.support import make_app


def main(url: str, namespace: str, path: str, kind: str) -> int:
    app = make_app(url, namespace)

    def fork() -> None:
        if (pid := os.fork()) == 0:
            raise OSError("the copy could not start its program")
        os.waitpid(pid, 0)

    @app.job(name="plain")
    def plain() -> None:
        fork()

    @app.job(name="async")
    async def asynchronous() -> None:
        fork()

    @app.job(name="note")
    def note(n: int) -> None:
        with open(path, "a") as file:
            file.write(f"{n}:{os.getpid()}\n")

    app.kind(kind).enqueue_sync()
    app.enqueue_many_sync(note.call(n) for n in range(20))
    return app.run_worker(options=WorkerOptions(burst=True, concurrency=5))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
