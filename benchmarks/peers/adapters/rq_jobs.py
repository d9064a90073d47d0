"""RQ; fast is the worker that does not fork, without results."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
import rq
from rq.worker import SimpleWorker, Worker

from .base import FAST, PORTION, TEXT, URL, Clock, main, mark

OPTIONS = {"result_ttl": 0} if FAST else {}


def noop(number: int, text: str) -> None:
    mark(number)


def _queue() -> rq.Queue:
    queue = rq.Queue("default", connection=redis.Redis.from_url(URL))
    queue.connection.ping()
    return queue


@contextmanager
def add() -> Iterator[Any]:
    queue = _queue()
    yield lambda number: queue.enqueue("adapters.rq_jobs.noop", number, TEXT, **OPTIONS)


def bulk(jobs: int) -> None:
    queue = _queue()
    with Clock(jobs):
        for first in range(0, jobs, PORTION):
            numbers = range(first, min(first + PORTION, jobs))
            queue.enqueue_many([
                rq.Queue.prepare_data("adapters.rq_jobs.noop", (number, TEXT), **OPTIONS) for number in numbers
            ])  # fmt: skip


def drain() -> None:
    kind = SimpleWorker if FAST else Worker
    queue = _queue()
    kind([queue], connection=queue.connection).work(logging_level="ERROR")


if __name__ == "__main__":
    main(add=add, bulk=bulk, drain=drain)
