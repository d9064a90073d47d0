"""Celery; fast is the solo pool, without results, events and talk among workers."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import celery

from .base import FAST, TEXT, URL, Clock, main, mark

app = celery.Celery("jobs", broker=URL)
app.conf.task_ignore_result = FAST
app.conf.worker_prefetch_multiplier = 100 if FAST else 4
app.conf.broker_connection_retry_on_startup = True


def run(number: int, text: str) -> None:
    mark(number)


noop = app.task(run, name="noop")


@contextmanager
def add() -> Iterator[Any]:
    noop.apply_async((0, TEXT), queue="warm")
    yield lambda number: noop.delay(number, TEXT)


def bulk(jobs: int) -> None:
    noop.apply_async((0, TEXT), queue="warm")
    with Clock(jobs):
        celery.group(noop.s(number, TEXT) for number in range(jobs)).apply_async()


def drain() -> None:
    # Two workers of one name would take each other's orders.
    words = ["worker", "--loglevel", "ERROR", "--hostname", f"worker{os.getpid()}@%h"]
    if FAST:
        words += ["--pool", "solo", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    app.worker_main(words)


if __name__ == "__main__":
    main(add=add, bulk=bulk, drain=drain)
