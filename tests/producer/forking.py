"""A program that enqueues, forks, and enqueues on both sides at once: run by test_forks.py.

Prints the id of each job that its processes were told of, a line each.
"""

import asyncio
import os
import sys
from collections.abc import Callable

from streamjobs import Handle, StreamJobs
from tests.producer.support import make_app

MANY = 200


def plain(app: StreamJobs, first: int) -> list[str]:
    return [app.kind("note").enqueue_sync(n).id for n in range(first, first + MANY)]


def bulk(app: StreamJobs, first: int) -> list[str]:
    results = app.enqueue_many_sync(app.kind("note").call(n) for n in range(first, first + MANY))
    return [one.id for one in results if isinstance(one, Handle)]


def in_a_loop(app: StreamJobs, first: int) -> list[str]:
    async def run() -> list[str]:
        # In development mode a slow machine would be told of on stderr.
        asyncio.get_running_loop().slow_callback_duration = 60
        handles = await asyncio.gather(*(app.kind("note").enqueue(n) for n in range(first, first + MANY)))
        return [handle.id for handle in handles]

    return asyncio.run(run())


WAYS: dict[str, Callable[[StreamJobs, int], list[str]]] = {"plain": plain, "bulk": bulk, "loop": in_a_loop}


def main(url: str, namespace: str, way: str, children: int) -> None:
    app, enqueue = make_app(url, namespace), WAYS[way]
    ids = enqueue(app, 0)
    pids = []
    for child in range(1, children + 1):
        if (pid := os.fork()) == 0:
            write(enqueue(app, child * MANY))
            os._exit(0)
        pids.append(pid)
    ids += enqueue(app, (children + 1) * MANY)
    write(ids)
    ended = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    assert ended == [0] * children, ended


def write(ids: list[str]) -> None:
    """Write in one piece, since several processes share this output."""
    os.write(1, "".join(f"{one}\n" for one in ids).encode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
