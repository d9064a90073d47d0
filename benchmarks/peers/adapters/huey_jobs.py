"""Huey; fast keeps no results and has four threads."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import huey

from .base import FAST, TEXT, URL, main, mark

app = huey.RedisHuey("jobs", url=URL, **({"results": False} if FAST else {}))


def run(number: int, text: str) -> None:
    mark(number)


noop = app.task(name="noop")(run)


@contextmanager
def add() -> Iterator[Any]:
    app.storage.conn.ping()
    yield lambda number: noop(number, TEXT)


def drain() -> None:
    app.create_consumer(workers=4 if FAST else 1).run()


if __name__ == "__main__":
    main(add=add, drain=drain)
